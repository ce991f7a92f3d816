"""From a name and options to a call: registered functions and `package.module:callable`, refused in plain words."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import reduce
from typing import Any

from holdfast.errors import Refused


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an 'unknown name' message: the nearest name, if there is one, and the list."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}known: {', '.join(names) or 'none'}"


def expression(name: str, options: Mapping[str, object]) -> str:
    """`name(a=1, b='x')`, options in alphabetical order; the bare name when there are none."""
    inside = ", ".join(f"{key}={options[key]!r}" for key in sorted(options))
    return f"{name}({inside})" if inside else name


def find(kind: str, name: str, known: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The registered function of this name, or the callable that `package.module:callable` points to."""
    if name in known:
        return known[name]
    if ":" in name:
        return _imported(kind, name)
    raise Refused(f"unknown {kind} '{name}': {nearest(name, known)}; your own is named 'package.module:callable'")


def option_problems(name: str, call: Callable[..., Any], options: Mapping[str, object], given: int = 0) -> list[str]:
    """Unknown and missing options; the first `given` parameters are filled by the library and are no options."""
    try:
        parameters = list(inspect.signature(call).parameters.values())[given:]
    except (TypeError, ValueError):  # some builtins have no signature: nothing can be checked
        return []
    by_name = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    problems = []
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        names = [p.name for p in by_name]
        problems += [f"{name} has no option '{key}': {nearest(key, names)}" for key in options if key not in names]
    missing = [p.name for p in by_name if p.default is p.empty and p.name not in options]
    return problems + [f"{name} needs the option '{key}': write {name}({key}=...)" for key in missing]


def call_outside(kind: str, name: str, call: Callable[..., Any], options: Mapping[str, object]) -> Any:
    """Calls a function of the user; what it raises comes back as one refusal with the reason."""
    with _current_directory_on_path():
        try:
            return call(**options)
        except Refused:
            raise
        except (Exception, SystemExit) as error:
            raise Refused(
                f"{kind} '{name}' failed: {_reason(error)}; call it on its own in Python to see where"
            ) from error


def _imported(kind: str, name: str) -> Callable[..., Any]:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise Refused(f"{kind} '{name}' is not of the form 'package.module:callable'")
    with _current_directory_on_path():
        try:
            importlib.invalidate_caches()  # a file written a moment ago is found too
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as error:
            raise Refused(
                f"{kind} '{name}': importing '{module_name}' failed: {_reason(error)}; "
                f"it is looked for in the current directory ({os.getcwd()}) and among the installed packages"
            ) from error
    try:
        found = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise Refused(
            f"{kind} '{name}': module '{module_name}' has no '{attribute}': {nearest(attribute, public)}"
        ) from None
    if not callable(found):
        raise Refused(f"{kind} '{name}' is a {type(found).__name__}, which cannot be called: name a function or class")
    return found


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@contextlib.contextmanager
def _current_directory_on_path() -> Iterator[None]:
    """As `python -m` does it; taken off again, so that importing holdfast never changes what others import."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the imported module may have cleaned up itself
            sys.path.remove(here)
