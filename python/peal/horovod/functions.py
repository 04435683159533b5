"""Broadcasts of models, optimizers and objects: `horovod.torch.functions`.

Objects are pickled, by cloudpickle if it is installed: as in Horovod, the ranks trust each other.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping

import torch
from torch import Tensor

from peal._errors import words_of
from peal.horovod import mpi_ops, pickling
from peal.horovod._binding import hvd
from peal.horovod.process_sets import ProcessSet, global_process_set

_REFUSED = -1  # in the place of a size
_SMALL = 4096  # bytes of an object


# ---- parameters


def broadcast_parameters(params: Mapping[str, Any] | Iterable[Any], root_rank: int, *,
                         process_set: ProcessSet = global_process_set) -> None:
    """Makes the tensors equal to those of `root_rank`, in place: of ``model.state_dict()``,
    ``model.named_parameters()`` or ``model.parameters()``."""
    handles = [mpi_ops.broadcast_async_(tensor, root_rank, name, process_set)
               for name, tensor in _named(params)]
    for handle in handles:
        hvd.synchronize(handle)


def _named(params: Any) -> list[tuple[str | None, Tensor]]:
    if isinstance(params, Mapping):
        pairs = sorted(params.items())
    elif isinstance(params, (str, bytes, Tensor)) or not hasattr(params, "__iter__"):
        raise ValueError(f"invalid params of type: {type(params)}")
    else:
        pairs = [one if isinstance(one, tuple) else (None, one) for one in params]
    for name, value in pairs:
        if not isinstance(value, Tensor):
            raise ValueError(f"broadcast_parameters: {name!r} is not a tensor but {type(value)}: send it by "
                             "broadcast_object")
    return pairs


# ---- optimizers


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: torch.nn.Module | None = None, *,
                              process_set: ProcessSet = global_process_set) -> None:
    """Makes the state and the options of the optimizer equal to those of `root_rank`. It does not call
    step(), so weights and counters stay as they are. Afterwards each parameter has a gradient: zeros if it
    had none, or if the optimizer had no state before. `model`: gradients of its sparse embeddings become
    sparse.

    Errors: ValueError for LBFGS, and if the optimizers of the ranks have different parameters.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    was_new = not optimizer.state
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    is_root = hvd.rank() == root_rank
    tensors: list[Tensor] = []
    plan = _plan_of(optimizer, parameters, tensors) if is_root else None
    plan = broadcast_object(plan, root_rank, "broadcast_optimizer_state", process_set)
    if plan.shapes != [tuple(p.shape) for p in parameters]:
        raise ValueError("broadcast_optimizer_state: the optimizer of this rank has other parameters than "
                         f"that of rank {root_rank}: {len(parameters)} and {len(plan.shapes)}, or other shapes")
    if not is_root:
        tensors = [torch.empty(one.shape, dtype=one.dtype,
                               device=None if one.parameter is None else parameters[one.parameter].device)
                   if not one.on_host else torch.empty(one.shape, dtype=one.dtype)
                   for one in plan.tensors]
    handles = [mpi_ops.broadcast_async_(tensor, root_rank, f"broadcast_optimizer_state.{i}", process_set)
               for i, tensor in enumerate(tensors)]
    for handle in handles:
        hvd.synchronize(handle)
    if not is_root:
        _load(optimizer, parameters, plan, tensors)
    _leave_zero_gradients(parameters, model, was_new)


@dataclass(frozen=True)
class _Place:
    """Stands for a tensor in what is pickled."""

    index: int


@dataclass(frozen=True)
class _Layout:
    shape: tuple[int, ...]
    dtype: torch.dtype
    parameter: int | None  # of whose state it is a part
    on_host: bool


@dataclass
class _Plan:
    """The state of an optimizer without its tensors."""

    shapes: list[tuple[int, ...]]
    state: dict[int, Any]
    groups: list[dict[str, Any]]
    tensors: list[_Layout]


def _plan_of(optimizer: torch.optim.Optimizer, parameters: list[Tensor], tensors: list[Tensor]) -> _Plan:
    """Appends the tensors of the state and of the options to `tensors`."""
    plan = _Plan([tuple(p.shape) for p in parameters], {}, [], [])

    def without_tensors(value: Any, parameter: int | None) -> Any:
        if isinstance(value, Tensor):
            plan.tensors.append(_Layout(tuple(value.shape), value.dtype, parameter,
                                        value.device.type == "cpu"))
            tensors.append(value)
            return _Place(len(tensors) - 1)
        return _rebuilt(value, lambda inner: without_tensors(inner, parameter))

    for index, p in enumerate(parameters):
        if p in optimizer.state:
            plan.state[index] = without_tensors(dict(optimizer.state[p]), index)
    for group in optimizer.param_groups:
        plan.groups.append({name: without_tensors(value, None)
                            for name, value in group.items() if name != "params"})
    return plan


