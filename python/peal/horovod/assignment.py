"""What the driver of an elastic job tells this worker. `peal._hvd` asks it; without a driver the answers say
that nothing changes."""

from __future__ import annotations

import os
from typing import Callable, cast

from peal.horovod._binding import hvd


def next_round() -> None:
    """Waits for the place of this worker in the next round of the job, which the next init uses, and stores
    it in the variables HOROVOD_RANK and so on.

    Errors: RuntimeError (this worker has been removed from the job), HorovodInternalError (the job ends).
    """
    ask = cast("Callable[[], dict[str, str] | None] | None", getattr(hvd, "elastic_next_round", None))
    if ask is not None:
        os.environ.update(ask() or {})


def host_changes() -> int:
    """How the hosts have changed since the round began: 0 not at all, 1 added, 2 removed, 3 both."""
    ask = cast("Callable[[], int] | None", getattr(hvd, "elastic_host_changes", None))
    return 0 if ask is None else ask()


def mark_synchronized() -> None:
    """Tells the driver that this worker has the state of the training. A worker that joined, and is lost
    before that, leaves nothing behind from which others could continue."""
    tell = cast("Callable[[], None] | None", getattr(hvd, "elastic_mark_synchronized", None))
    if tell is not None:
        tell()
