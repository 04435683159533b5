"""How a worker of an elastic job leaves its group and joins the next one."""

from __future__ import annotations

import os

from peal.horovod import assignment, job


def reset() -> None:
    """Leaves the group, gets the next place of this worker, and joins the next group there. Process sets
    that init was called with exist again, if all their ranks do; those that were added later do not."""
    job.shutdown()
    assignment.next_round()
    size = os.environ.get("HOROVOD_SIZE")
    job.start_again(int(size) if size else None)
