"""`DistributedOptimizer`: `horovod.torch.optimizer`."""

from __future__ import annotations

import warnings
from typing import Any, Iterable, Sequence

import torch
from torch import Tensor

from peal.horovod._binding import hvd
from peal.horovod.compression import Compression, Compressor
from peal.horovod.mpi_ops import Adasum, Average
from peal.horovod.optimizers.averaged import Averaged
from peal.horovod.optimizers.delta import Delta
from peal.horovod.optimizers.wrapper import Wrapper
from peal.horovod.process_sets import ProcessSet, global_process_set


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Tensor]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    *,
    average_aggregated_gradients: bool = False,
) -> Any:
    """An optimizer of the same class, with the same state, that reduces the gradients over the ranks
    before each step. The reduction of a gradient starts in backward, as soon as the gradient is complete;
    `step()` waits for all.

    - named_parameters: ``model.named_parameters()``. The names must be the same on all ranks.
    - compression: how gradients travel: `Compression.none`, `fp16`, `bf16` or your subclass of Compressor.
    - backward_passes_per_step: the reduction starts in the last of these passes. The sum of the passes is
      divided by their number only with `average_aggregated_gradients`, which is peal's own.
    - op: Average, Sum, Min, Max, Product, or Adasum, which reduces the change of each parameter instead.
    - gradient_predivide_factor f: with Average, gradients are multiplied by 1 / f before the sum, and by
      f / size after it.
    - groups: a number of groups, or lists of parameters; the gradients of a group travel together.
      num_groups: its deprecated name.
    - sparse_as_dense: sparse gradients travel as dense ones. Needed if a rank may have no gradient for
      such a parameter.

    With torch.amp.GradScaler, ``scaler.step(optimizer)`` waits for the reductions first. So all ranks find
    the same infinities, and skip the same steps.

    To change the gradients before the step::

        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
    """
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups` and will be removed in v0.23.0.",
                      DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if isinstance(optimizer, Wrapper):  # wrapped again, such as with another compression
        optimizer._unhook()
        optimizer = optimizer._wrapped
    names = checked_names(optimizer, named_parameters)
    kind = Delta if op == Adasum and hvd.size() > 1 else Averaged
    cls: Any = type(type(optimizer).__name__, (kind, type(optimizer)), {"__module__": __name__})
    wrapped = cls.__new__(cls)
    # Shares state, param_groups and hooks. A scheduler may have put its own `step` on the old object.
    vars(wrapped).update({key: value for key, value in vars(optimizer).items() if key != "step"})
    vars(wrapped).update(
        _wrapped=optimizer, _parameter_names=names, _compression=compression, op=op,
        backward_passes_per_step=backward_passes_per_step, process_set=process_set,
        gradient_predivide_factor=gradient_predivide_factor, _sparse_as_dense=sparse_as_dense,
        _averages_passes=average_aggregated_gradients)
    wrapped._begin(checked_groups(groups))
    return wrapped


def checked_names(optimizer: torch.optim.Optimizer,
                   named_parameters: Iterable[tuple[str, Tensor]] | None) -> dict[Tensor, str]:
    if named_parameters is None:
        return {p: f"allreduce.noname.{g}.{i}" for g, group in enumerate(optimizer.param_groups)
                for i, p in enumerate(group["params"])}
    pairs = list(named_parameters)
    if not all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str)
               and isinstance(one[1], Tensor) for one in pairs):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), usually produced "
                         "by model.named_parameters().")
    seen: set[str] = set()
    duplicates = {name for name, _ in pairs if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
    if duplicates:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: "
                         + ", ".join(sorted(duplicates)))
    names = {p: name for name, p in pairs}
    unnamed = [f"param_groups[{g}]['params'][{i}] of shape {tuple(p.shape)}"
               for g, group in enumerate(optimizer.param_groups)
               for i, p in enumerate(group["params"]) if p not in names]
    if unnamed:
        more = f" and {len(unnamed) - 5} more" if len(unnamed) > 5 else ""
        raise ValueError("named_parameters was specified, but one or more model parameters were not named: "
                         f"{', '.join(unnamed[:5])}{more}")
    return names


def checked_groups(groups: Any) -> int | list[tuple[Tensor, ...]]:
    if groups is None:
        return 0
    if isinstance(groups, int) and not isinstance(groups, bool) and groups > 0:
        return groups
    if not isinstance(groups, (list, tuple)) or not all(isinstance(one, (list, tuple)) for one in groups):
        raise ValueError("groups should be a positive integer or a list of list of torch.Tensor.")
    seen: set[int] = set()
    for p in (p for one in groups for p in one):
        if not isinstance(p, Tensor):
            raise ValueError("groups must consist of torch.Tensor.")
        if id(p) in seen:
            raise ValueError("A parameter can only appear once in groups.")
        seen.add(id(p))
    return [tuple(one) for one in groups]
