"""The operations: `horovod.torch.mpi_ops`. Thin over `peal._hvd`.

The ranks submit operations by name, in any order. Each operation has three forms: blocking,
asynchronous (`_async`, returns a handle for `poll` and `synchronize`), and in place (a `_` at the end of
its name). Only blocking forms that are not in place are differentiable.

ValueError is for a mistake that the call itself shows. HorovodInternalError is raised by `synchronize` and
by blocking forms, on all ranks.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Callable, Sequence, cast

import torch
from torch import Tensor

from peal.horovod._binding import hvd
from peal.horovod.compression import Compression, Compressor
from peal.horovod.job import (cross_rank, cross_size, init, is_homogeneous, is_initialized, local_rank,
                              local_size, rank, shutdown, size, start_timeline, stop_timeline)
from peal.horovod.process_sets import (ProcessSet, add_process_set, global_process_set,
                                       remove_process_set, set_id)
from peal.horovod.util import (ccl_built, cuda_built, ddl_built, get_average_backwards_compatibility_fun,
                               gloo_built, gloo_enabled, mpi_built, mpi_enabled, mpi_threads_supported,
                               nccl_built, num_rank_is_power_2, rocm_built)

__all__ = [
    "Adasum", "Average", "Max", "Min", "ProcessSet", "Product", "Sum", "add_process_set", "allgather",
    "allgather_async", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall",
    "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "ccl_built",
    "check_num_rank_power_of_2", "cross_rank", "cross_size", "cuda_built", "ddl_built", "global_process_set",
    "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allgather_async", "grouped_allreduce",
    "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
    "grouped_reducescatter_async", "handle_average_backwards_compatibility", "init", "is_homogeneous",
    "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "poll", "rank", "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built",
    "shutdown", "size", "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize",
]

Average, Sum, Adasum, Min, Max, Product = range(6)

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(sys.modules[__name__])


def check_num_rank_power_of_2(num_rank: int) -> bool:
    return num_rank_is_power_2(num_rank)


# ---- allreduce


def allreduce(tensor: Tensor, average: bool | None = None, name: str | None = None,
              compression: type[Compressor] = Compression.none, op: int | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> Tensor:
    """A new tensor: the reduction over the ranks by `op` (Average if None). Differentiable.

        result[i] = postscale_factor * op over ranks r of (prescale_factor * tensor_r[i])
    """
    if average is not None or op is None:
        op = handle_average_backwards_compatibility(op, average)
    number = set_id(process_set)
    if compression is Compression.none:
        return hvd.allreduce(tensor, False, name, op, prescale_factor, postscale_factor, number)
    compressed, context = compression.compress(tensor)
    return compression.decompress(
        hvd.allreduce(compressed, False, name, op, prescale_factor, postscale_factor, number), context)


def allreduce_async(tensor: Tensor, average: bool | None = None, name: str | None = None,
                    op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> int:
    """As `allreduce`, but returns a handle at once."""
    op = handle_average_backwards_compatibility(op, average)
    return hvd.allreduce_async(tensor, False, name, op, prescale_factor, postscale_factor,
                               set_id(process_set))


def allreduce_(tensor: Tensor, average: bool | None = None, name: str | None = None,
               op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> Tensor:
    """As `allreduce`, in place. Returns `tensor`."""
    if average is not None or op is None:
        op = handle_average_backwards_compatibility(op, average)
    number = set_id(process_set)
    return hvd.allreduce(tensor, True, name, op, prescale_factor, postscale_factor, number)


def allreduce_async_(tensor: Tensor, average: bool | None = None, name: str | None = None,
                     op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> int:
    """As `allreduce_`, but returns a handle at once."""
    op = handle_average_backwards_compatibility(op, average)
    return hvd.allreduce_async(tensor, True, name, op, prescale_factor, postscale_factor,
                               set_id(process_set))


# ---- grouped_allreduce: starts when all members are ready on all ranks


def grouped_allreduce(tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
                      compression: type[Compressor] = Compression.none, op: int | None = None,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> list[Tensor]:
    """As `allreduce` of each tensor, as one operation. Returns a list in the order of `tensors`."""
    op = handle_average_backwards_compatibility(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    reduced = hvd.grouped_allreduce([tensor for tensor, _ in pairs], False, name, op, prescale_factor,
                                    postscale_factor, set_id(process_set))
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def grouped_allreduce_async(tensors: Sequence[Tensor], average: bool | None = None,
                            name: str | None = None, op: int | None = None, prescale_factor: float = 1.0,
                            postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set) -> int:
    """As `grouped_allreduce`, but returns one handle at once."""
    op = handle_average_backwards_compatibility(op, average)
    return hvd.grouped_allreduce_async(list(tensors), False, name, op, prescale_factor, postscale_factor,
                                       set_id(process_set))


def grouped_allreduce_(tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None,
                       op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> list[Tensor]:
    """As `grouped_allreduce`, in place."""
    op = handle_average_backwards_compatibility(op, average)
    return hvd.grouped_allreduce(list(tensors), True, name, op, prescale_factor, postscale_factor,
                                 set_id(process_set))


def grouped_allreduce_async_(tensors: Sequence[Tensor], average: bool | None = None,
                             name: str | None = None, op: int | None = None, prescale_factor: float = 1.0,
                             postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> int:
    """As `grouped_allreduce_`, but returns one handle at once."""
    op = handle_average_backwards_compatibility(op, average)
    return hvd.grouped_allreduce_async(list(tensors), True, name, op, prescale_factor, postscale_factor,
                                       set_id(process_set))


def sparse_allreduce_async(tensor: Tensor, name: str, op: int,
                           process_set: ProcessSet = global_process_set) -> Callable[[], Tensor]:
    """Starts the Sum or Average of sparse tensors. Returns a function: call it to get the result, a
    coalesced sparse tensor. Ranks may have different numbers of values, also none."""
    if op not in (Average, Sum):
        raise ValueError(f"sparse_allreduce_async: op must be Average or Sum, not {op}")
    if not isinstance(tensor, Tensor) or not tensor.is_sparse:
        raise ValueError(f"sparse_allreduce_async: {name} is not a sparse tensor")
    handle = hvd.sparse_allreduce_async(tensor.detach(), name, op, set_id(process_set))
    return lambda: cast(Tensor, hvd.synchronize(handle))


# ---- allgather


def allgather(tensor: Tensor, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> Tensor:
    """The tensors of all ranks, concatenated along the first dimension, which may differ between ranks.
    Differentiable."""
    return hvd.allgather(tensor, name, set_id(process_set))


def allgather_async(tensor: Tensor, name: str | None = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """As `allgather`, but returns a handle at once."""
    return hvd.allgather_async(tensor, name, set_id(process_set))


def grouped_allgather(tensors: Sequence[Tensor], name: str | None = None,
                      process_set: ProcessSet = global_process_set) -> list[Tensor]:
    """As `allgather` of each tensor, as one operation. Returns a list in the order of `tensors`."""
    return hvd.grouped_allgather(list(tensors), name, set_id(process_set))


def grouped_allgather_async(tensors: Sequence[Tensor], name: str | None = None,
                            process_set: ProcessSet = global_process_set) -> int:
    """As `grouped_allgather`, but returns one handle at once."""
    return hvd.grouped_allgather_async(list(tensors), name, set_id(process_set))


# ---- broadcast


def broadcast(tensor: Tensor, root_rank: int, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> Tensor:
    """A new tensor with the values of the root. `root_rank` is a global rank, also with a process set.
    Differentiable."""
    return hvd.broadcast(tensor, False, root_rank, name, set_id(process_set))


def broadcast_async(tensor: Tensor, root_rank: int, name: str | None = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """As `broadcast`, but returns a handle at once."""
    return hvd.broadcast_async(tensor, False, root_rank, name, set_id(process_set))


def broadcast_(tensor: Tensor, root_rank: int, name: str | None = None,
               process_set: ProcessSet = global_process_set) -> Tensor:
    """As `broadcast`, in place. Returns `tensor`."""
    return hvd.broadcast(tensor, True, root_rank, name, set_id(process_set))


def broadcast_async_(tensor: Tensor, root_rank: int, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> int:
    """As `broadcast_`, but returns a handle at once."""
    return hvd.broadcast_async(tensor, True, root_rank, name, set_id(process_set))


# ---- alltoall


def alltoall(tensor: Tensor, splits: Sequence[int] | Tensor | None = None, name: str | None = None,
             process_set: ProcessSet = global_process_set) -> Any:
    """Rows for each rank: splits[r] rows go to the rank r of the set, or equal parts if `splits` is None.
    Returns the received rows; with `splits` also the number of rows from each rank, as int32.
    Differentiable."""
    received, received_splits = hvd.alltoall(tensor, _splits_of(splits), name, set_id(process_set))
    return received if splits is None else (received, received_splits)


def alltoall_async(tensor: Tensor, splits: Sequence[int] | Tensor | None = None, name: str | None = None,
                   process_set: ProcessSet = global_process_set) -> int:
    """As `alltoall`, but returns a handle at once. `synchronize` always returns the pair."""
    return hvd.alltoall_async(tensor, _splits_of(splits), name, set_id(process_set))


def _splits_of(splits: Sequence[int] | Tensor | None) -> Tensor | None:
    """Converts the splits to a tensor of int32. C++ makes the other checks, which need the number of ranks."""
    if splits is None:
        return None
    if not isinstance(splits, Tensor):
        try:
            splits = torch.tensor(list(map(operator.index, splits)), dtype=torch.int32)
        except (TypeError, RuntimeError):
            raise ValueError("alltoall: `splits` must be a list of integers or a tensor of the type torch.int32, "
                             f"and is {splits!r}") from None
    elif splits.dtype != torch.int32:
        raise ValueError("alltoall: `splits` must be a tensor of the type torch.int32, and has the type "
                         f"{splits.dtype}: pass splits.to(torch.int32), or a list of integers")
    if splits.numel() == 0:
        raise ValueError("alltoall: `splits` must have a number for each rank of the set, and is empty")
    return splits


# ---- reducescatter


def reducescatter(tensor: Tensor, name: str | None = None,
                  compression: type[Compressor] = Compression.none, op: int = Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> Tensor:
    """Reduces as `allreduce`, and gives each rank a part of the rows. With n ranks and q * n + r rows, the
    first r ranks get q + 1 rows, the others q. Differentiable."""
    compressed, context = compression.compress(tensor)
    return compression.decompress(
        hvd.reducescatter(compressed, name, op, prescale_factor, postscale_factor, set_id(process_set)),
        context)


def reducescatter_async(tensor: Tensor, name: str | None = None, op: int = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> int:
    """As `reducescatter`, but returns a handle at once."""
    return hvd.reducescatter_async(tensor, name, op, prescale_factor, postscale_factor, set_id(process_set))


def grouped_reducescatter(tensors: Sequence[Tensor], name: str | None = None,
                          compression: type[Compressor] = Compression.none, op: int = Average,
                          process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[Tensor]:
    """As `reducescatter` of each tensor, as one operation. Returns a list in the order of `tensors`."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    reduced = hvd.grouped_reducescatter([tensor for tensor, _ in pairs], name, op, prescale_factor,
                                        postscale_factor, set_id(process_set))
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def grouped_reducescatter_async(tensors: Sequence[Tensor], name: str | None = None, op: int = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> int:
    """As `grouped_reducescatter`, but returns one handle at once."""
    return hvd.grouped_reducescatter_async(list(tensors), name, op, prescale_factor, postscale_factor,
                                           set_id(process_set))


# ---- waiting


def poll(handle: int) -> bool:
    """Whether the operation has ended, with or without an error. ValueError for a handle that is unknown or has
    been synchronized."""
    return hvd.poll(handle)


def synchronize(handle: int) -> Any:
    """Waits for the operation and returns its result: a tensor, a list for grouped operations, the pair
    for `alltoall`. Returns None for a handle that is unknown or has been synchronized."""
    return hvd.synchronize(handle)


def join(device: int = -1) -> int:
    """For a rank that has no more data: takes part in the allreduces of the other ranks, as zeros, until all
    ranks have called `join`. Returns the rank that was last. `device` has no effect.

    Meanwhile the other operations raise HorovodInternalError on all ranks, unless ``init(while_joined="all")``
    allows them. Average divides by the number of all ranks. Min, Max and Product leave the joined ranks out.
    """
    return hvd.join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the set have called it. It does not wait for other operations in flight."""
    hvd.barrier(set_id(process_set))
