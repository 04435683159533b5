"""The operations of peal.horovod on two and three ranks, against formulas."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Callable, Iterator

from needs import import_torch

import_torch()

import torch
from torch import Tensor

from horovod_ranks import outcomes, results

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
          torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.complex64: 1e-6,
             torch.float64: 1e-12, torch.complex128: 1e-12}
AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)


# ---- values and formulas


def values(rank: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Small numbers that differ between ranks and places. Computed alike on all ranks."""
    count = int(torch.tensor(shape).prod())
    base = torch.arange(count) * 7 % 4 + 1 + rank
    if dtype == torch.bool:
        return (base % 2 == 0).reshape(shape)
    if dtype.is_complex:
        return (base - 1j * rank).to(dtype).reshape(shape)
    sign = 1 if dtype == torch.uint8 else -1
    return torch.where(torch.arange(count) % 3 == 0, sign * base, base).to(dtype).reshape(shape)


def has_meaning(op: int, dtype: torch.dtype) -> bool:
    if op == AVERAGE:
        return dtype != torch.bool
    return not (op in (MIN, MAX) and dtype.is_complex)


def reduced(parts: list[Tensor], op: int, before: float = 1.0, after: float = 1.0) -> Tensor:
    """The formula of allreduce, in wide types."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stack = torch.stack(parts)
        return stack.any(0) if op in (SUM, MAX) else stack.all(0)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    scaled = [rounded(part.to(wide) * before, dtype) for part in parts]
    stack = torch.stack(scaled)
    result = {AVERAGE: lambda: stack.sum(0), SUM: lambda: stack.sum(0), PRODUCT: lambda: stack.prod(0),
              MIN: lambda: stack.amin(0), MAX: lambda: stack.amax(0)}[op]()
    after = after / len(parts) if op == AVERAGE else after
    return rounded(result * after if after != 1 / 3 else result / 3, dtype).to(dtype)


def floats(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    return value if floats(dtype) else value.trunc()


def layouts(tensor: Tensor) -> Iterator[Tensor]:
    """The same values with other strides."""
    yield tensor.clone()
    yield tensor.t().contiguous().t()
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
    wide[..., ::2] = tensor
    yield wide[..., ::2]


class Checks:
    """Collects what differs from the expected."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def equal(self, got: Any, expected: Any, what: str) -> None:
        if isinstance(expected, Tensor):
            good = (isinstance(got, Tensor) and got.dtype == expected.dtype and got.shape == expected.shape
                    and torch.allclose(widened(got), widened(expected), rtol=TOLERANCE.get(got.dtype, 0.0),
                                       atol=TOLERANCE.get(got.dtype, 0.0)))
        else:
            good = bool(got == expected)
        if not good:
            self.failures.append(f"{what}: got {got}, expected {expected}")

    def raises(self, kind: type[BaseException], words: list[str], function: Callable[[], Any], what: str,
               exactly: bool = False) -> None:
        try:
            got: Any = function()
        except kind as error:
            text = str(error)
            if any(word not in text for word in words) or (exactly and type(error) is not kind):
                self.failures.append(f"{what}: {type(error).__name__}: {text}")
        except BaseException as error:
            self.failures.append(f"{what}: {type(error).__name__} instead of {kind.__name__}: {error}")
        else:
            self.failures.append(f"{what}: returned {got}")


def widened(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.dtype.is_complex else torch.float64)


# ---- programs