def _load(optimizer: torch.optim.Optimizer, parameters: list[Tensor], plan: _Plan,
          tensors: list[Tensor]) -> None:
    def with_tensors(value: Any) -> Any:
        return tensors[value.index] if isinstance(value, _Place) else _rebuilt(value, with_tensors)

    # In place, because a wrapped optimizer and its schedulers share these objects.
    optimizer.state.clear()
    for index, state in plan.state.items():
        optimizer.state[parameters[index]] = with_tensors(state)
    for group, options in zip(optimizer.param_groups, plan.groups):
        for name in [name for name in group if name != "params" and name not in options]:
            del group[name]
        group.update(with_tensors(options))


def _rebuilt(value: Any, change: Any) -> Any:
    """Containers with changed contents; other values as they are."""
    if type(value) is dict:
        return {key: change(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(change(inner) for inner in value)
    return value


def _leave_zero_gradients(parameters: list[Tensor], model: torch.nn.Module | None, all_of_them: bool) -> None:
    sparse = {id(module.weight) for module in (model.modules() if model is not None else ())
              if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse}
    for p in parameters:
        if not p.requires_grad or (p.grad is not None and not all_of_them):
            continue
        if id(p) in sparse:
            p.grad = torch.zeros(p.shape, dtype=p.dtype, device=p.device, layout=torch.sparse_coo)
        elif p.grad is not None and not p.grad.is_sparse:
            p.grad.detach_().zero_()
        else:
            p.grad = torch.zeros_like(p, requires_grad=False)


# ---- objects


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The root's object, on every rank. Objects of other ranks are ignored.

    Errors: ValueError on every rank (the root cannot pickle its object).
    """
    with _name_for("broadcast_object", name) as own_name:
        is_root = hvd.rank() == root_rank
        data = _pickled(obj) if is_root else bytearray()
        length = torch.tensor([_REFUSED if isinstance(data, str) else len(data)], dtype=torch.int64)
        mpi_ops.broadcast_(length, root_rank, f"{own_name}.sz", process_set)
        if int(length) == _REFUSED:
            raise ValueError(f"broadcast_object: rank {root_rank} cannot pickle its object"
                             + (f": {data}" if is_root else ": see the error of that rank"))
        assert isinstance(data, bytearray)
        room, part = _room_for(int(length))
        data.extend(bytes(room - len(data)))  # pickle ignores what follows an object
        mpi_ops.broadcast_(torch.frombuffer(data, dtype=torch.uint8), root_rank, own_name + part, process_set)
    return obj if is_root else pickling.loads(data)


def allgather_object(obj: Any, name: str | None = None, *,
                     process_set: ProcessSet = global_process_set) -> list[Any]:
    """The objects of all ranks, by rank, on every rank.

    Errors: ValueError on every rank (a rank cannot pickle its object).
    """
    with _name_for("allgather_object", name) as own_name:
        data = _pickled(obj)
        length = torch.tensor([_REFUSED if isinstance(data, str) else len(data)], dtype=torch.int64)
        lengths: list[int] = mpi_ops.allgather(length, f"{own_name}.sz", process_set).tolist()
        if _REFUSED in lengths:
            ranks = [(process_set.ranks or [])[i] for i, size in enumerate(lengths) if size == _REFUSED]
            raise ValueError(f"allgather_object: ranks {ranks} cannot pickle their objects"
                             + (f": {data}" if isinstance(data, str) else ""))
        assert isinstance(data, bytearray)
        gathered = mpi_ops.allgather(torch.frombuffer(data, dtype=torch.uint8), f"{own_name}.t", process_set)
    every = bytearray(sum(lengths))
    torch.frombuffer(every, dtype=torch.uint8).copy_(gathered)
    objects, begin = [], 0
    with memoryview(every) as view:
        for size in lengths:
            objects.append(pickling.loads(view[begin:begin + size]))
            begin += size
    return objects


def _room_for(length: int) -> tuple[int, str]:
    """How many bytes to send for an object of this length, and the last part of the operation's name. For small
    objects this is a power of two, and each power has its own name. So the name and the shape repeat, and the
    ranks need no new announcement."""
    if length > _SMALL:
        return length, ".t"
    room = 1 << max(length - 1, 63).bit_length()
    return room, f".t{room}"


def _pickled(obj: Any) -> bytearray | str:
    """The bytes, or why the object cannot be pickled: the other ranks must receive this first."""
    try:
        return bytearray(pickling.dumps(obj))
    except Exception as error:
        return words_of(error)


_names_in_flight: dict[str, set[int]] = {}
_names_lock = threading.Lock()


@contextlib.contextmanager
def _name_for(kind: str, given: str | None) -> Iterator[str]:
    """`given`, or a name that is free in this process: calls of two threads do not collide."""
    if given is not None:
        yield given
        return
    with _names_lock:
        taken = _names_in_flight.setdefault(kind, set())
        number = next(n for n in range(len(taken) + 1) if n not in taken)
        taken.add(number)
    try:
        yield f"{kind}.{number}"
    finally:
        with _names_lock:
            taken.discard(number)
