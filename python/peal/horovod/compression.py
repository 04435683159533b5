"""Compression of gradients while they travel: `horovod.torch.compression`."""

from __future__ import annotations

from typing import Any

import torch


class Compressor:
    """The base class for compressions. Write a subclass for your own."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The tensor to send, and what `decompress` needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """The received tensor in its former type."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors in 16 bits: float16."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return _narrowed(tensor, torch.float16)

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return _widened(tensor, ctx)


class BF16Compressor(Compressor):
    """Sends floating-point tensors in 16 bits: bfloat16, which has the range of float32."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return _narrowed(tensor, torch.bfloat16)

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return _widened(tensor, ctx)


class Compression:
    """The compressions that exist: `none`, `fp16` and `bf16`."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor


def _narrowed(tensor: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, Any]:
    if not tensor.dtype.is_floating_point:
        return tensor, tensor.dtype
    return tensor.to(dtype), tensor.dtype


def _widened(tensor: torch.Tensor, dtype: Any) -> torch.Tensor:
    return tensor if dtype is None or not dtype.is_floating_point else tensor.to(dtype)
