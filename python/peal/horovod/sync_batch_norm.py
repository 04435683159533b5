"""Batch normalization over the batches of all ranks: `horovod.torch.sync_batch_norm`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from peal.horovod._binding import hvd
from peal.horovod.mpi_ops import Sum


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of N x C x ... tensors over the batches of all ranks. Batches may differ in size:
    each rank counts by the number of its samples. Works on the CPU too.

        y = (x - mean) / sqrt(variance + eps) * weight + bias
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = self.momentum or 0.0
        if self.training and self.track_running_stats:
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                factor = 1.0 / float(self.num_batches_tracked)
        uses_batch = self.training or not self.track_running_stats
        if not uses_batch or hvd.size() == 1:
            return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, uses_batch,
                                factor, self.eps)
        running = (self.running_mean, self.running_var) if self.training else (None, None)
        result: Tensor = _Normalize.apply(  # type: ignore[no-untyped-call]
            input, self.weight, self.bias, *running, self.eps, factor)
        return result


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None,
                running_mean: Tensor | None, running_var: Tensor | None, eps: float,
                factor: float) -> Tensor:
        count, mean, variance = _moments(input)
        inverse = torch.rsqrt(variance + eps)
        if running_mean is not None and running_var is not None:
            unbiased = variance * (count / (count - 1)) if count > 1 else variance
            running_mean.lerp_(mean.to(running_mean.dtype), factor)
            running_var.lerp_(unbiased.to(running_var.dtype), factor)
        normal = (input.to(mean.dtype) - _wide(mean, input)) * _wide(inverse, input)
        ctx.save_for_backward(normal, weight, inverse)
        ctx.count = count
        result = normal
        if weight is not None:
            result = result * _wide(weight, input)
        if bias is not None:
            result = result + _wide(bias, input)
        return result.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        normal, weight, inverse = ctx.saved_tensors
        grad = grads[0].to(normal.dtype)
        over = [d for d in range(grad.dim()) if d != 1]
        sums = torch.stack([grad.sum(over), (grad * normal).sum(over)])
        grad_input = None
        if ctx.needs_input_grad[0]:
            name = _name("gradient", sums)
            mean = hvd.allreduce(sums, False, name, Sum, 1.0, 1.0, 0) / ctx.count
            scale = inverse if weight is None else inverse * weight.to(inverse.dtype)
            grad_input = (grad - _wide(mean[0], grad) - normal * _wide(mean[1], grad)) * _wide(scale, grad)
            grad_input = grad_input.to(grads[0].dtype)
        # The optimizer reduces the gradients of weight and bias.
        grad_weight = sums[1].to(weight.dtype) if weight is not None and ctx.needs_input_grad[1] else None
        grad_bias = sums[0].to(grads[0].dtype) if ctx.needs_input_grad[2] else None
        return grad_input, grad_weight, grad_bias, None, None, None, None


def _wide(channels: Tensor, like: Tensor) -> Tensor:
    """One value for each channel, in the shape of 1 x C x 1 x ..."""
    return channels.view([1, -1] + [1] * (like.dim() - 2))


def _name(what: str, tensor: Tensor) -> str:
    """A name for each shape: the ranks need no new announcement if a name and its shape repeat."""
    return f"sync_batch_norm.{what}.{tensor.shape[-1]}"


def _moments(input: Tensor) -> tuple[float, Tensor, Tensor]:
    """The number of values of a channel, and their mean and variance, over all ranks. A rank may have an
    empty batch.

    Source: Chan, Golub and LeVeque 1979, for the combination of parts.
    """
    wide = input.to(torch.promote_types(input.dtype, torch.float32))
    over = [d for d in range(input.dim()) if d != 1]
    channels = input.shape[1]
    count = input.numel() // channels if channels else 0
    mean = wide.mean(over) if count else wide.new_zeros(channels)
    squares = (wide - _wide(mean, wide)).square().sum(over) if count else wide.new_zeros(channels)
    own = torch.cat([wide.new_tensor([count], dtype=torch.float64), mean.double(), squares.double()])
    every = hvd.allgather(own.unsqueeze(0), _name("moments", own), 0)
    counts, means, parts = every[:, :1], every[:, 1:1 + channels], every[:, 1 + channels:]
    total = counts.sum()
    all_mean = (counts * means).sum(0) / total
    all_squares = (parts + counts * (means - all_mean).square()).sum(0)
    return float(total), all_mean.to(wide.dtype), (all_squares / total).to(wide.dtype)
