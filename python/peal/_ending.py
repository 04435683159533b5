"""The end of a process that is in groups: its peers receive the exception's text, and it leaves all
groups."""

from __future__ import annotations

import atexit
import multiprocessing.util
import os
import sys
from types import TracebackType
from typing import Callable, Protocol

from peal._errors import words_of


class _Module(Protocol):
    """An extension module of peal. Each has its own groups."""

    def tell_of_exception(self, what: str, /) -> None: ...

    def leave_all(self) -> None: ...


def end_with_process(module: _Module) -> None:
    """From now on: before an exception ends this process, the peers of the module's groups receive the
    exception's text. Before the interpreter ends, the process leaves all groups, so that no thread of
    a group calls Python after its end. Call this once for each module."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException,
                   traceback: TracebackType | None) -> None:
        try:
            module.tell_of_exception(words_of(value))
        finally:
            previous(kind, value, traceback)

    def leave() -> None:
        raised = sys.exc_info()[1]
        # A child of torch.multiprocessing handles an exception of its target by an exit.
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
    # A forked child runs none of its parent's functions.
    multiprocessing.util.register_after_fork(leave, _at_end_of_child)


def _at_end_of_child(leave: Callable[[], None]) -> None:
    """Children of multiprocessing do not run the functions of atexit, only those of Finalize."""
    multiprocessing.util.Finalize(None, leave, exitpriority=100)


def handled() -> BaseException | None:
    """The exception that this thread handles, or that passes through a `finally`; see `_mark_handled`."""
    error = sys.exc_info()[1]
    return None if error is None or _is_from_before(error) else error


# An attribute of the exception, because a reference to the exception would keep its frames alive.
_MARK = "_peal_is_from_before"


def _mark_handled() -> None:
    """Marks the exceptions that are handled now, so that they are not taken for the end of this
    process. A process that is forked, or imports this module, while an exception is handled sees that
    exception until its end."""
    error = sys.exc_info()[1]
    while error is not None and not _is_from_before(error):
        vars(error)[_MARK] = True
        error = error.__context__  # handled again after `error`


def _is_from_before(error: BaseException) -> bool:
    return _MARK in vars(error)


_mark_handled()
os.register_at_fork(after_in_child=_mark_handled)
