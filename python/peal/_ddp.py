"""`peal.DistributedDataParallel`: torch's DistributedDataParallel with peal's reducer in C++."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Callable, Iterator

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.nn.parallel import DistributedDataParallel as TorchDDP

from peal import _torch
from peal._errors import Error

_MIB = 1 << 20


class DistributedDataParallel(TorchDDP):
    """A module whose parameters are, and stay, the same on every rank of a process group.

    Arguments, methods, `state_dict` keys and results are those of
    `torch.nn.parallel.DistributedDataParallel`, of which this is a subclass. peal's reducer averages
    the gradients in place of torch's. The process group must be of the backend "peal"::

        dist.init_process_group("peal")
        model = peal.DistributedDataParallel(module)

    What differs from torch:

    - Parameters that a pass does not reach are not an error, also without `find_unused_parameters`. If no
      rank reaches a parameter, its gradient does not change.
    - Buffers are broadcast after backward and not before forward: they are equal on all ranks
      whenever no step is under way, and a forward pass does not communicate. So one rank may
      evaluate alone.
    - Gradients are always in the buckets (`gradient_as_bucket_view`), and stay there if
      `zero_grad()` drops them. A gradient that is kept from an earlier step is overwritten.
    - Backward passes inside a backward pass (`use_reentrant=True` of torch's checkpoint) need no
      `static_graph`, except for a layer that is checkpointed in several places.
    - `average`: "mean" is torch's. "sum" adds the gradients of the ranks. "samples" weights each rank
      by the number of its samples, the rows of forward's first tensor, so that batches may differ in
      size; `set_samples` gives another number. To discard passes of `no_sync`, drop their gradients by
      `zero_grad()`. `zero_grad(set_to_none=False)` keeps their samples, with gradients of zero.
    - `join` of "samples" is exact: a rank without data counts as zero samples.

    Errors: peal.Error: mismatch (the modules of the ranks differ), unsupported (a group of another
    backend, parameters that are not on the CPU), and the errors of the operations. Also usage: a
    parameter is reached again after its gradient was sent, or average="samples" has no number of
    samples. backward() raises them too. ValueError and RuntimeError as in torch.
    """

    # Unlike torch's, this constructor makes no torch.distributed.Reducer, so it does not call torch's.
    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        *,
        average: str = "mean",
    ) -> None:
        torch.nn.Module.__init__(self)
        Joinable.__init__(self)
        _refuse(delay_all_reduce_named_params=delay_all_reduce_named_params,
                param_to_hook_all_reduce=param_to_hook_all_reduce,
                mixed_precision=mixed_precision, bucket_cap_mb_list=bucket_cap_mb_list)
        if device_ids or output_device is not None:
            raise ValueError(
                "device_ids and output_device are for modules on a GPU, and peal.DistributedDataParallel "
                f"averages on the CPU: leave them out (got {device_ids} and {output_device})")
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            process_group = device_mesh.get_group(mesh_dim=0)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.dim = dim
        self.device_ids = None
        self.output_device = None
        self.module = module
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = True
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.forward_sync_buffers = next(
            (given for given in (forward_sync_buffers, broadcast_buffers) if given is not None), True)
        self.broadcast_bucket_size = 250 * _MIB
        self.average = average
        self._init_sync = init_sync
        self._syncs_buffers_first = forward_sync_buffers is not None or broadcast_buffers is not False
        self._cap = bucket_cap_mb
        self._comm_hooks: list[tuple[Callable[..., Any], Any]] = []
        self._start(process_group or dist.group.WORLD)

    def _start(self, process_group: Any) -> None:
        if process_group is None:
            raise RuntimeError(
                "Default process group has not been initialized, please make sure to call "
                "torch.distributed.init_process_group(\"peal\") before peal.DistributedDataParallel.")
        parameters = [(name, parameter)
                      for name, parameter in self.module.named_parameters(remove_duplicate=False)
                      if name not in self.parameters_to_ignore]
        if not any(parameter.requires_grad for _, parameter in parameters):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any "
                               "parameter that requires a gradient.")
        for name, parameter in parameters:
            if torch.nn.parameter.is_lazy(parameter):
                raise RuntimeError(
                    f"{name} has no shape yet: run a forward pass before "
                    "peal.DistributedDataParallel, so that lazy modules know their shapes")
            if parameter.device.type != "cpu":
                raise Error(
                    f"{name} is on {parameter.device}, and peal.DistributedDataParallel is for modules on "
                    "the CPU: move the module there, or use torch.nn.parallel.DistributedDataParallel with "
                    "the backend \"cpu:peal,cuda:nccl\"", "unsupported")
        self._has_run = False
        self.process_group = process_group
        self.device = parameters[0][1].device
        self.device_type = self.device.type
        if self._init_sync and self._syncs_buffers_first and not self.forward_sync_buffers:
            self._broadcast_buffers_once()
        cap = _MIB * (25 if self._cap is None else self._cap)
        self._reducer = _torch._load().Reducer(
            _backend_of(process_group),
            parameters,
            functools.partial(_buffers_of, weakref.ref(self))
            if self.forward_sync_buffers else None,
            bucket_bytes=int(cap),
            first_bucket_bytes=int(min(cap, _MIB) if self._cap is None else cap),
            average=self.average,
            sync_buffers=self.forward_sync_buffers,
            init_sync=self._init_sync,
            static_graph=self.static_graph,
        )

    def _broadcast_buffers_once(self) -> None:
        for _, buffer in _buffers(self.module, self.parameters_to_ignore):
            dist.broadcast(buffer, group=self.process_group, group_src=0)

    # ---- passes

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._has_run:
            self._refuse_optimizers_in_backward()
            self._has_run = True
        if self._join_config.enable:
            Join.notify_join_context(self)
            _untyped(self)._check_global_requires_backward_grad_sync(is_joined_rank=False)
        samples = None
        if self.average == "samples":
            samples = _rows((*inputs, *kwargs.values()))
        self._reducer.before_forward(self.require_backward_grad_sync, samples)
        return self.module(*inputs, **kwargs)

    def _refuse_optimizers_in_backward(self) -> None:
        for name, parameter in self.module.named_parameters():
            if hasattr(parameter, "_in_backward_optimizers"):
                raise Error(
                    f"{name} has an optimizer that steps inside backward, before its gradient is "
                    "averaged: use the optimizer after backward, or "
                    "torch.nn.parallel.DistributedDataParallel, which also runs on peal", "unsupported")

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, forward and backward passes accumulate gradients on each rank. The first pass after
        it averages the sums."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def set_samples(self, samples: int) -> None:
        """For average="samples": the number of samples of the next backward pass. Call it between
        forward and backward."""
        self._reducer.set_samples(samples)

    def pass_without_data(self) -> bool:
        """Takes part in a backward pass of the other ranks, for a rank without data. This rank gets the
        same gradients. Returns False if no rank had data."""
        result: bool = self._reducer.pass_without_data()
        return result

    def sync_buffers(self) -> None:
        """Makes the buffers equal on all ranks, as backward does. Collective."""
        self._reducer.sync_buffers()

    # ---- ranks with different numbers of batches

    def join_hook(self, **kwargs: Any) -> JoinHook:
        divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        self._reducer.divide_by_active_ranks(not divides_by_all)
        return _Joined(self)

    # ---- hooks

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """The hook averages each bucket in place of all_reduce: hook(state, bucket) returns a
        torch.futures.Future of the mean. torch's hooks work, bf16 ones too. Once for a module, before
        the first backward pass. Collective."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._comm_hooks:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hooks.append((hook, state))
        self._reducer.set_hook(weakref.ref(self), _call_hook)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        types = _untyped(dist).BuiltinCommHookType
        hooks = {types.ALLREDUCE: default_hooks.allreduce_hook,
                 types.FP16_COMPRESS: default_hooks.fp16_compress_hook}
        self.register_comm_hook(self.process_group, hooks[comm_hook_type])

    def _register_fused_optim(self, optim: type, *args: Any, **kwargs: Any) -> None:
        raise Error("peal.DistributedDataParallel does not run optimizers inside backward: call "
                    "optimizer.step() after backward()", "unsupported")

    def _register_buffer_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        raise Error("peal.DistributedDataParallel has no hooks for buffers: pass "
                    "forward_sync_buffers=False and send the buffers in the program", "unsupported")

    def _get_ddp_logging_data(self) -> Any:
        raise Error("peal.DistributedDataParallel does not collect torch's data about steps: use "
                    "torch.profiler", "unsupported")

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        self._get_ddp_logging_data()

    def _set_static_graph(self) -> None:
        self.static_graph = True
        self._reducer.set_static_graph()

    # ---- pickling: a loaded module uses the default group

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["process_group"], state["_reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        _untyped(torch.nn.Module).__setstate__(self, state)
        hooks, self._comm_hooks = self._comm_hooks, []
        self._start(dist.group.WORLD)
        for hook, hook_state in hooks:
            self.register_comm_hook(hook_state, hook)

    def train(self, mode: bool = True) -> DistributedDataParallel:
        torch.nn.Module.train(self, mode)
        return self


class _Joined(JoinHook):
    """Takes part in the passes of ranks that still have batches."""

    def __init__(self, model: DistributedDataParallel) -> None:
        super().__init__()
        self._model = model

    def main_hook(self) -> None:
        if _untyped(self._model)._check_global_requires_backward_grad_sync(is_joined_rank=True):
            self._model.zero_grad()  # of the last step, which the other ranks have dropped too
            self._model.pass_without_data()

    def post_hook(self, is_last_joiner: bool) -> None:
        self._model._reducer.divide_by_active_ranks(False)
        _untyped(self._model)._sync_final_model(is_last_joiner)


# The reducer holds its model only weakly. A reference from C++ is invisible to Python's garbage
# collector, so a cycle through it would never be freed. The model outlives its reducer.


def _buffers_of(model: weakref.ref[DistributedDataParallel]) -> list[tuple[str, torch.Tensor]]:
    alive = _alive(model)
    return _buffers(alive.module, alive.parameters_to_ignore)


def _call_hook(model: weakref.ref[DistributedDataParallel],
               bucket: torch._C._distributed_c10d.GradBucket) -> torch.futures.Future[torch.Tensor]:
    hook, state = _alive(model)._comm_hooks[0]
    result: torch.futures.Future[torch.Tensor] = hook(state, bucket)
    return result


def _alive(model: weakref.ref[DistributedDataParallel]) -> DistributedDataParallel:
    alive = model()
    assert alive is not None, "the model owns the reducer that calls this"
    return alive


def _buffers(module: torch.nn.Module, ignored: set[str]) -> list[tuple[str, torch.Tensor]]:
    return [(name, buffer) for name, buffer in module.named_buffers(remove_duplicate=False)
            if name not in ignored]


def _untyped(what: Any) -> Any:
    """For names of torch that have no types."""
    return what


def _backend_of(process_group: Any) -> Any:
    if not isinstance(process_group, dist.ProcessGroup):
        raise ValueError(
            f"this rank is not in process_group (got {process_group!r}): wrap the module only on "
            "the ranks of the group")
    return process_group._get_backend(torch.device("cpu"))


def _rows(values: Any) -> int | None:
    """The rows of the first tensor in tuples, lists and dicts."""
    if isinstance(values, torch.Tensor):
        return values.size(0) if values.dim() > 0 else None
    if isinstance(values, dict):
        values = tuple(values.values())
    if not isinstance(values, (tuple, list)):
        return None
    return next((rows for rows in map(_rows, values) if rows is not None), None)


def _refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise Error(f"peal.DistributedDataParallel does not support {name}: leave it out, or use "
                        "torch.nn.parallel.DistributedDataParallel, which also runs on peal",
                        "unsupported")
