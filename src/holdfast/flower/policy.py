"""What the server does about a node that is late, fails, or sends what cannot be used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from holdfast.errors import Failed, Refused
from holdfast.options import positive, whole
from holdfast.text import one

NAMES = {
    "wait": {"seconds"},
    "drop": {"seconds"},
    "quorum": {"n", "seconds"},
    "deadline": {"seconds", "n"},
}
PATIENCE = 600.0  # seconds for an answer where nothing else is said


@dataclass(frozen=True)
class Policy:
    """`wait`: all must answer; who is gone is waited for and asked again, anything else wrong ends the run.
    `drop`: what is wrong is left out. `quorum`: so, while at least n remain. `deadline`: so, after these seconds.
    """

    name: str = "wait"
    seconds: float = PATIENCE
    n: int = 1

    @property
    def patient(self) -> bool:
        return self.name == "wait"

    def judge(self, round: int, answered: Collection[int], missing: Mapping[int, str]) -> None:
        """Whether the round counts."""
        told = "; ".join(f"client {i}: {why}" for i, why in sorted(missing.items()))
        if self.patient and missing:
            raise Failed(
                f"round {round}: {told}; mend it and start again, which goes on after the last whole round, or take "
                "--policy drop, which leaves such clients out"
            )
        if len(answered) < self.n:
            raise Failed(
                f"round {round}: {len(answered)} of the {self.n} answers that policy {self.name} needs ({told}); "
                "start again when more nodes are there"
            )


def policy(text: str) -> Policy:
    """'wait', 'drop', 'quorum(n=2)', 'deadline(seconds=60)'."""
    call = one(text, "policy")
    if call.name not in NAMES:
        raise Refused(f"policy={text!r}: there are {', '.join(NAMES)}")
    rules = {"n": (lambda v: whole(v, 1), "a whole number of at least 1"), "seconds": (positive, "a number above 0")}
    problems = [
        f"policy {call.name} has no '{key}'; it has {', '.join(sorted(NAMES[call.name]))}"
        for key in call.options
        if key not in NAMES[call.name]
    ]
    problems += [
        f"policy={text!r}: {key}={call.options[key]!r} must be {what}"
        for key, (good, what) in rules.items()
        if key in call.options and not good(call.options[key])
    ]
    needed = {"quorum": "n", "deadline": "seconds"}.get(call.name)
    if needed and needed not in call.options:
        problems.append(f"policy={text!r} needs {needed}, as in {call.name}({needed}={2 if needed == 'n' else 60})")
    if problems:
        raise Refused(*problems)
    return Policy(call.name, **call.options)
