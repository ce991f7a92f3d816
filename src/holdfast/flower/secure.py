"""Secure aggregation is not offered, and why."""

from __future__ import annotations

from holdfast.errors import Refused
from holdfast.experiment import Run, ready

WHY = (
    "secagg: not offered. SecAgg+ of Flower is written for its older fit/evaluate messages: it quantises one list of "
    "arrays weighted by sample counts, while a method here sends several named sums with weights of their own"
)
WAY = "leave --secagg out; TLS, node keys and the allow-list stay, and the server sees each update"


def insecure(run: Run) -> Refused:
    """The refusal; a method that needs the single updates could never have it, and is told so."""
    fed = ready(run).federation
    reason = f"secagg: {fed.method} needs each client's own update, and secure aggregation shows their sum only"
    return Refused(*[reason] * fed.sheet.individual, WHY, advice=WAY)
