"""The measures of a split in words, for a terminal and for a page. Nothing is imported, for a report opens quickly."""

from __future__ import annotations

from collections.abc import Mapping

Measures = Mapping[str, float]
KEYS = {
    "clients", "size_min", "size_mean", "size_max", "size_cv", "distinct", "unused", "classes_mean", "class_min",
    "class_max", "empty", "heterogeneity", "total_variation", "effective_classes", "tested", "test_rows",
}  # fmt: skip


def lines(text: str, found: Measures, classes: int) -> list[str]:
    """What is said of a split before the first round."""
    many, whole = found["clients"], f"split {text}: {clients(found)}"
    each = found["classes_mean"] * many / max(many - found["empty"], 1)  # of clients that hold anything
    held = f"{each:.1f} of {classes} classes a client, {marginals(found)}"
    if "measured" in found:
        return [whole, f"its first {found['measured']:,} clients: {held}, {unlike(found, classes)}"]
    return [f"{whole}; {held}", f"its measures: {unlike(found, classes)}"]


def clients(found: Measures) -> str:
    """'100 clients with 3 to 55 samples (mean 14.4)', how many are distinct, and what is with nobody."""
    low, high, many = found["size_min"], found["size_max"], found["clients"]
    sizes = f"{low:,} samples each" if low == high else f"{low:,} to {high:,} samples (mean {found['size_mean']:,.1f})"
    held = round(found["size_mean"] * many)
    said = f"{many:,} client{'s' * (many != 1)} with {sizes}"
    said += f", {found['distinct']:,} of {held:,} distinct" if found["distinct"] < held else ""
    said += f", {found['unused']:,} samples unused" if found["unused"] else ""
    said += f", {found['empty']:,} clients empty" if found["empty"] else ""
    said += f", {found['tested']:,} with test rows of their own ({found['test_rows']:,})" if found["tested"] else ""
    return said


def marginals(found: Measures) -> str:
    low, high = found["class_min"], found["class_max"]
    return f"{low:,} samples a class" if low == high else f"{low:,} to {high:,} samples a class"


def unlike(found: Measures, classes: int) -> str:
    """How unlike the clients are; see `holdfast.data.measures` for the definitions."""
    return (
        f"heterogeneity H {found['heterogeneity']:.4f}, total variation {found['total_variation']:.3f}, "
        f"effective classes {found['effective_classes']:.2f} of {classes}, "
        f"coefficient of variation of sizes {found['size_cv']:.2f}"
    )