def reduce_everything() -> list[str]:
    import peal.horovod as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    for dtype in DTYPES:
        own = values(rank, (4, 3), dtype)
        every = [values(r, (4, 3), dtype) for r in range(size)]
        for op in (AVERAGE, SUM, MIN, MAX, PRODUCT):
            what = f"{dtype}, op {op}"
            if not has_meaning(op, dtype):
                checks.raises(ValueError, [], lambda: hvd.allreduce(own, op=op), what)
                checks.raises(ValueError, [], lambda: hvd.reducescatter(own, op=op), what)
                continue
            expected = reduced(every, op)
            for number, tensor in enumerate(layouts(own)):
                here = f"{what}, layout {number}"
                strides = tensor.stride()
                checks.equal(hvd.allreduce(tensor, op=op), expected, f"allreduce of {here}")
                checks.equal(hvd.synchronize(hvd.allreduce_async(tensor, op=op)), expected,
                             f"allreduce_async of {here}")
                checks.equal(tensor, own, f"the input of {here}")
                for in_place in (lambda t: hvd.allreduce_(t, op=op),
                                 lambda t: hvd.synchronize(hvd.allreduce_async_(t, op=op))):
                    mine = tensor.clone(memory_format=torch.preserve_format)
                    result = in_place(mine)
                    checks.equal(mine, expected, f"allreduce_ of {here}")
                    checks.equal(result.data_ptr() == mine.data_ptr(), True, f"the memory of {here}")
                checks.equal(tensor.stride(), strides, f"strides of {here}")
                group = hvd.grouped_allreduce([tensor, tensor[0]], op=op, name=f"group {number}")
                checks.equal(group[0], expected, f"grouped_allreduce of {here}")
                checks.equal(group[1], expected[0], f"grouped_allreduce of {here}")
                mine = tensor.clone()
                hvd.grouped_allreduce_([mine], op=op)
                checks.equal(mine, expected, f"grouped_allreduce_ of {here}")
                handle = hvd.grouped_allreduce_async([tensor, tensor], op=op)
                checks.equal(hvd.synchronize(handle)[1], expected, f"grouped_allreduce_async of {here}")
                rows = share(4, size, rank)
                checks.equal(hvd.reducescatter(tensor, op=op), expected[rows], f"reducescatter of {here}")
                checks.equal(hvd.synchronize(hvd.reducescatter_async(tensor, op=op)), expected[rows],
                             f"reducescatter_async of {here}")
                several = hvd.grouped_reducescatter([tensor, tensor[:1]], op=op)
                checks.equal(several[0], expected[rows], f"grouped_reducescatter of {here}")
                checks.equal(several[1], expected[:1][share(1, size, rank)], f"fewer rows than ranks of {here}")
            for before, after in ((0.5, 3.0), (2.0, 0.25)):
                is_too_large = op == PRODUCT and before > 1 and dtype in (torch.uint8, torch.int8)
                if dtype == torch.bool or is_too_large or (op == AVERAGE and not floats(dtype)):
                    continue
                checks.equal(hvd.allreduce(own, op=op, prescale_factor=before, postscale_factor=after),
                             reduced(every, op, before, after), f"scales {before}, {after} of {what}")
    checks.equal(hvd.allreduce(torch.full((3,), 49), op=hvd.Average).tolist(), [49] * 3, "exact average")
    scalar = hvd.allreduce(torch.tensor(float(rank)), op=hvd.Sum)
    checks.equal(scalar, torch.tensor(sum(map(float, range(size)))), "a scalar")
    checks.equal(hvd.allreduce(torch.zeros(0, 3)).shape, (0, 3), "no elements")
    image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    checks.equal(hvd.allreduce(image).is_contiguous(memory_format=torch.channels_last), True, "channels_last")
    with contextlib.suppress(ValueError):
        hvd.allreduce(torch.ones(2, dtype=torch.int32), op=hvd.Adasum)
        checks.failures.append("Adasum of integers")
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        got = hvd.allreduce(torch.full((3,), rank + 1.0), compression=compression, op=hvd.Sum)
        checks.equal(got, torch.full((3,), size * (size + 1) / 2), "compression")
        got = hvd.grouped_allreduce([torch.full((3,), rank + 1.0)], compression=compression, op=hvd.Sum)[0]
        checks.equal(got, torch.full((3,), size * (size + 1) / 2), "compression of a group")
    for average, expected in ((True, (size - 1) / 2), (False, size * (size - 1) / 2)):
        checks.equal(float(hvd.allreduce(torch.tensor(float(rank)), average)), expected, "average=")
    leaf = torch.ones(2, requires_grad=True)
    checks.equal(hvd.allreduce_(leaf, None, "leaf", hvd.Sum).tolist(), [float(size)] * 2, "a leaf in place")
    return checks.failures


def share(rows: int, size: int, rank: int) -> slice:
    """The rows of this rank after a reducescatter."""
    each, longer = divmod(rows, size)
    begin = rank * each + min(rank, longer)
    return slice(begin, begin + each + (rank < longer))


