"""The backend "peal" of torch.distributed. torch calls this module to make the
backend. The groups of the backend end when the process ends."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from peal import _build
from peal._ending import end_with_process
from peal._errors import Error, Kind


class DistError(Error, dist.DistBackendError):
    """A failed operation of torch.distributed on peal. It is a `peal.Error` and torch's
    DistBackendError."""

    def __init__(self, message: str, kind: Kind) -> None:
        # torch and its users search for this text.
        words = "after a timeout was reached: " if kind == "timeout" else ""
        super().__init__(words + message, kind)


@dataclass(frozen=True)
class TorchOptions:
    """`pg_options` of ``init_process_group("peal", pg_options=...)`` and of ``new_group``.

    lazy: the ranks connect at the group's first operation instead of when the group is made. All ranks
    must take part in that operation.
    """

    lazy: bool = False


def create(options: Any, backend_options: TorchOptions | None) -> Any:
    """A Backend of torch.distributed, from torch's `_DistributedBackendOptions`."""
    module = _load()
    if backend_options is not None and not isinstance(backend_options, TorchOptions):
        raise Error(
            f"pg_options of the backend \"peal\" must be peal.TorchOptions, not {backend_options!r}",
            "usage",
        )
    return module.create(
        store=options.store,
        rank=options.group_rank,
        size=options.group_size,
        timeout_s=options.timeout.total_seconds(),
        global_ranks=list(options.global_ranks_in_group),
        lazy=backend_options is not None and backend_options.lazy,
        # With torchrun, its agent serves the store in which the ranks meet; otherwise rank 0 does.
        store_ends_with_rank_0=os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
    )


@functools.cache
def _load() -> Any:
    """The extension module, if it was built for the running torch. After the first call, its groups
    end with the process, even if other code has imported the module before."""
    check_build()
    from peal import _c10d

    end_with_process(_c10d)
    return _c10d


def check_build() -> None:
    """Errors: unsupported (peal was built without torch, or for another release of torch)."""
    if not _build.TORCH_VERSION:
        raise Error(
            "this peal was built without torch: install it in an environment with torch, by "
            "pip install --no-build-isolation .",
            "unsupported",
        )
    if _release(_build.TORCH_VERSION) != _release(torch.__version__):
        raise Error(
            f"this peal was built for torch {_build.TORCH_VERSION}, but this is torch "
            f"{torch.__version__}: build it again, by pip install --no-build-isolation "
            "--force-reinstall .",
            "unsupported",
        )


def _release(version: str) -> str:
    return version.split("+")[0]
