"""Optimizers that reduce gradients, for all operators but Adasum."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any, Callable, Iterator

import torch
from torch import Tensor

from peal.horovod._binding import hvd
from peal.horovod.functions import broadcast_object
from peal.horovod.mpi_ops import sparse_allreduce_async
from peal.horovod.optimizers.wrapper import Finish, Wrapper, result_of
from peal.horovod.process_sets import set_id
from peal.horovod.util import split_list

_REDUCED_TWICE = (
    "optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize(). "
    "This can cause training slowdown. You may want to consider using optimizer.skip_synchronize() context "
    "if you use optimizer.synchronize() in your code.")


class Averaged(Wrapper):
    """Reduces gradients. `op` is not Adasum."""

    _group_of: dict[Tensor, tuple[Tensor, ...]]

    def _form_groups(self, groups: int | list[tuple[Tensor, ...]]) -> None:
        if isinstance(groups, int):
            if groups == 0:
                self._group_of = {}
                return
            # Rank 0's order of the parameters: if the program keeps them in a set, the order differs between ranks.
            order = broadcast_object([self._parameter_names[p] for p in self._hooked],
                                     (self.process_set.ranks or [0])[0], "optimizer_groups", self.process_set)
            place = {name: i for i, name in enumerate(order)}
            in_order = sorted(self._hooked, key=lambda p: place[self._parameter_names[p]])
            groups = [tuple(part) for part in split_list(in_order, groups) if part]
        hooked = set(self._hooked)
        self._group_of = {p: members for one in groups
                          for members in [tuple(p for p in one if p in hooked)] for p in members}

    # ---- backward

    def _after_gradient(self, p: Tensor) -> None:
        is_last = self._count_pass(p)
        members = self._group_of.get(p)
        if members is None:
            self._handles[p] = self._reduce(p) if is_last else None
            return
        self._handles[p] = None
        if is_last and all(self._delays[one] == 0 for one in members):
            self._reduce_group(members)

    def _reduce(self, p: Tensor) -> Finish:
        grad = _gradient(p)
        name = self._parameter_names[p]
        if grad.is_sparse and not self._sparse_as_dense:
            result = sparse_allreduce_async(grad * self._of_a_pass(), name, self.op, self.process_set)
            return lambda: setattr(p, "grad", result())
        compressed, context = self._compression.compress(grad.to_dense() if grad.is_sparse else grad)
        before, after = self._factors()
        handle = hvd.allreduce_async(compressed, True, name, self.op, before, after, set_id(self.process_set))

        def finish() -> None:
            _put(p, self._compression.decompress(result_of(handle), context))

        return finish

    def _reduce_group(self, members: tuple[Tensor, ...]) -> None:
        grads = [_gradient(p) for p in members]
        if any(grad.is_sparse for grad in grads) and not self._sparse_as_dense:
            raise ValueError("a group of gradients contains a sparse gradient: pass sparse_as_dense=True")
        pairs = [self._compression.compress(grad.to_dense() if grad.is_sparse else grad) for grad in grads]
        before, after = self._factors()
        handle = hvd.grouped_allreduce_async([tensor for tensor, _ in pairs], True,
                                             self._parameter_names[members[0]], self.op, before, after,
                                             set_id(self.process_set))

        def finish() -> None:
            reduced = result_of(handle)
            for p, tensor, (_, context) in zip(members, reduced, pairs):
                _put(p, self._compression.decompress(tensor, context))

        for p in members:
            self._handles.pop(p, None)
        self._handles[members] = finish

    def _factors(self) -> tuple[float, float]:
        factor = self.gradient_predivide_factor
        return 1.0 / factor, factor * self._of_a_pass()

    # ---- step

    def synchronize(self) -> None:
        """Waits for all reductions, so that the gradients may be changed before the step. Parameters
        without a gradient take part with zeros, because other ranks may have one."""
        started: set[Tensor] = set()
        for key, finish in self._handles.items():
            if finish is not None:
                started.update(key if isinstance(key, tuple) else (key,))
        for p in self._hooked:
            if p in started:
                continue
            members = self._group_of.get(p)
            if members is None:
                self._handles[p] = self._reduce(p)
            else:
                self._reduce_group(members)
                started.update(members)
        self._finish_all()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In this block, `step()` does not reduce: the program has called `synchronize()`."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Waits for the reductions, and takes the optimizer's step. With a closure, it reduces the gradients
        of each call of the closure."""
        if self._should_synchronize:
            if closure is None:
                if self._synchronized and not self._by_scaler:
                    warnings.warn(_REDUCED_TWICE, stacklevel=2)
                if not self._by_scaler:
                    self.synchronize()
            else:
                if self._handles:
                    self.synchronize()
                closure = self._reducing(closure)
        self._synchronized = self._by_scaler = False
        self._tell_old_schedulers()
        return super().step(closure)  # type: ignore[misc]

    # The step of the optimizer's class runs torch's step hooks. This mark prevents a second run around this step.
    step.hooked = True  # type: ignore[attr-defined]

    def _reducing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        @functools.wraps(closure)
        def reducing() -> Any:
            loss = closure()
            self.synchronize()
            return loss

        return reducing

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """torch's GradScaler.step reads this before it searches the gradients for infinities. So the reductions
        end here, and all ranks search the same gradients."""
        if self._should_synchronize and self._hooked and not self._synchronized:
            self.synchronize()
            self._by_scaler = True
        return bool(self.__dict__.get("_step_supports_amp_scaling", False))

    @_step_supports_amp_scaling.setter
    def _step_supports_amp_scaling(self, value: bool) -> None:
        self.__dict__["_step_supports_amp_scaling"] = value


def _gradient(p: Tensor) -> Tensor:
    if p.grad is None:
        p.grad = torch.zeros_like(p, requires_grad=False)
    return p.grad


def _put(p: Tensor, reduced: Tensor) -> None:
    """Copies the reduced gradient into p.grad. Without compression it is already there."""
    grad = _gradient(p)
    if grad.is_sparse:
        p.grad = _sparse_again(reduced, grad)
    elif reduced.data_ptr() != grad.data_ptr():
        with torch.no_grad():
            grad.copy_(reduced)


def _sparse_again(dense: Tensor, like: Tensor) -> Tensor:
    """A sparse tensor with the same number of sparse dimensions as `like`."""
    return dense.detach().to(like.dtype).to_sparse(like.sparse_dim()).coalesce()
