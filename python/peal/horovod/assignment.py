"""What the driver of an elastic job tells this worker. Without a driver, nothing changes."""

from __future__ import annotations

import functools
import os
import sys
from types import TracebackType

from peal.horovod._binding import hvd
from peal.horovod.exceptions import WorkerRemoved


def next_round() -> None:
    """Waits for the place of this worker in the next round of the job, which the next init uses, and stores
    it in the variables HOROVOD_RANK and so on.

    Errors: WorkerRemoved.
    """
    try:
        os.environ.update(hvd.elastic_next_round())
    except RuntimeError as error:
        _end_without_traceback()
        raise WorkerRemoved(str(error)) from None


@functools.cache
def _end_without_traceback() -> None:
    """Prints one line instead of a traceback, because the program of a removed worker has made no error."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(value, WorkerRemoved):
            print(f"peal: {value}", file=sys.stderr)
        else:
            previous(kind, value, traceback)

    sys.excepthook = excepthook


def host_changes() -> int:
    """How the hosts have changed since the round began: 0 not at all, 1 added, 2 removed, 3 both."""
    return hvd.elastic_host_changes()


def mark_synchronized() -> None:
    """Tells the driver that this worker has the state of the training. If a worker is lost
    before that, other workers cannot continue from its state."""
    hvd.elastic_mark_synchronized()