def move_everything() -> list[str]:
    import peal.horovod as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    for dtype in DTYPES:
        for fewest in (0, 1):
            every = [values(r, (r + fewest, 3), dtype) for r in range(size)]
            gathered = torch.cat(every)
            for tensor in layouts(every[rank]):
                checks.equal(hvd.allgather(tensor), gathered, f"allgather of {dtype}")
                checks.equal(hvd.synchronize(hvd.allgather_async(tensor)), gathered, f"allgather_async of {dtype}")
                group = hvd.grouped_allgather([tensor, every[rank][:, 0].contiguous()])
                checks.equal(group[0], gathered, f"grouped_allgather of {dtype}")
                checks.equal(group[1], gathered[:, 0].contiguous(), f"grouped_allgather of {dtype}")
                group = hvd.synchronize(hvd.grouped_allgather_async([tensor]))
                checks.equal(group[0], gathered, f"grouped_allgather_async of {dtype}")
        for root in range(size):
            expected = values(root, (4, 3), dtype)
            for tensor in layouts(values(rank, (4, 3), dtype)):
                checks.equal(hvd.broadcast(tensor, root), expected, f"broadcast of {dtype} from {root}")
                checks.equal(hvd.synchronize(hvd.broadcast_async(tensor, root)), expected, f"async {dtype}")
                checks.equal(tensor, values(rank, (4, 3), dtype), f"the input of broadcast of {dtype}")
                handle = hvd.broadcast_async_(tensor, root, f"x {root}")
                checks.equal(hvd.synchronize(handle), expected, f"broadcast_async_ of {dtype}")
                checks.equal(hvd.broadcast_(tensor, root), expected, f"broadcast_ of {dtype} from {root}")
                checks.equal(tensor, expected, f"in place, {dtype}")
        # Rank s sends (s + d) % 3 rows to rank d; with two or three ranks some are 0.
        splits = [[(s + d) % 3 for d in range(size)] for s in range(size)]
        sent = [values(s, (sum(splits[s]), 2), dtype) for s in range(size)]
        expected = torch.cat([sent[s].split(splits[s])[rank] for s in range(size)])
        counts = torch.tensor([splits[s][rank] for s in range(size)], dtype=torch.int32)
        for given in (splits[rank], torch.tensor(splits[rank], dtype=torch.int32)):
            got, received = hvd.alltoall(sent[rank], given)
            checks.equal(got, expected, f"alltoall of {dtype}")
            checks.equal(received, counts, f"received splits of {dtype}")
            got, received = hvd.synchronize(hvd.alltoall_async(sent[rank], given))
            checks.equal(got, expected, f"alltoall_async of {dtype}")
        even = [values(s, (2 * size, 2), dtype) for s in range(size)]
        checks.equal(hvd.alltoall(even[rank]), torch.cat([one[2 * rank:2 * rank + 2] for one in even]),
                     f"even alltoall of {dtype}")
        got, received = hvd.synchronize(hvd.alltoall_async(even[rank]))
        checks.equal(received, torch.full((size,), 2, dtype=torch.int32), "splits of an even alltoall")
    for op in (hvd.Average, hvd.Sum):
        index = torch.tensor([[rank, rank, 4]])
        sparse = torch.sparse_coo_tensor(index, torch.tensor([[1.0], [2.0], [3.0]]), (5, 1))
        dense = sum(torch.sparse_coo_tensor(torch.tensor([[r, r, 4]]), torch.tensor([[1.0], [2.0], [3.0]]),
                                            (5, 1)).to_dense() for r in range(size))
        empty = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 1), (5, 1))
        first = hvd.sparse_allreduce_async(sparse, "first", op)
        second = hvd.sparse_allreduce_async(sparse if rank == 0 else empty, "second", op)
        later = [second, first] if rank else [first, second]  # each rank waits in another order
        done = [later[0](), later[1]()]
        total = done[1] if rank else done[0]
        factor = 1 / size if op == hvd.Average else 1.0
        checks.equal(total.is_coalesced(), True, "coalesced")
        checks.equal(total.to_dense(), torch.as_tensor(dense) * factor, f"sparse allreduce, op {op}")
    checks.raises(ValueError, ["Average or Sum"], lambda: hvd.sparse_allreduce_async(sparse, "x", hvd.Min), "op")
    for obj in (None, {"a": (1, 2)}, list(range(100_000))):
        checks.equal(hvd.broadcast_object(obj if rank == 1 else rank, 1), obj, "broadcast_object")
    checks.equal(hvd.allgather_object("x" * rank), ["x" * r for r in range(size)], "allgather_object")
    checks.raises(ValueError, ["cannot pickle"],
                  lambda: hvd.broadcast_object(threading.Lock() if rank == 1 else 3, 1), "pickling")
    checks.raises(ValueError, ["ranks [1] cannot pickle"],
                  lambda: hvd.allgather_object(threading.Lock() if rank == 1 else 3), "pickling on rank 1")
    return checks.failures


