"""What a reader must know before believing the table, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.batchnorm import POLICIES
from holdfast.headline import TAIL, label
from holdfast.report.figures import MINUS, Spread, closing, listed, over_seeds, ranges, score, several, tenth
from holdfast.report.gather import Group, RunView, differing
from holdfast.rows import WRECK
from holdfast.statistics import interval, mean

LEFT_OUT = 6  # reasons that are listed
METRIC = {
    "accuracy": "Accuracy is that of the server's model on the test set.",
    "auc": (
        "AUC is over all rows of the test set at once, ties counting half, scored by the server's model or, where "
        "layers are private, each user's rows by its own. Accuracy says nothing there: of every hundred rows one is a "
        "click, so to expect none is 99 % accurate."
    ),
    "personal_accuracy": (
        "Personal accuracy is that of each client's own model, as a mean over the clients, on test rows of its own "
        "or, where it has none, on test data with its class shares; it is not comparable with accuracy."
    ),
}
Runs = Sequence[RunView]


def counted(group: Group) -> Group:
    """The runs that the table counts: the finished ones, or all of a group that has none."""
    ended = tuple(view for view in group.runs if view.finished)
    return Group(group.label, ended or group.runs)


def all_runs(groups: Sequence[Group]) -> list[RunView]:
    return [view for group in groups for view in group.runs]


def lead(groups: Sequence[Group]) -> str:
    """One sentence: what was compared."""
    views = all_runs(groups)
    methods = {view.run["method"] for view in views}
    compared = several(len(methods), "method")
    if len(groups) > len(methods):
        compared += f" in {len(groups)} settings"
    seeds = sorted({view.seed for view in views})
    each = {tuple(view.seed for view in group.runs) for group in groups}
    with_seeds = f"with seed{'s' * (len(seeds) > 1)} {ranges(seeds)}"
    with_seeds += " each" if len(each) == 1 and len(groups) > 1 else ""
    places = f"{together(views, 'data')}, split by {together(views, 'split')}, model {together(views, 'model')}"
    return f"{compared} {with_seeds}, {several_rounds(views)} on {places}."


def together(views: Runs, key: str) -> str:
    return listed(list(dict.fromkeys(str(view.run[key]) for view in views)), 4)


def several_rounds(views: Runs) -> str:
    wanted = sorted({view.run["rounds"] for view in views})
    return f"{wanted[0]} rounds" if len(wanted) == 1 else f"{wanted[0]} to {wanted[-1]} rounds"


def finding(groups: Sequence[Group]) -> list[str]:
    """The two highest closing means of each metric, and whether their difference is more than the spread."""
    found: list[str] = []
    for metric in METRIC:
        ranked = [g for g in map(counted, groups) if g.metric == metric and over_seeds(g, closing)]
        ranked.sort(key=lambda g: -closing_of(g).mean)
        if len(ranked) > 1:
            found.append(ahead(ranked[0], ranked[1], label(metric)))
    return found


def closing_of(group: Group) -> Spread:
    found = over_seeds(group, closing)
    assert found is not None
    return found


def ahead(first: Group, second: Group, metric: str) -> str:
    a, b = closing_of(first), closing_of(second)
    text = (
        f"Highest mean {metric} of the last ten evaluated rounds: {first.label} with {a.text(score)} %, "
        f"then {second.label} with {b.text(score)} %."
    )
    gaps = paired(first, second)
    if gaps is None:
        return f"{text} The difference is {score(a.mean - b.mean)}; they share no seed and split to be paired by."
    half, middle = interval(gaps), mean(gaps)
    if half is None:
        return f"{text} The difference is {score(middle)} with one seed, which says nothing about other seeds."
    won = f"{score(middle)} ± {score(half)} (95 % interval), above 0 in {sum(g > 0 for g in gaps)} of {len(gaps)} seeds"
    verdict = " The interval holds 0: these runs do not tell the two apart." if middle <= half else ""
    kind = "the two were picked by result, which flatters the first"
    return f"{text} Paired by seed the difference is {won}; {kind}.{verdict}"


def paired(first: Group, second: Group) -> list[float] | None:
    """Differences at the seeds and splits that both groups have; None without any, or where one occurs twice."""
    a, b = ({(v.seed, v.split_hash): closing(v) for v in group.runs if v.scores} for group in (first, second))
    once = len(a) == len(first.runs) and len(b) == len(second.runs)
    return [a[key] - b[key] for key in a if key in b] or None if once else None


def notes(groups: Sequence[Group]) -> list[str]:
    views = all_runs(groups)
    checks: list[Callable[[Sequence[Group], Runs], Iterator[str]]] = [
        measured, each_client, normalised, chosen, seeds,
        unfinished, diverged, settings, splits, start, holes, machines,
    ]  # fmt: skip
    return [note for check in checks for note in check(groups, views)]


def measured(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    for metric, text in METRIC.items():
        having = [group.label for group in groups if group.metric == metric]
        if having:
            yield text + (f" It is given for {listed(having)}." if len(having) < len(groups) else "")


def each_client(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    having = [view for view in views if any("client_accuracy" in row for row in view.metrics)]
    expected = [view for view in having if view.measures.get("tested") == 0]  # older runs had test rows, or no figure
    if expected:
        which = "" if len(expected) == len(having) else f" It is so in {listed([v.folder for v in expected])}."
        yield (
            "Client accuracy is that of the server's model, as a mean over the clients; no client has test rows of its "
            f"own, so each counts with the accuracy expected on test data with its class shares.{which}"
        )
    elif having:
        yield "Client accuracy is that of the server's model on each client's own test rows, as a mean over clients."


def normalised(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    for name, said in POLICIES.items():
        having = [group.label for group in groups if group.runs[0].facts.get("batchnorm") == name]
        if having:
            which = f" It is so for {listed(having)}." if len(having) < len(groups) else ""
            yield f"BatchNorm, {name}: {said}.{which}"


def chosen(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    yield (
        "Best round is the largest of all evaluated rounds, picked on the very test set it is given for, so it is too "
        "high; the last round and the mean of the last ten evaluated rounds pick nothing."
    )
    few = sorted({len(view.scores) for view in views if len(view.scores) < TAIL})
    if few:
        spans = f"{few[0]}" if len(few) == 1 else f"{few[0]} to {few[-1]}"
        yield f"Some runs have fewer than ten evaluated rounds ({spans}); their mean of the last ten is over those."
    steps = sorted({view.run.get("eval_every", 1) for view in views})
    if steps[-1] > 1:
        yield f"Not every round was evaluated (eval-every {listed(steps)}): the last ten evaluated reach further back."


def seeds(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    single = [group.label for group in groups if len(group.runs) == 1]
    if single:
        yield f"One run only, so no spread: {listed(single)}."
    if any(len(group.runs) > 1 for group in groups):
        yield (
            f"± is one standard deviation over seeds (n {MINUS} 1 in the denominator), not the error of the mean; "
            "only where a difference is paired by seed it is half a 95 % interval."
        )
    for group in groups:
        twice = sorted({v.seed for v in group.runs if sum(w.seed == v.seed for w in group.runs) > 1})
        if twice:
            yield f"{group.label} has more than one run of seed {ranges(twice)}; they are counted as different ones."
    if len({tuple(sorted({view.seed for view in group.runs})) for group in groups}) > 1:
        having = [ranges(view.seed for view in group.runs) for group in groups]
        usual = max(having, key=having.count)
        odd = [f"{group.label} has {own}" for group, own in zip(groups, having, strict=True) if own != usual]
        yield f"The methods do not have the same seeds: {listed(odd)}, the others {usual}."


def unfinished(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    broken = [f"{v.folder} ({v.done} of {v.run['rounds']} rounds)" for v in views if not v.finished]
    if broken:
        yield (
            f"Not finished: {listed(broken)}. The table counts finished runs only, unless a method has none; "
            "curves show every run and are dashed where only some have a value."
        )
    silent = [str(view.folder) for view in views if not view.scores]
    if silent:
        yield f"Not evaluated yet: {listed(silent)}."


def diverged(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    broken = [f"{view.folder} (round {view.broken})" for view in views if view.broken]
    if broken:
        yield f"Diverged, from the first round with {WRECK}: {listed(broken)}. Figures of such a run mean nothing."


def settings(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    keys = differing([group.runs[0].run for group in groups])
    if keys:
        many = "setting differs" if len(keys) == 1 else "settings differ"
        yield f"Besides the method {len(keys)} {many} between the rows: {listed([k.replace('_', '-') for k in keys])}."


def splits(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    hashes = {view.split_hash for view in views}
    by_seed: dict[int, set[str]] = {}
    for view in views:
        by_seed.setdefault(view.seed, set()).add(view.split_hash)
    odd = [seed for seed, found in by_seed.items() if len(found) > 1]
    if odd:
        yield f"At seed {ranges(odd)} the methods have different splits, so part of a difference may be the split's."
    if len(hashes) == 1 and len(views) > 1:
        yield "All runs share one split: the spread is that of model, cohorts and batches."
    elif len(by_seed) > 1 and not odd and len(hashes) == len(by_seed):
        yield f"Every seed has its own split ({len(hashes)} in all): the spread over seeds includes the split's."


def start(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    """Data, starting model and size that are not the same for all methods at a seed."""
    kinds = {"data_sha256": "data", "parameters": "number of parameters", "start_sha256": "starting model"}
    for key, name in kinds.items():
        found: dict[int, set[Any]] = {}
        for view in views:
            found.setdefault(view.seed, set()).add(view.facts.get(key))
        odd = [seed for seed, values in found.items() if len(values) > 1]
        if odd:
            yield f"At seed {ranges(odd)} the {name} is not the same in all runs."


def holes(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    for view in views:
        absent = set(range(1, view.done + 1)) - {row["round"] for row in view.metrics}
        if absent:
            yield f"{view.folder} has no row of round {ranges(absent)}: its bytes are too few by those rounds."
    lost = [(view, sum(len(row.get("dropped") or ()) for row in view.metrics)) for view in views]
    dropped = [f"{view.folder} ({count})" for view, count in lost if count]
    if dropped:
        yield f"Updates that were not finite were dropped: {listed(dropped)}."
    yield from left_out(views)
    for view in views:
        for row in view.metrics:
            if "remark" in row:
                yield f"{view.folder}, round {row['round']}: {row['remark']}."
    asked = [[row for row in view.metrics if {"trained", "clients"} <= row.keys()] for view in views]
    idle = [sum(r["clients"] - r["trained"] - len(r.get("missing", ())) for r in rows) for rows in asked]
    if any(idle):
        each = tenth(sum(idle) / len(idle))
        yield f"Some visited clients had no samples and did not train ({each} visits a run); they send nothing up."


def machines(groups: Sequence[Group], views: Runs) -> Iterator[str]:
    for key in ("torch", "device", "engine", "dtype"):
        found = list(dict.fromkeys(str(view.plan.get(key, "unknown")) for view in views))
        if len(found) > 1:
            yield f"Not all runs were computed alike: {key} is {listed(found)}. Last digits may differ for that."


def left_out(views: Sequence[RunView]) -> Iterator[str]:
    """Clients of a real federation whose answers did not count, each with its reasons and how often; see flower.md."""
    for view in views:
        each = Counter((i, why) for row in view.metrics for i, why in row.get("missing", {}).items())
        told = [f"client {i}: {why} ({many} times)" for (i, why), many in each.most_common(LEFT_OUT)]
        more = ", ..." if len(each) > LEFT_OUT else ""
        if each:
            yield f"In {view.folder} answers were left out of rounds. {'; '.join(told)}{more}."
