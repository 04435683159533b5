"""Optimizers that combine the changes of parameters by Adasum."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
from torch import Tensor

from peal.horovod._binding import hvd
from peal.horovod.mpi_ops import Adasum
from peal.horovod.optimizers.wrapper import Finish, Wrapper, result_of
from peal.horovod.process_sets import set_id


class Delta(Wrapper):
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
            change = result_of(handle)
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
