"""Whose hook an error came from, read off its traceback: nothing is watched while all goes well."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from holdfast.errors import Failed, Refused
from holdfast.method import Part
from holdfast.slots import SLOTS

HOOKS = {slot.__name__.lower() for slot in SLOTS}


def blamed(error: BaseException) -> str:
    """The part whose hook was entered last, such as "part 'prox' in 'correct': "; empty where no hook was."""
    found, trace = "", error.__traceback__
    while trace:
        code, values = trace.tb_frame.f_code, trace.tb_frame.f_locals
        own = values.get(code.co_varnames[0]) if code.co_argcount else None
        if isinstance(own, Part) and code.co_name in HOOKS:
            found = f"part '{own.name}' in '{code.co_name}': "
        trace = trace.tb_next
    return found


@contextlib.contextmanager
def told(where: Callable[[], str]) -> Iterator[None]:
    """Makes whatever goes wrong a failure that says where it happened and in which part."""
    try:
        yield
    except (Refused, Failed):
        raise
    except Exception as error:
        raise Failed(f"{where()}: {blamed(error)}{str(error) or type(error).__name__}") from error
