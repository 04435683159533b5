"""`DistributedOptimizer`: `horovod.torch.optimizer`."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from peal.horovod._binding import hvd
from peal.horovod.compression import Compression, Compressor
from peal.horovod.exceptions import HorovodInternalError
from peal.horovod.functions import broadcast_object
from peal.horovod.mpi_ops import Adasum, Average, sparse_allreduce_async
from peal.horovod.process_sets import ProcessSet, global_process_set, set_id
from peal.horovod.util import split_list

Finish = Callable[[], None]  # waits for a reduction and puts its result into the gradients

_TOO_MANY_PASSES = (
    "Gradients were computed more than backward_passes_per_step times before call to step(). Increase "
    "backward_passes_per_step to accumulate gradients locally.")
_ZEROED_TOO_EARLY = (
    "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
    "optimizer.synchronize(). This is prohibited as it can cause a race condition.")
_REDUCED_TWICE = (
    "optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize(). "
    "This can cause training slowdown. You may want to consider using optimizer.skip_synchronize() context "
    "if you use optimizer.synchronize() in your code.")


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
    if isinstance(optimizer, _Wrapper):  # wrapped again, such as with another compression
        optimizer._unhook()
        optimizer = optimizer._wrapped
    names = _checked_names(optimizer, named_parameters)
    kind = _Delta if op == Adasum and hvd.size() > 1 else _Averaged
    cls: Any = type(type(optimizer).__name__, (kind, type(optimizer)), {"__module__": __name__})
    wrapped = cls.__new__(cls)
    # Shares state, param_groups and hooks. A scheduler may have put its own `step` on the old object.
    vars(wrapped).update({key: value for key, value in vars(optimizer).items() if key != "step"})
    vars(wrapped).update(
        _wrapped=optimizer, _parameter_names=names, _compression=compression, op=op,
        backward_passes_per_step=backward_passes_per_step, process_set=process_set,
        gradient_predivide_factor=gradient_predivide_factor, _sparse_as_dense=sparse_as_dense,
        _averages_passes=average_aggregated_gradients)
    wrapped._begin(_checked_groups(groups))
    return wrapped


def _checked_names(optimizer: torch.optim.Optimizer,
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
    unnamed = [id(p) for group in optimizer.param_groups for p in group["params"] if p not in names]
    if unnamed:
        raise ValueError("named_parameters was specified, but one or more model parameters were not named. "
                         f"Python object ids: {', '.join(map(str, unnamed))}")
    return names


def _checked_groups(groups: Any) -> int | list[tuple[Tensor, ...]]:
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


class _Wrapper:
    """What the wrapped optimizers have in common. Comes before the optimizer's class in the dynamic class,
    so `super()` is that class."""

    _wrapped: torch.optim.Optimizer
    _parameter_names: dict[Tensor, str]
    _compression: type[Compressor]
    backward_passes_per_step: int
    op: int
    process_set: ProcessSet
    gradient_predivide_factor: float
    _sparse_as_dense: bool
    _averages_passes: bool
    param_groups: list[dict[str, Any]]
    state: Any

    _delays: dict[Tensor, int]  # passes until the reduction starts
    _handles: dict[Any, Finish | None]  # by parameter, or by group; None: accumulates still
    _hooked: list[Tensor]
    _by_scaler: bool  # whether a GradScaler has caused the last synchronize()

    def _begin(self, groups: int | list[tuple[Tensor, ...]]) -> None:
        self._handles = {}
        self._hooked = []
        self._hooks: list[Any] = []
        self._synchronized = self._by_scaler = False
        self._should_synchronize = True
        self._reset_delays()
        is_alone = hvd.size() == 1 and os.environ.get("HOROVOD_ELASTIC") != "1"
        if is_alone or self.process_set.included() is False:
            return
        self._hook(self.param_groups)
        self._form_groups(groups)

    def _hook(self, param_groups: list[dict[str, Any]]) -> None:
        own = weakref.ref(self)  # an optimizer that the program drops must not reduce any more

        def after_gradient(p: Tensor) -> None:
            optimizer = own()
            if optimizer is not None:
                optimizer._after_gradient(p)

        for p in (p for group in param_groups for p in group["params"] if p.requires_grad):
            self._hooked.append(p)
            self._hooks.append(p.register_post_accumulate_grad_hook(after_gradient))

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """The new parameters are reduced too, under names of their places."""
        super().add_param_group(param_group)  # type: ignore[misc]
        for i, p in enumerate(self.param_groups[-1]["params"]):
            self._parameter_names.setdefault(p, f"allreduce.noname.{len(self.param_groups) - 1}.{i}")
            self._delays.setdefault(p, self.backward_passes_per_step)
        if self._hooked:
            self._hook(self.param_groups[-1:])

    def _form_groups(self, groups: int | list[tuple[Tensor, ...]]) -> None:
        pass

    def _after_gradient(self, p: Tensor) -> None:
        raise NotImplementedError

    def _reset_delays(self) -> None:
        self._delays = dict.fromkeys(self._parameter_names, self.backward_passes_per_step)

    def set_backward_passes_per_step(self, passes: int) -> None:
        if passes <= 0:
            raise ValueError("backward_passes_per_step must be > 0")
        self.backward_passes_per_step = passes
        self._reset_delays()

    def _of_a_pass(self) -> float:
        return 1.0 / self.backward_passes_per_step if self._averages_passes else 1.0

    def _count_pass(self, p: Tensor) -> bool:
        """Whether this was the last pass before the reduction."""
        left = self._delays.get(p, 1) - 1
        if left < 0:
            raise AssertionError(_TOO_MANY_PASSES)
        self._delays[p] = left
        self._synchronized = self._by_scaler = False
        return left == 0

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self._handles:
            raise AssertionError(_ZEROED_TOO_EARLY)
        super().zero_grad(set_to_none)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._drop_reductions()
        super().load_state_dict(*args, **kwargs)  # type: ignore[misc]
        # Schedulers that were made before the wrapping act on the old object.
        self._wrapped.state, self._wrapped.param_groups = self.state, self.param_groups

    def _drop_reductions(self) -> None:
        """Ends the reductions in flight without a use of their results."""
        with contextlib.suppress(HorovodInternalError):
            self._finish_all()
        self._synchronized = self._by_scaler = False
        self._should_synchronize = True

    def _tell_old_schedulers(self) -> None:
        """A scheduler that was made before the wrapping warns if the old object has not taken a step."""
        self._wrapped._opt_called = True  # type: ignore[attr-defined]

    def _finish_all(self) -> None:
        """Waits for all reductions in flight, and then raises the first error."""
        first: BaseException | None = None
        for finish in self._handles.values():
            try:
                if finish is not None:
                    finish()
            except HorovodInternalError as error:
                first = first or error
        self._handles.clear()
        self._reset_delays()
        if first is not None:
            raise first


class _Averaged(_Wrapper):
    """Reduces gradients. op: any but Adasum."""

    _group_of: dict[Tensor, tuple[Tensor, ...]]

    def _form_groups(self, groups: int | list[tuple[Tensor, ...]]) -> None:
        if isinstance(groups, int):
            if groups == 0:
                self._group_of = {}
                return
            # In rank 0's order of the parameters, which are sometimes in a set or dict of the program.
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
            _put(p, self._compression.decompress(_result(handle), context))

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
            reduced = _result(handle)
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

    # The step of the optimizer's class runs torch's hooks for steps: not a second time around this one.
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
        """torch's GradScaler.step asks this first, before it searches the gradients for infinities. So the
        reductions end here, and all ranks search the same gradients."""
        if self._should_synchronize and self._hooked and not self._synchronized:
            self.synchronize()
            self._by_scaler = True
        return bool(self.__dict__.get("_step_supports_amp_scaling", False))

    @_step_supports_amp_scaling.setter
    def _step_supports_amp_scaling(self, value: bool) -> None:
        self.__dict__["_step_supports_amp_scaling"] = value


class _Delta(_Wrapper):
    """op=Adasum: each parameter takes its step in backward, as soon as its gradient is complete. The changes
    of the ranks are combined by Adasum, and added to the value before the step."""

    def _after_gradient(self, p: Tensor) -> None:
        self._handles[p] = self._reduce(p) if self._count_pass(p) else None

    def _reduce(self, p: Tensor) -> Finish:
        start = p.detach().clone(memory_format=torch.preserve_format)
        if self._averages_passes and p.grad is not None:
            p.grad *= self._of_a_pass()
        self._step_on(p)
        delta = p.detach() - start
        with torch.no_grad():
            p.copy_(start)
        compressed, context = self._compression.compress(delta)
        handle = hvd.allreduce_async(compressed, True, self._parameter_names[p], Adasum, 1.0, 1.0,
                                     set_id(self.process_set))

        def finish() -> None:
            change = _result(handle)
            with torch.no_grad():
                p.add_(self._compression.decompress(change, context))

        return finish

    def _step_on(self, p: Tensor) -> None:
        """The optimizer's step for one parameter. A parameter without a gradient does not change."""
        lists = [group["params"] for group in self.param_groups]
        try:
            for group in self.param_groups:
                group["params"] = [p] if any(one is p for one in group["params"]) else []
            super().step()  # type: ignore[misc]
        finally:
            for group, params in zip(self.param_groups, lists):
                group["params"] = params

    def synchronize(self) -> None:
        """Does nothing: the step combines the changes."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("Skipping synchronization is not supported when using Adasum optimizer.")
        yield

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Waits for the changes of all ranks and adds them."""
        loss = None if closure is None else closure()
        self._tell_old_schedulers()
        for p in self._hooked:
            if self._handles.get(p) is None:
                self._handles[p] = self._reduce(p)
        self._finish_all()
        return loss

    step.hooked = True  # type: ignore[attr-defined]


def _result(handle: int) -> Any:
    result = hvd.synchronize(handle)
    if result is None:
        raise HorovodInternalError("a reduction of gradients was dropped, because the group of its ranks was "
                                   "shut down between backward and the step")
    return result


def _gradient(p: Tensor) -> Tensor:
    if p.grad is None:
        p.grad = torch.zeros_like(p, requires_grad=False)
    return p.grad


def _put(p: Tensor, reduced: Tensor) -> None:
    """The reduced gradient into p.grad. Without compression it is there already."""
    grad = _gradient(p)
    if grad.is_sparse:
        p.grad = _sparse_again(reduced, grad)
    elif reduced.data_ptr() != grad.data_ptr():
        with torch.no_grad():
            grad.copy_(reduced)


def _sparse_again(dense: Tensor, like: Tensor) -> Tensor:
    """A sparse tensor with the same number of sparse dimensions as `like`."""
    return dense.detach().to(like.dtype).to_sparse(like.sparse_dim()).coalesce()