def differentiate() -> list[str]:
    """Gradients against formulas."""
    import peal.horovod as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()

    def gradient(function: Callable[[Tensor], Tensor], x: Tensor, weights: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        (function(x) * weights).sum().backward()
        assert x.grad is not None
        return x.grad

    ones = torch.ones(2 * size, 2, dtype=torch.float64)
    own = ones * (rank + 1)  # the gradient that arrives on this rank
    total = size * (size + 1) / 2
    for op, expected in ((hvd.Average, total / size), (hvd.Sum, total)):
        checks.equal(gradient(lambda x: hvd.allreduce(x, op=op), ones, own), ones * expected, f"allreduce {op}")
        checks.equal(gradient(lambda x: hvd.grouped_allreduce([x, x[:1]], op=op)[0], ones, own), ones * expected,
                     f"grouped_allreduce {op}")
        checks.equal(gradient(lambda x: hvd.allreduce(x, op=op, prescale_factor=2.0, postscale_factor=3.0), ones,
                              own), ones * expected * 6, f"scaled allreduce {op}")
    rows = torch.ones(rank + 1, 2, dtype=torch.float64)
    weights = torch.arange(float(size * (size + 1)), dtype=torch.float64).reshape(-1, 2) * (rank + 1)
    begin = rank * (rank + 1) // 2
    all_weights = weights / (rank + 1) * total / size
    checks.equal(gradient(hvd.allgather, rows, weights), all_weights[begin:begin + rank + 1], "allgather")
    checks.equal(gradient(lambda x: hvd.broadcast(x, 1), ones, own),
                 ones * (total / size) if rank == 1 else ones * 0, "broadcast")
    back = gradient(lambda x: hvd.alltoall(x), ones, own)
    checks.equal(back, torch.cat([torch.full((2, 2), r + 1.0, dtype=torch.float64) for r in range(size)]),
                 "alltoall")
    splits = [1] * (size - 1) + [size + 1]
    received = [splits[rank]] * size
    back = gradient(lambda x: hvd.alltoall(x, splits)[0], ones,
                    torch.full((sum(received), 2), rank + 1.0, dtype=torch.float64))
    checks.equal(back, torch.cat([torch.full((splits[r], 2), r + 1.0, dtype=torch.float64)
                                  for r in range(size)]), "alltoall with splits")
    for op, factor in ((hvd.Sum, size), (hvd.Average, 1)):
        got = gradient(lambda x: hvd.reducescatter(x, op=op, prescale_factor=2.0), ones,
                       torch.full((2, 2), rank + 1.0, dtype=torch.float64))
        checks.equal(got, factor * 2 * torch.cat([torch.full((2, 2), r + 1.0, dtype=torch.float64)
                                                  for r in range(size)]), f"reducescatter {op}")
    return checks.failures


def use_names() -> list[str]:
    """Names in another order on each rank, sets side by side, barriers that overtake."""
    import peal.horovod as hvd

    sets = [hvd.ProcessSet([0, 1]), hvd.ProcessSet(range(1, 3)), hvd.ProcessSet([2])]
    hvd.init(process_sets=sets)
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    for count, rounds in ((60, 3), (1000, 1)):
        for seed in range(rounds):
            order = list(range(count))
            random.Random(100 * seed + rank).shuffle(order)
            tensors = {i: torch.full((i % 7 + 1,), float(i * (rank + 1)), dtype=torch.float64) for i in order}
            handles = {i: hvd.allreduce_async_(tensors[i], name=f"n{i}", op=hvd.Sum) for i in order}
            random.Random(seed + 10 * rank).shuffle(order)
            for i in order:
                hvd.synchronize(handles[i])
            wrong = [i for i in order if tensors[i][0] != i * 6]
            checks.equal(wrong, [], f"{count} names, seed {seed}")
    checks.equal([(one.process_set_id, one.size(), one.included()) for one in sets],
                 [(i + 1, len(ranks), rank in ranks) for i, ranks in enumerate(([0, 1], [1, 2], [2]))], "sets")
    mine = [one for one in sets if one.included()]
    handles = {}
    for one in reversed(mine):  # one name in several sets and kinds
        handles[one] = [hvd.allreduce_async(torch.tensor([rank + 1.0]), name="x", op=hvd.Sum, process_set=one),
                        hvd.allgather_async(torch.tensor([rank]), name="x", process_set=one),
                        hvd.broadcast_async(torch.tensor([rank]), one.ranks[-1], name="x", process_set=one)]
    for one in mine:
        total, gathered, sent = map(hvd.synchronize, handles[one])
        checks.equal(float(total), float(sum(r + 1 for r in one.ranks)), f"allreduce in {one}")
        checks.equal(gathered.tolist(), one.ranks, f"allgather in {one}")
        checks.equal(int(sent), one.ranks[-1], f"broadcast in {one}")
        checks.equal(one.rank(), one.ranks.index(rank), f"rank in {one}")
        checks.equal(hvd.broadcast_object(rank, one.ranks[0], process_set=one), one.ranks[0], f"object in {one}")
        checks.equal(hvd.allgather_object(rank, process_set=one), one.ranks, f"objects in {one}")
    other = next(one for one in sets if not one.included())
    checks.raises(ValueError, [f"Rank {rank} is not a member of the provided process set"],
                  lambda: hvd.allreduce(torch.ones(1), process_set=other), "a foreign set")
    checks.raises(ValueError, ["does not include this process"], other.rank, "rank in a foreign set")
    checks.raises(ValueError, ["root"], lambda: hvd.broadcast(torch.ones(1), 2, process_set=sets[0])
                  if rank < 2 else hvd.broadcast(torch.ones(1), 0, process_set=sets[2]), "a foreign root")
    hvd.barrier()
    late = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum) if rank == 0 else None
    hvd.barrier()  # does not wait for "late"
    if rank == 0:
        checks.raises(ValueError, ["same name as another tensor that is currently being processed"],
                      lambda: hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum), "a duplicate")
    if rank == 2:
        hvd.barrier(sets[2])  # the other ranks are not in this set
    hvd.barrier()
    if late is None:
        late = hvd.allreduce_async(torch.ones(1), name="late", op=hvd.Sum)
    checks.equal(float(hvd.synchronize(late)), float(size), "the late operation")
    checks.raises(ValueError, ["HOROVOD_DYNAMIC_PROCESS_SETS=1"], lambda: hvd.add_process_set([0, 2]), "static")
    from peal.horovod.elastic import rounds

    rounds.reset()
    checks.equal([one.process_set_id for one in sets], [1, 2, 3], "sets after a reset")
    hvd.shutdown()
    checks.equal([one.process_set_id for one in sets], [None] * 3, "ids after shutdown")
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"  # read by init, not at import
    hvd.init()
    added = hvd.add_process_set([2, 0])
    checks.equal((added.process_set_id, added.ranks), (1, [0, 2]), "an added set")
    for again in ([0, 2], [2, 0], [0, 1, 2], added):
        checks.raises(ValueError, [], lambda: hvd.add_process_set(again), f"{again} twice")
    if added.included():
        checks.equal(float(hvd.allreduce(torch.tensor(float(rank)), process_set=added)), 1.0, "an added set")
    checks.equal(hvd.remove_process_set(added), True, "remove")
    checks.equal(added.process_set_id, None, "the id of a removed set")
    checks.equal(hvd.remove_process_set(added), False, "remove again")
    return checks.failures


