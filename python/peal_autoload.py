"""Registers the backend of ``torch.distributed.init_process_group("peal")``. torch calls `register`
at its import (entry points ``torch.backends`` and ``torch.distributed.backends``). This file is outside
the package, so that torch loads no other part of peal before the first group is made."""


def register() -> None:
    """Registers the backend "peal", once, if torch has its distributed package."""
    import torch.distributed as dist

    if dist.is_available() and "peal" not in dist.Backend.backend_list:
        dist.Backend.register_backend("peal", _create, extended_api=True, devices=["cpu"])


def _create(options, backend_options):  # type: ignore[no-untyped-def]
    from peal import _torch

    return _torch.create(options, backend_options)
