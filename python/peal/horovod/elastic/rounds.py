"""How a worker of an elastic job leaves its group and joins the next one."""

from __future__ import annotations

import os
from typing import Callable, cast

from peal.horovod import mpi_ops
from peal.horovod._binding import hvd


def reset() -> None:
    """Leaves the group, gets the next place of this worker, and joins the next group there. Process sets
    that init was called with exist again, if all their ranks do; those that were added later do not."""
    mpi_ops.shutdown()
    next_round()
    size = os.environ.get("HOROVOD_SIZE")
    mpi_ops._start_again(int(size) if size else None)


def next_round() -> None:
    """Waits for the next assignment of the job's driver, and stores it in the environment variables that
    init reads. Without a driver the assignment stays as it is.

    Errors: RuntimeError (this worker has been removed from the job).
    """
    assigned = cast("Callable[[], dict[str, str]] | None", getattr(hvd, "elastic_next_round", None))
    if assigned is not None:
        os.environ.update(assigned() or {})


def updates() -> tuple[int, int]:
    """The number of changes of hosts that the driver has announced to this worker, and what they were:
    1 added, 2 removed, 3 both. Without a driver: none."""
    announced = cast("Callable[[], tuple[int, int]] | None", getattr(hvd, "elastic_updates", None))
    return (0, 0) if announced is None else announced()