def misuse() -> list[str]:
    """Both classes of errors; the group works after each."""
    import peal.horovod as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    x = torch.ones(4, 2)
    for what, words, call in (
            ("unknown root", ["root"], lambda: hvd.broadcast(x, size)),
            ("splits of another length", ["split"], lambda: hvd.alltoall(x, [1] * (size + 1))),
            ("no splits", ["split"], lambda: hvd.alltoall(x, [])),
            ("too many rows", ["split"], lambda: hvd.alltoall(x, [4] * size)),
            ("splits of another type", ["int32"], lambda: hvd.alltoall(x, torch.tensor([1] * size))),
            ("splits that are not numbers", ["integers"], lambda: hvd.alltoall(x, [0.5] * size)),
            ("rows that cannot be divided", ["divi"], lambda: hvd.alltoall(torch.ones(size + 1, 2))),
            ("reducescatter of a scalar", [], lambda: hvd.reducescatter(torch.tensor(1.0))),
            ("both op and average", ["supersedes"], lambda: hvd.allreduce(x, True, op=hvd.Sum)),
            ("an unknown op", ["op"], lambda: hvd.allreduce(x, op=17)),
            ("a layout", [], lambda: hvd.allreduce(torch.eye(2).to_sparse())),
            ("an unknown set", [], lambda: hvd.allreduce(x, process_set=unregistered(hvd)))):
        checks.raises(ValueError, words, call, what)
    both = ["rank 0", "1"] if size == 2 else ["0", "rank 1"]
    for what, words, call in (
            ("types", ["ismatched data types", *both], lambda: hvd.allreduce_async(
                x.double() if rank == 1 else x, name="a")),
            ("shapes", ["ismatched", "shape", *both], lambda: hvd.allreduce_async(
                x[rank == 1:], name="b")),
            ("kinds", ["ismatched operations", *both], lambda: hvd.allreduce_async(x, name="c") if rank == 1
             else hvd.allgather_async(x, name="c")),
            ("scales", ["ismatched", "scale", *both], lambda: hvd.allreduce_async(
                x, name="d", prescale_factor=1.0 + (rank == 1))),
            ("reductions", ["ismatched", "reduc", *both], lambda: hvd.allreduce_async(
                x, name="e", op=hvd.Sum if rank == 1 else hvd.Min)),
            ("roots", ["ismatched", "root", *both], lambda: hvd.broadcast_async(x, int(rank == 1), name="f")),
            ("rows", ["ismatched", "shape", *both], lambda: hvd.allgather_async(
                torch.ones(2, 2 + (rank == 1)), name="g"))):
        if what == "kinds":
            continue  # names of kinds differ, so these wait for each other: see the stall report
        handle = call()
        checks.raises(hvd.HorovodMismatchError, words, lambda: hvd.synchronize(handle), f"mismatch of {what}")
        checks.equal(float(hvd.allreduce(torch.tensor(1.0), name="after", op=hvd.Sum)), float(size),
                     f"after {what}")
    checks.raises(hvd.HorovodMismatchError, [], lambda: hvd.allreduce(
        x.double() if rank == 1 else x, name="blocking"), "a blocking form")
    return checks.failures


