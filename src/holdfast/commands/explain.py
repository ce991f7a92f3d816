"""what a method does in a round, what it costs, and whom to cite"""

from __future__ import annotations

import argparse
import json

from holdfast.commands.given import given
from holdfast.commands.options import add_options
from holdfast.errors import Refused

EXAMPLES = """\
examples:
  holdfast explain "scaffold + sam(rho=0.1) + specpert(r=0.01)"
  holdfast explain fedsmoo --model resnet20
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("method", help="the text of a method")
    add_options(command)


def in_company(method: str) -> str:
    """The command for a part that cannot stand alone, beside the least that it needs."""
    from holdfast.catalogue import COMPANY
    from holdfast.options import attempt
    from holdfast.text import parse

    texts = [f"{base} + {method}" if base else method for base in COMPANY]
    found = next((text for text in texts if attempt([], lambda text=text: parse(text)) is not None), method)
    return f'in company it can: holdfast explain "{found}"' if found != method else ""


def command(options: argparse.Namespace) -> int:
    from holdfast.experiment import Run, ready
    from holdfast.explain import explained

    run = Run(**given(options).values)
    try:
        made = ready(run, costing=True)
    except Refused as refused:
        raise Refused(*refused.problems, advice=refused.advice or in_company(options.method)) from refused
    told = explained(made.federation.method, made.federation.sheet, made.facts.get("batchnorm", ""))
    if options.json:
        print(json.dumps(told))
        return 0
    about = f"{made.run.model} on {made.run.data}, {made.federation.task.layout.size:,} parameters"
    print(f"{told['method']}\n\nin a round")
    wide = max((len(step["part"]) for step in told["pipeline"]), default=0)
    for step in told["pipeline"]:
        print(f"  {step['where']:<7} {step['slot']:<10} {step['part']:<{wide}}  {step['does']}")
    for name, what in told["parts"].items():
        print(f"\n{name}: {what}" if name == next(iter(told["parts"])) else f"{name}: {what}")
    print(f"\ncost a client and round ({about})")
    for name, value in told["sheet"]:
        print(f"  {name:<39} {value}")
    if "batchnorm" in told:
        print(f"\nBatchNorm of {made.run.model}, {told['batchnorm']}")
    print("\ncite")
    print("\n".join(told["citations"]))
    return 0
