"""Loads `peal._hvd`, the operations by name in C++, and gives it the exception classes."""

from __future__ import annotations

import atexit
import multiprocessing.util

from peal import _torch
from peal.horovod.exceptions import HorovodInternalError, HorovodMismatchError

_torch.check_build()

from peal import _hvd as hvd  # noqa: E402  (the check above explains why this would fail)

__all__ = ["hvd"]

hvd.set_errors(HorovodInternalError, HorovodMismatchError)


def _at_end_of_child() -> None:
    """Children of multiprocessing do not run the functions of atexit, only those of Finalize."""
    multiprocessing.util.Finalize(None, hvd.shutdown, exitpriority=100)


# A group whose threads outlive the interpreter would call Python after its end.
atexit.register(hvd.shutdown)
_at_end_of_child()