def unregistered(hvd: Any) -> Any:
    one = hvd.ProcessSet([0])
    one.process_set_id = 77
    return one


def join_early() -> list[str]:
    import peal.horovod as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    checks = Checks()
    for turn in range(2):
        last = (turn + 1) % size
        if rank == last:
            x = torch.tensor([4.0, -4.0])
            checks.equal(hvd.allreduce(x, name="a"), x / size, "the average divides by all ranks")
            checks.equal(hvd.allreduce(x, name="b", op=hvd.Sum), x, "joined ranks add zeros")
            for op in (hvd.Min, hvd.Max, hvd.Product):
                checks.equal(hvd.allreduce(x, name="c", op=op), x, f"op {op} leaves joined ranks out")
            for what, call in (("Allgather", lambda: hvd.allgather(x, name="d")),
                               ("Broadcast", lambda: hvd.broadcast(x, last, name="d")),
                               ("Alltoall", lambda: hvd.alltoall(x, [1, 1] + [0] * (size - 2), name="d")),
                               ("Reducescatter", lambda: hvd.reducescatter(x, name="d"))):
                checks.raises(hvd.HorovodInternalError, ["is not supported with Join at this time"], call, what)
            checks.equal(hvd.allreduce(x, name="e", op=hvd.Sum), x, "after a refusal")
        checks.equal(hvd.join(hvd.local_rank()), last, "the last rank")
        checks.equal(float(hvd.allreduce(torch.tensor(1.0), name="all", op=hvd.Sum)), float(size), "after join")
        checks.equal(hvd.allgather(torch.tensor([rank])).tolist(), list(range(size)), "allgather after join")
    return checks.failures


