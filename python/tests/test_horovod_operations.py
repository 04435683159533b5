"""The operations of peal.horovod with all layouts, scales and splits, and their gradients, against
formulas."""

from __future__ import annotations

import contextlib
import threading
import unittest
from typing import Callable

from needs import import_torch

import_torch()

import torch
from torch import Tensor

from horovod_ranks import RanksTest
from horovod_values import (AVERAGE, DTYPES, MAX, MIN, PRODUCT, SUM, Checks, floats, has_meaning, layouts, reduced,
                            share, values)


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


class OperationsTest(RanksTest):
    def test_reductions_of_all_types_operators_forms_and_layouts(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, reduce_everything)

    def test_moves_of_all_types_forms_and_layouts(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, move_everything)

    def test_gradients(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, differentiate)


if __name__ == "__main__":
    unittest.main()
