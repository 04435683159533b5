"""How a process that is in groups ends: its peers hear what was raised, and nothing outlives it."""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import sys
from types import TracebackType
from typing import Callable, Protocol

from peal._errors import words_of


class _Module(Protocol):
    """An extension module of peal, each of which has its own groups."""

    def tell_of_exception(self, what: str, /) -> None: ...

    def leave_all(self) -> None: ...


def end_with_process(module: _Module) -> None:
    """From now on: before an exception ends this process, the peers of the module's groups are told
    what it says; and before the interpreter goes, all groups are left, so that no thread of theirs
    comes to a Python that is gone. To be called once for each module."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException,
                   traceback: TracebackType | None) -> None:
        try:
            module.tell_of_exception(words_of(value))
        finally:
            previous(kind, value, traceback)

    def leave() -> None:
        raised = sys.exc_info()[1]
        # A child of torch.multiprocessing, whose target raised, exits where it handles that.
        while isinstance(raised, SystemExit):
            raised = raised.__context__ if raised.code not in (None, 0) else None
        try:
            if raised is not None and not _is_from_before(raised):
                module.tell_of_exception(words_of(raised))
        finally:
            module.leave_all()

    sys.excepthook = excepthook
    atexit.register(leave)
    _at_end_of_child(leave)
    # Of what its parent has registered a forked one runs nothing.
    multiprocessing.util.register_after_fork(leave, _at_end_of_child)


def _at_end_of_child(leave: Callable[[], None]) -> None:
    """Children of multiprocessing end without atexit's functions, but with these."""
    multiprocessing.util.Finalize(None, leave, exitpriority=100)


def handled() -> BaseException | None:
    """What this thread handles, or what is on its way through a `finally`; see `_mark_handled`."""
    error = sys.exc_info()[1]
    return None if error is None or _is_from_before(error) else error


_MARK = "_peal_is_from_before"  # on the exception, since to refer to it keeps all its frames alive


def _mark_handled() -> None:
    """A process that is forked where an exception is handled handles it until it ends, and does not
    end by it; nor does one that imports this there."""
    error = sys.exc_info()[1]
    while error is not None and not _is_from_before(error):
        vars(error)[_MARK] = True
        error = error.__context__  # which is handled again once this one is


def _is_from_before(error: BaseException) -> bool:
    return _MARK in vars(error)


_mark_handled()
os.register_at_fork(after_in_child=_mark_handled)