def start_again_and_again(folder: str) -> list[str]:
    import peal.horovod as hvd

    checks = Checks()
    counts = []
    for cycle in range(115):
        hvd.init()
        checks.equal(float(hvd.allreduce(torch.tensor(1.0), name="x", op=hvd.Sum)), 2.0, f"cycle {cycle}")
        hvd.shutdown()
        hvd.shutdown()
        counts.append((len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))))
    checks.equal(counts[-1], counts[10], "descriptors and threads")
    checks.raises(ValueError, ["Horovod has not been initialized"], hvd.rank, "after shutdown")
    os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
    hvd.init()
    path = f"{folder}/timeline-{hvd.rank()}.json"
    hvd.start_timeline(path, mark_cycles=True)
    for i in range(3):
        hvd.allreduce(torch.ones(3), name="seen")
        if hvd.rank() == 0:
            events = json.loads(Path(path).read_text())  # at every moment
            checks.equal(bool(events), i >= 0, "events")
    hvd.stop_timeline()
    hvd.stop_timeline()
    if hvd.rank() == 0:
        text = Path(path).read_text()
        checks.equal("NEGOTIATE_ALLREDUCE" in text and "allreduce.seen" in text, True, "the timeline")
    del os.environ["HOROVOD_TIMELINE"]
    hvd.shutdown()
    hvd.init()
    checks.raises(ValueError, ["HOROVOD_TIMELINE"], lambda: hvd.start_timeline(path), "without the variable")
    # One rank leaves while an operation of the others waits for it.
    if hvd.rank() == 0:
        checks.raises(hvd.HorovodInternalError, ["rank 1"], lambda: hvd.allreduce(torch.ones(1), name="never"),
                      "the shutdown of a peer", exactly=True)
    hvd.shutdown()
    return checks.failures


def lose_a_rank() -> Any:
    """Rank 1 dies in the middle; the others must learn its number and its end."""
    import peal.horovod as hvd

    hvd.init()
    hvd.allreduce(torch.ones(4), name="x")
    if hvd.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(1000):
            hvd.allreduce(torch.ones(4), name="x")
    except hvd.HorovodInternalError as error:
        return type(error).__name__, str(error), error.kind, error.rank
    return None


class OperationsTest(unittest.TestCase):
    def passes(self, ranks: int, program: Callable[..., list[str]], *arguments: Any,
               environment: dict[str, str] | None = None) -> None:
        for rank, failures in enumerate(results(ranks, program, *arguments, environment=environment)):
            self.assertEqual(failures[:20], [], f"rank {rank} of {ranks}, {len(failures)} failures")

    def test_reductions_of_all_types_operators_forms_and_layouts(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, reduce_everything)

    def test_moves_of_all_types_forms_and_layouts(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, move_everything)

    def test_gradients(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, differentiate)

    def test_names_in_any_order_sets_and_barriers(self) -> None:
        self.passes(3, use_names)

    def test_errors_of_both_classes_leave_the_group_usable(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, misuse)

    def test_ranks_that_join_early(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, join_early)

    def test_starts_and_ends_leak_nothing_and_the_timeline_is_json(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.passes(2, start_again_and_again, folder)

    def test_a_rank_that_is_killed_is_named(self) -> None:
        first, lost, third = outcomes(3, lose_a_rank)
        self.assertIsNotNone(lost.error)
        for end in (first, third):
            self.assertIsNone(end.error, end)
            name, text, kind, rank = end.result
            self.assertEqual((name, kind, rank), ("HorovodInternalError", "peer_lost", 1))
            self.assertIn("rank 1", text)


if __name__ == "__main__":
    unittest.main()
