"""`run.toml` as a run wrote it: read back whole, or refused with all that is wrong in it. Nothing is filled in.

The file lists the options that there were when it was written. One that is listed and missing is damage; one that came
later has the value under which nothing changes, its default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import holdfast
from holdfast import tomlfile
from holdfast.errors import Problem, Refused
from holdfast.execute.auto import ENGINES
from holdfast.execute.sums import KINDS
from holdfast.experiment import Plan, Run, alone
from holdfast.options import DTYPES, GIVEN, numbers, whole
from holdfast.tomlfile import File, near

# The options of the files that were written before files listed them.
FIRST = (
    "method", "data", "split", "model", "rounds", "cohort", "epochs", "steps", "batch", "lr", "lr_decay", "server_lr",
    "drop_last", "seed", "eval_every", "checkpoint_every", "on_nan", "drift", "proxy", "finetune", "engine", "lanes",
    "compile", "threads", "dtype", "device",
)  # fmt: skip
FACTS = ("parameters", "clients", "split_sha256", "data_sha256", "start_sha256")
ADVICE = "restore it, or start anew with another --out"
MOST_THREADS = 1024  # a plan may be of a larger machine; far more would end the process


def writer() -> list[str]:
    """The lines of the table that tells by what, and with which options, a file was written."""
    names = [f.name for f in fields(Run)]
    return ["[writer]", f"holdfast = {json.dumps(holdfast.__version__)}", f"options = {json.dumps(names)}"]


def opened(folder: Path) -> tuple[dict[str, Any], Plan, dict[str, Any]]:
    """The options, the plan and the facts of a run."""
    path = folder / "run.toml"
    if not path.exists():
        raise Refused(missing(folder, "run.toml", "run"))
    return whole_of(path, ADVICE)


def repeated(path: Path) -> tuple[Plan, dict[str, Any]]:
    """The plan and the facts of a run.toml that is to be repeated to the same bits."""
    return whole_of(path, "restore it, or leave [plan] and [facts] out to plan anew")[1:]


def whole_of(path: Path, advice: str) -> tuple[dict[str, Any], Plan, dict[str, Any]]:
    file = tomlfile.read(path, advice)
    problems = [f"{path} has no table [{key}]" for key in ("run", "plan", "facts") if not table(file, key)]
    run, plan, facts = (table(file, key) for key in ("run", "plan", "facts"))
    if not problems:
        problems += option_problems(file, run, "run") or value_problems(file, run)
        problems += plan_problems(file, run)
        problems += [f"{path} lacks {key} in [facts]" for key in FACTS if key not in facts]
    if problems:
        raise Refused(*problems, advice=advice)
    return run, Plan(**plan), facts


def table(file: File, key: str) -> dict[str, Any]:
    found = file.tables.get(key)
    return dict(found) if isinstance(found, dict) else {}


def missing(folder: Path, name: str, kind: str) -> str:
    """What to do where the file is not there by which a run or a comparison is known."""
    said = f"{folder} is not the folder of a {kind}: it has no {name}"
    beside = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    other = {"run.toml": "compare", "compare.toml": "run"}[name]
    if f"{other}.toml" in beside:
        return f"{said}, but {other}.toml; say holdfast {other} --out {folder} --resume"
    if beside & {"metrics.jsonl", "checkpoint", "split.json", "comparison.json"}:
        return f"{said}, only what a {kind} leaves beside it; {ADVICE}"
    if beside or (folder.exists() and not folder.is_dir()):
        return f"{said}; give the folder that --out named then"
    return f"{said}; leave --resume out to start one there"


def option_problems(file: File, run: Mapping[str, Any], where: str = "") -> list[str]:
    """Options that are not known, and those that were written and are gone."""
    names = {f.name: f.default for f in fields(Run)}
    written = table(file, "writer").get("options", [])
    if not isinstance(written, list):
        return [f"{file.place('options', 'writer')}: options={written!r} must be a list of names"]
    problems = [
        f"{file.place(key, where)}: there is no option '{key}'{near(key, names)}" for key in run if key not in names
    ]
    gone = [key for key in names if key in [*FIRST, *written] and key not in run and names[key] is not None]
    gone += ["epochs or steps"] * ("epochs" not in run and "steps" not in run)  # of the two, one is always written
    return problems + [f"{file.path} lacks {key}" for key in gone]


def value_problems(file: File, run: Mapping[str, Any]) -> list[str]:
    """Values that no run could have been started with."""
    problems = numbers(Run(**run))
    texts = [key for key in ("method", "data", "model") if named(run[key])]
    problems += [text for key in texts for text in alone(key, run[key])]
    if not isinstance(run["split"], str):
        problems.append(Problem(f"split={run['split']!r} must be text", "split"))
    return [f"{file.place(getattr(p, 'option', ''), 'run')}: {p}" for p in dict.fromkeys(problems)]


def named(value: Any) -> bool:
    """Whether a text can be checked by itself: not what was given in Python, or is code of the user."""
    return not (isinstance(value, str) and (value.startswith(GIVEN) or ":" in value))


def plan_problems(file: File, run: Mapping[str, Any]) -> list[str]:
    """What no plan of such a run can be."""
    plan, names = table(file, "plan"), {f.name: f.default for f in fields(Plan)}
    problems = [
        f"{file.place(key, 'plan')}: a plan has no '{key}'{near(key, names)}" for key in plan if key not in names
    ]
    problems += [f"{file.path} lacks {key} in [plan]" for key in names if names[key] is MISSING and key not in plan]
    if problems:
        return problems
    return [f"{file.place(key, 'plan')}: {key}={plan[key]!r} {why}" for key, why in misfits(plan, run)]


def misfits(plan: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    most = max(MOST_THREADS, 4 * (os.cpu_count() or 1))
    rules = (
        ("engine", plan["engine"] in ENGINES, f"must be one of {', '.join(ENGINES)}"),
        ("lanes", whole(plan["lanes"], 1), "must be a whole number of at least 1"),
        ("threads", whole(plan["threads"], 1) and plan["threads"] <= most, f"must be from 1 to {most}"),
        ("compile", isinstance(plan["compile"], bool), "must be true or false"),
        ("dtype", plan["dtype"] in list(DTYPES), f"must be one of {', '.join(DTYPES)}"),
        ("device", isinstance(plan["device"], str), "must be the name of a device, such as cpu"),
        ("torch", isinstance(plan["torch"], str), "must be the version of torch, as text"),
        ("why", isinstance(plan["why"], str), "must be text"),
        ("sums", plan.get("sums", "") in ("", *KINDS), f"must be one of {', '.join(KINDS)}"),
    )
    wrong = {key: why for key, good, why in rules if not good}
    yield from wrong.items()
    if "compile" not in wrong and plan["compile"] and not run.get("compile", False):
        yield "compile", "is not what [run] asks for: False"
    free = {"engine": "auto", "lanes": 0, "threads": 0, "device": None, "dtype": None}  # what leaves it to the plan
    for key, chosen in free.items():
        asked = run.get(key, chosen)
        lanes = key == "lanes" and plan["engine"] == "loop"  # which has one
        if key not in wrong and asked not in (chosen, plan[key]) and not lanes:
            yield key, f"is not what [run] asks for: {asked!r}"
