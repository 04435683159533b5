"""What the driver of an elastic job tells this worker. Without a driver, nothing changes."""

from __future__ import annotations

import os

from peal.horovod._binding import hvd


def next_round() -> None:
    """Waits for the place of this worker in the next round of the job, which the next init uses, and stores
    it in the variables HOROVOD_RANK and so on.

    Errors: RuntimeError (this worker must end: it was removed, the job ends, or the driver has ended).
    """
    os.environ.update(hvd.elastic_next_round())


def host_changes() -> int:
    """How the hosts have changed since the round began: 0 not at all, 1 added, 2 removed, 3 both."""
    return hvd.elastic_host_changes()


def mark_synchronized() -> None:
    """Tells the driver that this worker has the state of the training. A worker that joined, and is lost
    before that, leaves nothing behind from which others could continue."""
    hvd.elastic_mark_synchronized()
