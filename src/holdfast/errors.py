"""What a user is told when something cannot be done."""

from __future__ import annotations


class Refused(ValueError):
    """Bad input: every problem found, each naming the value, the reason and a way out."""

    def __init__(self, *problems: str):
        super().__init__("\n".join(problems))
        self.problems = problems


class Failed(RuntimeError):
    """A run that could not go on; what it had computed is kept and the message says where."""
