"""Every operation of torch.distributed in every form, as data: how to call it, and the expected result.
Used by the tests and by the generator of the table of supported cases."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

REDUCED_TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                 torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
                 torch.complex128]
"""The types that peal reduces."""

MOVED_TYPES = REDUCED_TYPES + [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn,
                               torch.float8_e5m2]
"""The types that peal moves between ranks."""

OPS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"]


def op_of(name: str) -> Any:
    """A reduction by name. PREMUL_SUM has the factor 0.5."""
    if name == "PREMUL_SUM":
        return dist._make_nccl_premul_sum(0.5)
    return getattr(dist.ReduceOp, name)


def has_meaning(op: str, dtype: torch.dtype) -> bool:
    inexact = dtype.is_floating_point or dtype.is_complex
    if op == "AVG":
        return dtype != torch.bool
    if op == "PREMUL_SUM":
        return inexact
    if op in ("MIN", "MAX"):
        return not dtype.is_complex
    if op in ("BAND", "BOR", "BXOR"):
        return not inexact
    return True


def values(rank: int, dtype: torch.dtype, count: int, start: int = 0) -> torch.Tensor:
    """Small whole numbers, different on each rank. Sums and products of four of them are exact."""
    numbers = [(7 * rank + 3 * (start + i)) % 5 + 1 for i in range(count)]
    if dtype == torch.bool:
        return torch.tensor([n % 2 == 0 for n in numbers], dtype=torch.bool)
    if dtype.is_complex:
        return torch.tensor([complex(n, -n % 3) for n in numbers], dtype=dtype)
    return torch.tensor(numbers, dtype=torch.float32).to(dtype)


def reduced(op: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    """The closed form, in 64 bits."""
    dtype = tensors[0].dtype
    wide = torch.complex128 if dtype.is_complex else (
        torch.float64 if dtype.is_floating_point else torch.int64)
    stack = torch.stack([t.to(wide) for t in tensors])
    if op == "SUM":
        result = stack.sum(0)
    elif op == "AVG":
        total = stack.sum(0)
        if wide == torch.int64:  # the sum wraps, and the average is truncated
            result = torch.div(total.to(dtype).to(wide), len(tensors), rounding_mode="trunc")
        else:
            result = total / len(tensors)
    elif op == "PREMUL_SUM":
        result = (stack * 0.5).sum(0)
    elif op == "PRODUCT":
        result = stack.prod(0)
    elif op == "MIN":
        result = stack.amin(0)
    elif op == "MAX":
        result = stack.amax(0)
    else:
        fold = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[op]
        result = stack[0]
        for t in stack[1:]:
            result = fold(result, t)
    return result.to(dtype)  # bool: whether the result is not 0


@dataclass(frozen=True)
class Case:
    """One form of one operation.

    call(group, me, size, dtype, op) runs it and returns the outputs; expected(me, size, dtype, op)
    returns the right outputs. `op` is "" for operations that do not reduce.
    """

    operation: str
    form: str
    call: Callable[..., list[torch.Tensor]]
    expected: Callable[..., list[torch.Tensor]]
    reduces: bool = False


COUNT = 6
CASES: list[Case] = []


def _case(operation: str, form: str, expected: Callable[..., list[torch.Tensor]],
          reduces: bool = False) -> Callable[[Callable[..., list[torch.Tensor]]], None]:
    """Adds the decorated function, which returns its outputs, to CASES. A function with a sixth
    argument `run` gives two forms: `run` makes the given call and waits for its Work, if any."""
    def add(call: Callable[..., list[torch.Tensor]]) -> None:
        if call.__code__.co_argcount == 5:
            CASES.append(Case(operation, form, call, expected, reduces))
            return
        for name, run in ((form, _run), (f"{form}, async", _run_async)):
            CASES.append(
                Case(operation, name, functools.partial(call, run=run), expected, reduces))
    return add


def _run(call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    assert call(*arguments, **named) is None


def _run_async(call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    call(*arguments, **named, async_op=True).wait()


def _all(size: int, dtype: torch.dtype, count: int = COUNT) -> list[torch.Tensor]:
    return [values(rank, dtype, count) for rank in range(size)]


def _empty(dtype: torch.dtype, count: int = COUNT) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.uint8).to(dtype)


def _global(group: Any, rank: int) -> int:
    return dist.get_global_rank(group, rank)


def _wait(work: Any) -> None:
    if work is not None:
        work.wait()


# ---- broadcast

@_case("broadcast", "tensor", lambda me, size, dtype, op: [values(size - 1, dtype, COUNT)])
def _(group, me, size, dtype, op, run):
    data = values(me, dtype, COUNT)
    run(dist.broadcast, data, _global(group, size - 1), group=group)
    return [data]


@_case("broadcast", "strided", lambda me, size, dtype, op: [values(size - 1, dtype, COUNT)])
def _(group, me, size, dtype, op, run):
    data = _empty(dtype, 2 * COUNT)[::2]
    data.copy_(values(me, dtype, COUNT))
    run(dist.broadcast, data, _global(group, size - 1), group=group)
    return [data.clone()]


@_case("broadcast", "several tensors on each rank",
       lambda me, size, dtype, op: [values(size - 1, dtype, COUNT, start=1)] * 2)
def _(group, me, size, dtype, op):
    data = [values(me, dtype, COUNT), values(me, dtype, COUNT, start=1)]
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = size - 1, 1
    group.broadcast(data, options).wait()
    return data


# ---- all_reduce and reduce

def _sum_expected(me, size, dtype, op):
    return [reduced(op, _all(size, dtype))]


@_case("all_reduce", "tensor", _sum_expected, reduces=True)
def _(group, me, size, dtype, op, run):
    data = values(me, dtype, COUNT)
    run(dist.all_reduce, data, op_of(op), group=group)
    return [data]


@_case("all_reduce", "async, future", _sum_expected, reduces=True)
def _(group, me, size, dtype, op):
    data = values(me, dtype, COUNT)
    future = dist.all_reduce(data, op_of(op), group=group, async_op=True).get_future()
    future.wait()
    return [data]


@_case("all_reduce", "coalesced",
       lambda me, size, dtype, op: [
           reduced(op, _all(size, dtype)), reduced(op, _all(size, dtype, 3))],
       reduces=True)
def _(group, me, size, dtype, op):
    data = [values(me, dtype, COUNT), values(me, dtype, 3)]
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = op_of(op)
    group.allreduce_coalesced(data, options).wait()
    return data


@_case("all_reduce", "coalesced, one tensor twice",
       lambda me, size, dtype, op: [reduced(op, _all(size, dtype))] * 2, reduces=True)
def _(group, me, size, dtype, op):
    data = [values(me, dtype, COUNT)] * 2
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = op_of(op)
    group.allreduce_coalesced(data, options).wait()
    return data


@_case("all_reduce", "coalesced, tensors that overlap",
       lambda me, size, dtype, op: [reduced(op, _all(size, dtype))], reduces=True)
def _(group, me, size, dtype, op):
    data = values(me, dtype, COUNT)
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = op_of(op)
    group.allreduce_coalesced([data[:4], data[::2], data[2:]], options).wait()
    return [data]


def _second(rank: int, dtype: torch.dtype) -> torch.Tensor:
    """A second tensor beside `values`. Sums and products of all values of both are exact."""
    return torch.full((COUNT,), 2 if rank == 0 else 1).to(dtype)


@_case("all_reduce", "several tensors on each rank",
       lambda me, size, dtype, op: [reduced(op, _all(size, dtype) + [
           _second(r, dtype) for r in range(size)])] * 2, reduces=True)
def _(group, me, size, dtype, op):
    data = [values(me, dtype, COUNT), _second(me, dtype)]
    options = dist.AllreduceOptions()
    options.reduceOp = op_of(op)
    group.allreduce(data, options).wait()
    return data


@_case("all_reduce", "sparse, several tensors on each rank",
       lambda me, size, dtype, op: [
           sum_of_sparse(range(size), dtype) + sum_of_sparse(range(1, size + 1), dtype)] * 2)
def _(group, me, size, dtype, op):
    data = [sparse_values(me, dtype), sparse_values(me + 1, dtype)]
    group.allreduce(data, dist.AllreduceOptions()).wait()
    return [one.to_dense() for one in data]


@_case("all_reduce", "sparse",
       lambda me, size, dtype, op: [sum_of_sparse(range(size), dtype)])
def _(group, me, size, dtype, op):
    data = sparse_values(me, dtype)
    dist.all_reduce(data, group=group)
    return [data.to_dense()]


def sparse_values(rank: int, dtype: torch.dtype) -> torch.Tensor:
    """`rank` + 1 elements of a 4 x 3 matrix, one of them twice."""
    rows = [i % 4 for i in range(rank + 1)] + [0]
    columns = [(i + rank) % 3 for i in range(rank + 1)] + [rank % 3]
    data = values(rank, dtype, len(rows))
    return torch.sparse_coo_tensor(torch.tensor([rows, columns]), data, (4, 3),
                                   check_invariants=True)


def sum_of_sparse(ranks: range, dtype: torch.dtype) -> torch.Tensor:
    total = torch.zeros(4, 3, dtype=dtype)
    for rank in ranks:
        total += sparse_values(rank, dtype).to_dense()
    return total


@_case("reduce", "tensor",
       lambda me, size, dtype, op: _sum_expected(me, size, dtype, op) if me == size - 1 else [],
       reduces=True)
def _(group, me, size, dtype, op, run):
    data = values(me, dtype, COUNT)
    run(dist.reduce, data, _global(group, size - 1), op_of(op), group=group)
    return [data] if me == size - 1 else []


# ---- gathering

def _gathered(me, size, dtype, op):
    return _all(size, dtype)


@_case("all_gather", "list", _gathered)
def _(group, me, size, dtype, op, run):
    out = [_empty(dtype) for _ in range(size)]
    run(dist.all_gather, out, values(me, dtype, COUNT), group=group)
    return out


@_case("all_gather", "list, of different sizes",
       lambda me, size, dtype, op: [values(r, dtype, r + 1) for r in range(size)])
def _(group, me, size, dtype, op, run):
    out = [_empty(dtype, r + 1) for r in range(size)]
    run(dist.all_gather, out, values(me, dtype, me + 1), group=group)
    return out


@_case("all_gather", "into one tensor", lambda me, size, dtype, op: [torch.cat(_all(size, dtype))])
def _(group, me, size, dtype, op, run):
    out = _empty(dtype, size * COUNT)
    run(dist.all_gather_into_tensor, out, values(me, dtype, COUNT), group=group)
    return [out]


@_case("all_gather", "into tensors, coalesced",
       lambda me, size, dtype, op: [torch.cat(_all(size, dtype)), torch.cat(_all(size, dtype, 2))])
def _(group, me, size, dtype, op):
    out = [_empty(dtype, size * COUNT), _empty(dtype, size * 2)]
    own = [values(me, dtype, COUNT), values(me, dtype, 2)]
    group.allgather_into_tensor_coalesced(out, own).wait()
    return out


@_case("all_gather", "lists, coalesced",
       lambda me, size, dtype, op: _all(size, dtype) + _all(size, dtype, 2))
def _(group, me, size, dtype, op):
    out = [[_empty(dtype), _empty(dtype, 2)] for _ in range(size)]
    group.allgather_coalesced(out, [values(me, dtype, COUNT), values(me, dtype, 2)]).wait()
    return [pair[0] for pair in out] + [pair[1] for pair in out]


@_case("all_gather", "several tensors on each rank",
       lambda me, size, dtype, op: [
           values(r, dtype, COUNT, start=k) for r in range(size) for k in (0, 1)] * 2)
def _(group, me, size, dtype, op):
    out = [[_empty(dtype) for _ in range(2 * size)] for _ in (0, 1)]
    group.allgather(out, [values(me, dtype, COUNT, start=k) for k in (0, 1)]).wait()
    return out[0] + out[1]


@_case("gather", "list", lambda me, size, dtype, op: _all(size, dtype) if me == size - 1 else [])
def _(group, me, size, dtype, op, run):
    out = [_empty(dtype) for _ in range(size)] if me == size - 1 else None
    run(dist.gather, values(me, dtype, COUNT), out, _global(group, size - 1), group=group)
    return out or []


@_case("scatter", "list", lambda me, size, dtype, op: [values(10 + me, dtype, COUNT)])
def _(group, me, size, dtype, op, run):
    data = [values(10 + r, dtype, COUNT) for r in range(size)] if me == size - 1 else None
    out = _empty(dtype)
    run(dist.scatter, out, data, _global(group, size - 1), group=group)
    return [out]


# ---- reduce_scatter

def _block(rank: int, block: int, dtype: torch.dtype, count: int = COUNT) -> torch.Tensor:
    return values(rank, dtype, count, start=100 * block)


def _my_block(me, size, dtype, op):
    return [reduced(op, [_block(r, me, dtype) for r in range(size)])]


@_case("reduce_scatter", "list", _my_block, reduces=True)
def _(group, me, size, dtype, op, run):
    out = _empty(dtype)
    blocks = [_block(me, b, dtype) for b in range(size)]
    run(dist.reduce_scatter, out, blocks, op_of(op), group=group)
    return [out]


@_case("reduce_scatter", "of one tensor", _my_block, reduces=True)
def _(group, me, size, dtype, op, run):
    out = _empty(dtype)
    blocks = torch.cat([_block(me, b, dtype) for b in range(size)])
    run(dist.reduce_scatter_tensor, out, blocks, op_of(op), group=group)
    return [out]


@_case("reduce_scatter", "of tensors, coalesced",
       lambda me, size, dtype, op: _my_block(me, size, dtype, op) + [
           reduced(op, [_block(r, me, dtype, 2) for r in range(size)])], reduces=True)
def _(group, me, size, dtype, op):
    out = [_empty(dtype), _empty(dtype, 2)]
    data = [torch.cat([_block(me, b, dtype, n) for b in range(size)]) for n in (COUNT, 2)]
    options = dist.ReduceScatterOptions()
    options.reduceOp = op_of(op)
    group.reduce_scatter_tensor_coalesced(out, data, options).wait()
    return out


# ---- all_to_all

@_case("all_to_all", "lists",
       lambda me, size, dtype, op: [_block(r, me, dtype) for r in range(size)])
def _(group, me, size, dtype, op, run):
    out = [_empty(dtype) for _ in range(size)]
    run(dist.all_to_all, out, [_block(me, b, dtype) for b in range(size)], group=group)
    return out


@_case("all_to_all", "one tensor",
       lambda me, size, dtype, op: [torch.cat([_block(r, me, dtype) for r in range(size)])])
def _(group, me, size, dtype, op, run):
    out = _empty(dtype, size * COUNT)
    blocks = torch.cat([_block(me, b, dtype) for b in range(size)])
    run(dist.all_to_all_single, out, blocks, group=group)
    return [out]


@_case("all_to_all", "one tensor, unequal splits",
       lambda me, size, dtype, op: [torch.cat([_block(r, me, dtype, r + me) for r in range(size)])])
def _(group, me, size, dtype, op, run):
    to = [me + r for r in range(size)]
    out = _empty(dtype, sum(to))
    data = torch.cat([_block(me, b, dtype, n) for b, n in enumerate(to)])
    run(dist.all_to_all_single, out, data, to, to, group=group)
    return [out]


# ---- between two ranks: around a ring, so that a group of one sends to itself

def _from_left(me, size, dtype, op):
    return [values((me - 1) % size, dtype, COUNT)]


@_case("send and recv", "blocking", lambda me, size, dtype, op: _from_left(me, size, dtype, op)
       if size > 1 else [])
def _(group, me, size, dtype, op):
    out = _empty(dtype)
    if size == 1:
        return []
    left, right = _global(group, (me - 1) % size), _global(group, (me + 1) % size)
    if me % 2 == 0 and not (me == size - 1):
        dist.send(values(me, dtype, COUNT), right, group=group)
        dist.recv(out, left, group=group)
    else:
        dist.recv(out, left, group=group)
        dist.send(values(me, dtype, COUNT), right, group=group)
    return [out]


@_case("send and recv", "isend and irecv, tags out of order",
       lambda me, size, dtype, op: [values((me - 1) % size, dtype, COUNT, start=t) for t in (0, 1)]
       if size > 1 else [])
def _(group, me, size, dtype, op):
    if size == 1:
        return []
    left, right = _global(group, (me - 1) % size), _global(group, (me + 1) % size)
    out = [_empty(dtype), _empty(dtype)]
    works = [dist.isend(values(me, dtype, COUNT, start=t), right, group=group, tag=t)
             for t in (0, 1)]
    works += [dist.irecv(out[t], left, group=group, tag=t) for t in (1, 0)]
    for work in works:
        work.wait()
    return out


@_case("send and recv", "from any source",
       lambda me, size, dtype, op: [
           values(r, dtype, COUNT) for r in range(1, size)] if me == 0 else [])
def _(group, me, size, dtype, op):
    came = {}
    if me > 0:
        dist.send(values(me, dtype, COUNT), _global(group, 0), group=group)
    else:
        for _ in range(1, size):
            out = _empty(dtype)
            came[dist.recv(out, None, group=group)] = out
    dist.barrier(group=group)  # the next test receives from any rank, so no rank may send early
    return [] if me > 0 else [came[_global(group, r)] for r in range(1, size)]


@_case("send and recv", "batch_isend_irecv",
       lambda me, size, dtype, op: _from_left(me, size, dtype, op) if size > 1 else [])
def _(group, me, size, dtype, op):
    if size == 1:
        return []
    left, right = _global(group, (me - 1) % size), _global(group, (me + 1) % size)
    out = _empty(dtype)
    batch = [dist.P2POp(dist.irecv, out, left, group),
             dist.P2POp(dist.isend, values(me, dtype, COUNT), right, group)]
    for work in dist.batch_isend_irecv(batch if me % 2 else batch[::-1]):
        work.wait()
    return [out]


# ---- meeting

@_case("barrier", "blocking", lambda me, size, dtype, op: [])
def _(group, me, size, dtype, op):
    dist.barrier(group=group)
    return []


@_case("barrier", "async, device_ids", lambda me, size, dtype, op: [])
def _(group, me, size, dtype, op):
    dist.barrier(group=group, async_op=True, device_ids=[0]).wait()
    return []


@_case("barrier", "monitored", lambda me, size, dtype, op: [])
def _(group, me, size, dtype, op):
    import datetime
    group.monitored_barrier(datetime.timedelta(seconds=30))
    return []


# ---- functional collectives, which DTensor and torch.compile use

@_case("all_reduce", "functional", _sum_expected, reduces=True)
def _(group, me, size, dtype, op):
    return [functional.all_reduce(values(me, dtype, COUNT), op.lower(), group).clone()]


@_case("all_gather", "functional", lambda me, size, dtype, op: [torch.cat(_all(size, dtype))])
def _(group, me, size, dtype, op):
    return [functional.all_gather_tensor(values(me, dtype, COUNT), 0, group).clone()]


@_case("reduce_scatter", "functional", _my_block, reduces=True)
def _(group, me, size, dtype, op):
    blocks = torch.cat([_block(me, b, dtype) for b in range(size)])
    return [functional.reduce_scatter_tensor(blocks, op.lower(), 0, group).clone()]


@_case("all_to_all", "functional",
       lambda me, size, dtype, op: [torch.cat([_block(r, me, dtype) for r in range(size)])])
def _(group, me, size, dtype, op):
    blocks = torch.cat([_block(me, b, dtype) for b in range(size)])
    return [functional.all_to_all_single(blocks, None, None, group).clone()]
