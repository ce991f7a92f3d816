"""What a user is told when something cannot be done."""

from __future__ import annotations


class Problem(str):
    """One thing that is wrong, and the option that it concerns, if it is one."""

    option: str

    def __new__(cls, text: str, option: str = "") -> Problem:
        made = super().__new__(cls, text)
        made.option = getattr(text, "option", "") or option
        return made


class Refused(ValueError):
    """Bad input: every problem found, each naming the value, the reason and a way out.

    `advice` is a way out of all of them, and no problem itself.
    """

    def __init__(self, *problems: str, advice: str = ""):
        super().__init__("\n".join([*problems, *[advice] * bool(advice)]))
        self.problems, self.advice = problems, advice


class Failed(RuntimeError):
    """A run that could not go on; what it had computed is kept and the message says where."""
