"""what a method does in a round, what it costs, and whom to cite"""

from __future__ import annotations

import argparse
import json

from holdfast.commands.given import given
from holdfast.commands.options import add_options

EXAMPLES = """\
examples:
  holdfast explain "scaffold + sam(rho=0.1) + specpert(r=0.01)"
  holdfast explain fedsmoo --model resnet20
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("method", help="the text of a method")
    add_options(command)


def command(options: argparse.Namespace) -> int:
    from holdfast.experiment import Run, ready
    from holdfast.explain import explained

    made = ready(Run(**given(options).values), costing=True)
    told = explained(made.federation.method, made.federation.sheet)
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
    print("\ncite")
    print("\n".join(told["citations"]))
    return 0
