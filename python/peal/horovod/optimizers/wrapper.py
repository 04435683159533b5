"""What all wrapped optimizers have in common: hooks, counted passes, and reductions in flight."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any, Callable

import torch
from torch import Tensor

from peal.horovod._binding import hvd
from peal.horovod.compression import Compressor
from peal.horovod.exceptions import HorovodInternalError
from peal.horovod.process_sets import ProcessSet

Finish = Callable[[], None]  # waits for a reduction and puts its result into the gradients

_TOO_MANY_PASSES = (
    "Gradients were computed more than backward_passes_per_step times before call to step(). Increase "
    "backward_passes_per_step to accumulate gradients locally.")
_ZEROED_TOO_EARLY = (
    "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
    "optimizer.synchronize(). This is prohibited as it can cause a race condition.")


class Wrapper:
    """The common base of the wrapped optimizers. In the bases of the dynamic class it comes before the
    optimizer's class, so `super()` is the optimizer's class."""

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
    _handles: dict[Any, Finish | None]  # by parameter, or by group; None: still accumulates
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
        own = weakref.ref(self)  # after the program has dropped the optimizer, its hooks must not reduce

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
        """The new parameters are reduced too. Their names consist of the numbers of the group and the parameter."""
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
        """Waits for the reductions in flight, and ignores their results."""
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


def result_of(handle: int) -> Any:
    result = hvd.synchronize(handle)
    if result is None:
        raise HorovodInternalError("a reduction of gradients was dropped, because the group of its ranks was "
                                   "shut down between backward and the step")
    return result
