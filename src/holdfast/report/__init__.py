"""The report of runs: one HTML page that opens anywhere, offline. Nothing here loads torch."""

from holdfast.report.gather import Group, RunView, find, grouped, load
from holdfast.report.page import render, write

__all__ = ["Group", "RunView", "find", "grouped", "load", "render", "write"]
