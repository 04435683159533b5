"""Loads `peal._hvd`, the operations by name in C++, and gives it the exception classes. Its groups end with
the process."""

from __future__ import annotations

from peal import _torch
from peal.horovod.exceptions import HorovodInternalError, HorovodMismatchError

_torch.check_build()

from peal import _hvd as hvd  # noqa: E402  (the check above explains why this would fail)

__all__ = ["hvd"]

hvd.set_errors(HorovodInternalError, HorovodMismatchError)
