"""Horovod's API on peal: ``import peal.horovod as hvd`` in place of ``import horovod.torch as hvd``.

All public names of `horovod.torch` 0.28.1, with their signatures, defaults and results. Scripts that say
``import horovod.torch`` run unchanged by ``python -m peal.horovod script.py``, or after
``peal.horovod.install()``.
"""

from __future__ import annotations

from peal.horovod import elastic, runner
from peal.horovod.aliases import install
from peal.horovod.compression import Compression
from peal.horovod.exceptions import (HorovodInternalError, HorovodMismatchError, HorovodVersionMismatchError,
                                     HostsUpdatedInterrupt)
from peal.horovod.functions import (allgather_object, broadcast_object, broadcast_optimizer_state,
                                    broadcast_parameters)
from peal.horovod.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum, allgather, allgather_async, allreduce, allreduce_,
    allreduce_async, allreduce_async_, alltoall, alltoall_async, barrier, broadcast, broadcast_,
    broadcast_async, broadcast_async_, ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built,
    gloo_enabled, grouped_allgather, grouped_allgather_async, grouped_allreduce, grouped_allreduce_,
    grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter, grouped_reducescatter_async,
    init, is_homogeneous, is_initialized, join, local_rank, local_size, mpi_built, mpi_enabled,
    mpi_threads_supported, nccl_built, poll, rank, reducescatter, reducescatter_async, rocm_built, shutdown,
    size, sparse_allreduce_async, start_timeline, stop_timeline, synchronize)
from peal.horovod.optimizer import DistributedOptimizer
from peal.horovod.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from peal.horovod.runner import run
from peal.horovod.sync_batch_norm import SyncBatchNorm

__version__ = "0.28.1"  # of the API

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "HorovodInternalError",
    "HorovodMismatchError", "HorovodVersionMismatchError", "HostsUpdatedInterrupt", "Max", "Min",
    "ProcessSet", "Product", "Sum", "SyncBatchNorm", "add_process_set", "allgather", "allgather_async",
    "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "alltoall",
    "alltoall_async", "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
    "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "ccl_built", "cross_rank",
    "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set", "gloo_built", "gloo_enabled",
    "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_",
    "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
    "grouped_reducescatter_async", "init", "install", "is_homogeneous", "is_initialized", "join",
    "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll",
    "rank", "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built", "run", "runner",
    "shutdown", "size", "sparse_allreduce_async", "start_timeline", "stop_timeline", "synchronize",
]
