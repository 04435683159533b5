"""peal: process groups for Python, over arrays of any kind.

A *group* is n processes, its *ranks* 0 to n-1, that work on data together::

    import numpy, peal

    with peal.init_process_group() as group:
        data = numpy.ones(4, dtype=numpy.float32)
        group.all_reduce(data)             # now the sum over all ranks, on every rank

In a script started by ``peal run -n 4 script.py`` (or torchrun, mpirun, srun), `init_process_group`
needs no arguments. `spawn` starts a function on several ranks of this machine. Data are NumPy arrays,
torch tensors on the CPU, and other objects with the buffer protocol or DLPack, in contiguous memory.
peal does not need torch. With torch, ``torch.distributed.init_process_group("peal")`` makes torch's
collectives, DistributedDataParallel and FSDP run on peal; `peal.DistributedDataParallel` is torch's
with a faster reducer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from peal import _build, _core
from peal._core import (
    ANY_SOURCE,
    Memory,
    ProcessGroup,
    ReduceOp,
    Work,
    init_process_group,
    stop_requested,
)
from peal._ending import end_with_process
from peal._errors import Error
from peal._objects import add_object_collectives
from peal._spawn import SpawnError, spawn
from peal._stop import should_stop

if TYPE_CHECKING:
    from peal._ddp import DistributedDataParallel
    from peal._torch import TorchOptions

__version__ = _build.VERSION

__all__ = [
    "ANY_SOURCE",
    "DistributedDataParallel",
    "Error",
    "Memory",
    "ProcessGroup",
    "ReduceOp",
    "SpawnError",
    "TorchOptions",
    "Work",
    "init_process_group",
    "should_stop",
    "spawn",
    "stop_requested",
]

add_object_collectives(ProcessGroup)
end_with_process(_core)

if sys.modules.get("torch") is not None:
    # torch registers backends at its import, unless autoloading is off.
    from peal_autoload import register

    register()


def __getattr__(name: str) -> object:
    if name == "TorchOptions":  # needs torch
        from peal._torch import TorchOptions

        return TorchOptions
    if name == "DistributedDataParallel":  # needs torch
        from peal._ddp import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module 'peal' has no attribute {name!r}")
