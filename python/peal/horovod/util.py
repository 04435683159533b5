"""What the installation can do, and small helpers that scripts import from `horovod.common.util`."""

from __future__ import annotations

import contextlib
import os
import sysconfig
import warnings
from typing import Any, Callable, Iterator, Sequence, TypeVar

import torch

from peal.horovod._binding import hvd

Item = TypeVar("Item")

EXTENSIONS = ["torch"]


# ---- what was built. `verbose` is Horovod's parameter, and has no effect.


def gloo_built(verbose: bool = False) -> bool:
    """True: scripts and frameworks choose their path for the CPU by it. The operations are peal's."""
    return True


def mpi_built(verbose: bool = False) -> bool:
    return False


def nccl_built(verbose: bool = False) -> int:
    """0: the operations do not use NCCL. Horovod returns NCCL's version here."""
    return 0


def ddl_built(verbose: bool = False) -> bool:
    return False


def ccl_built(verbose: bool = False) -> bool:
    return False


def rocm_built(verbose: bool = False) -> bool:
    return False


def cuda_built(verbose: bool = False) -> bool:
    """Whether this torch has CUDA. Tensors of a GPU go through the host's memory."""
    return torch.version.cuda is not None


def gloo_enabled() -> bool:
    _check_initialized()
    return True


def mpi_enabled() -> bool:
    _check_initialized()
    return False


def mpi_threads_supported() -> bool:
    _check_initialized()
    raise ValueError("Horovod MPI is not enabled; rebuild with MPI support: peal starts without MPI")


def _check_initialized() -> None:
    hvd.rank()  # raises ValueError before init


# ---- helpers


def get_ext_suffix() -> str:
    return str(sysconfig.get_config_var("EXT_SUFFIX") or ".so")


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    return ext_base_name in EXTENSIONS


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    return extension_available(ext_base_name) and torch.cuda.is_available()


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """ImportError for the frameworks other than torch."""
    if not extension_available(ext_name.rpartition(".")[2]):
        raise ImportError(f"Extension {ext_name} has not been built: peal.horovod is for torch")


def check_installed_version(name: str, version: str, exception: Exception | None = None) -> None:
    """Does nothing: importing `peal.horovod` has checked torch's version."""


@contextlib.contextmanager
def env(**kwargs: str | None) -> Iterator[None]:
    """Sets environment variables for a block. None leaves a variable as it is."""
    values = {name: value for name, value in kwargs.items() if value is not None}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def get_average_backwards_compatibility_fun(reduce_ops: Any) -> Callable[[int | None, bool | None], int]:
    """A function of `op` and the deprecated `average` that returns the reduction."""
    average_op: int = reduce_ops.Average
    sum_op: int = reduce_ops.Sum

    def chosen(op: int | None, average: bool | None) -> int:
        if average is None:
            return average_op if op is None else op
        if op is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of them.")
        warnings.warn("Parameter `average` has been replaced with `op` and will be removed in v1.0",
                      DeprecationWarning, stacklevel=3)
        return average_op if average else sum_op

    return chosen


def num_rank_is_power_2(num_rank: int) -> bool:
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l: Sequence[Item], n: int) -> list[Sequence[Item]]:  # noqa: E741  (Horovod's name)
    """`n` parts of almost equal length."""
    size, longer = divmod(len(l), n)
    return [l[i * size + min(i, longer):(i + 1) * size + min(i + 1, longer)] for i in range(n)]


def is_iterable(x: object) -> bool:
    try:
        iter(x)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True
