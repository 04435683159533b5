"""Wrong arguments of the operations of torch.distributed raise the errors of torch's backends, before
anything is sent."""

from __future__ import annotations

import unittest
from typing import Any, Callable, Iterator

from needs import import_torch

import_torch()

import torch
import torch.distributed as dist

from ranks import all_reduced, results

Call = Callable[[Any, int], Any]


def zeros(*sizes: int) -> list[torch.Tensor]:
    return [torch.zeros(size) for size in sizes]


def doubles(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.float64)


def rooted(options: Any, root: int, tensor: int = 0) -> Any:
    options.rootRank = root
    if hasattr(options, "rootTensor"):
        options.rootTensor = tensor
    return options


def gathers() -> Iterator[Call]:
    own, other = (lambda me: rooted(dist.GatherOptions(), me),
                  lambda me: rooted(dist.GatherOptions(), 1 - me))
    yield lambda g, me: g.gather([zeros(3, 4)], zeros(3), own(me))
    yield lambda g, me: g.gather([[torch.zeros(3), torch.zeros(1, 3)]], zeros(3), own(me))
    yield lambda g, me: g.gather([[torch.zeros(3), doubles(3)]], zeros(3), own(me))
    yield lambda g, me: g.gather([zeros(3)], zeros(3), own(me))
    yield lambda g, me: g.gather([zeros(3, 3), zeros(3, 3)], zeros(3), own(me))
    yield lambda g, me: g.gather([], zeros(3), own(me))
    yield lambda g, me: g.gather([zeros(3, 3)], zeros(3), other(me))
    yield lambda g, me: g.gather([], zeros(3, 3), other(me))
    yield lambda g, me: g.gather([], zeros(3), rooted(dist.GatherOptions(), 2))
    yield lambda g, me: dist.gather(torch.zeros(3), zeros(3), me, g)
    yield lambda g, me: dist.gather(torch.zeros(3), zeros(3, 4), me, g)
    yield lambda g, me: dist.gather(torch.zeros(3), None, me, g)
    yield lambda g, me: dist.gather(torch.zeros(3), zeros(3, 3), 1 - me, g)


def scatters() -> Iterator[Call]:
    own, other = (lambda me: rooted(dist.ScatterOptions(), me),
                  lambda me: rooted(dist.ScatterOptions(), 1 - me))
    yield lambda g, me: g.scatter(zeros(3), [zeros(3, 4)], own(me))
    yield lambda g, me: g.scatter(zeros(3), [[torch.zeros(3), doubles(3)]], own(me))
    yield lambda g, me: g.scatter(zeros(3), [zeros(3)], own(me))
    yield lambda g, me: g.scatter(zeros(3), [], own(me))
    yield lambda g, me: g.scatter(zeros(3), [zeros(3, 3)], other(me))
    yield lambda g, me: g.scatter(zeros(3, 3), [], other(me))
    yield lambda g, me: g.scatter(zeros(3), [], rooted(dist.ScatterOptions(), -1))
    yield lambda g, me: dist.scatter(torch.zeros(3), zeros(3), me, g)
    yield lambda g, me: dist.scatter(torch.zeros(3), zeros(3, 3), 1 - me, g)


def all_gathers() -> Iterator[Call]:
    yield lambda g, me: g.allgather([], [])
    yield lambda g, me: g.allgather([], zeros(3))
    yield lambda g, me: g.allgather([zeros(3, 3), zeros(3, 3)], zeros(3))
    yield lambda g, me: g.allgather([zeros(3)], zeros(3))
    yield lambda g, me: g.allgather([zeros(3, 3, 3)], zeros(3))
    yield lambda g, me: g.allgather([[torch.zeros(3), doubles(3)]], zeros(3))
    yield lambda g, me: g.allgather([zeros(3, 3), zeros(3, 3)], zeros(3, 3))
    yield lambda g, me: g.allgather([zeros(3, 3, 3, 3)] * 2, [torch.zeros(3), doubles(3)])
    yield lambda g, me: g.allgather([zeros(3, 3, 3, 3)] * 2, zeros(3, 4))
    yield lambda g, me: g.allgather([zeros(3, 3, 3, 3), zeros(3, 3, 3, 4)], zeros(3, 3))


def all_gathers_coalesced() -> Iterator[Call]:
    yield lambda g, me: g.allgather_coalesced([[], []], [])
    yield lambda g, me: g.allgather_coalesced([zeros(3)], zeros(3))
    yield lambda g, me: g.allgather_coalesced([zeros(3), zeros(3, 3)], zeros(3))
    yield lambda g, me: g.allgather_coalesced([zeros(3), zeros(4)], zeros(3))
    yield lambda g, me: g.allgather_coalesced([zeros(3), [torch.zeros(1, 3)]], zeros(3))
    yield lambda g, me: g.allgather_coalesced([zeros(3), [doubles(3)]], zeros(3))
    yield lambda g, me: g.allgather_coalesced([zeros(3, 2), zeros(3, 3)], zeros(3, 2))


def all_to_alls() -> Iterator[Call]:
    for out, given in (([2, 2], [4]), ([4], [2, 2]), ([2, 2], [1, 2]), ([1, 2], [2, 2])):
        yield lambda g, me, out=out, given=given: dist.all_to_all_single(
            torch.zeros(4), torch.zeros(4), out, given, g)
    yield lambda g, me: dist.all_to_all_single(torch.zeros(4), doubles(4), group=g)
    yield lambda g, me: dist.all_to_all(zeros(3), zeros(3), g)
    yield lambda g, me: dist.all_to_all(zeros(3, 3), zeros(3), g)
    yield lambda g, me: dist.all_to_all([torch.zeros(3), doubles(3)], zeros(3, 3), g)


def whole_tensors() -> Iterator[Call]:
    yield lambda g, me: g.broadcast([], dist.BroadcastOptions())
    for tensors in (zeros(3, 4), [torch.zeros(3), doubles(3)]):
        yield lambda g, me, given=tensors: g.broadcast(given, dist.BroadcastOptions())
        yield lambda g, me, given=tensors: g.allreduce(given, dist.AllreduceOptions())
    for root, tensor in ((2, 0), (-1, 0), (0, 2), (0, -1)):
        yield lambda g, me, root=root, tensor=tensor: g.broadcast(
            zeros(3, 3), rooted(dist.BroadcastOptions(), root, tensor))
    for root, tensor, number in ((2, 0, 1), (0, 1, 1), (0, -1, 1), (0, 0, 2)):
        yield lambda g, me, root=root, tensor=tensor, number=number: g.reduce(
            zeros(*[3] * number), rooted(dist.ReduceOptions(), root, tensor))
    yield lambda g, me: g.allreduce([], dist.AllreduceOptions())
    yield lambda g, me: g.allreduce([torch.zeros(3), torch.zeros(3).to_sparse()],
                                    dist.AllreduceOptions())
    yield lambda g, me: g.allreduce([torch.zeros(3).to_sparse(), torch.zeros(3)],
                                    dist.AllreduceOptions())
    yield lambda g, me: g.allreduce_coalesced([], dist.AllreduceCoalescedOptions())


KINDS = [gathers, scatters, all_gathers, all_gathers_coalesced, all_to_alls, whole_tensors]


def raised(group: Any, call: Call) -> str:
    """The class and the first line of what `call` raises, with the backend's name left out."""
    try:
        call(group, dist.get_rank())
    except Exception as error:
        line = str(error).splitlines()[0]
        return f"{type(error).__name__}: {line}".replace("GroupGloo", "Group").replace(
            "GroupPeal", "Group")
    return "nothing"


def compared(kind: Callable[[], Iterator[Call]]) -> tuple[list[tuple[str, str]], float]:
    """What each call raises on peal and on gloo, and the result of an all_reduce after all calls."""
    theirs = dist.new_group(backend="gloo")
    both = [(raised(dist.group.WORLD, call), raised(theirs, call)) for call in kind()]
    return both, all_reduced()


def beyond_gloo() -> list[str]:
    """The errors on peal for arguments that gloo accepts, or rejects only after it has sent data."""
    def counts(out: int, given: int, out_splits: Any, in_splits: Any) -> Call:
        return lambda g, me: dist.all_to_all_single(
            torch.zeros(out), torch.zeros(given), out_splits, in_splits, g)

    average = dist.AllreduceOptions()
    average.reduceOp = dist.ReduceOp.AVG
    calls: list[Call] = [
        counts(4, 6, None, None),
        counts(3, 3, None, None),
        counts(4, 4, [-1, 5], [2, 2]),
        counts(4, 4, [-1, 5], [-1, 5]),
        lambda g, me: g.allgather([zeros(4, 4)], zeros(3)),
        lambda g, me: g.allreduce(zeros(3, 3), average),
        lambda g, me: g.allreduce([torch.zeros(3, dtype=torch.bool)], average),
    ]
    seen = [raised(dist.group.WORLD, call) for call in calls]
    assert all_reduced() == 4
    return seen


class ArgumentsTest(unittest.TestCase):
    def test_wrong_arguments_raise_what_gloo_raises_and_leave_the_group_as_it_was(self) -> None:
        for kind in KINDS:
            for rank, (both, after) in enumerate(results(2, compared, kind)):
                self.assertEqual(after, 4)
                for number, (ours, theirs) in enumerate(both):
                    with self.subTest(kind.__name__, number=number, rank=rank):
                        self.assertNotEqual(theirs, "nothing")
                        self.assertEqual(ours, theirs)

    def test_arguments_that_gloo_accepts_wrongly_are_rejected_before_sending(self) -> None:
        for seen in results(2, beyond_gloo):
            for text, words in zip(seen, [
                    "DistError: usage: .*output holds 4 elements, expected 6",
                    "RuntimeError: Tensor's dim 0 does not divide equally across group size",
                    "DistError: usage: .*two different counts",
                    "DistError: usage: .*a count of -1",
                    r"RuntimeError: .*invalid tensor size at index \d \(expected \(3\), got \(4\)\)",
                    "RuntimeError: .*Cannot use ReduceOp.AVG with several tensors on a rank",
                    "TypeError: Cannot use ReduceOp.AVG with boolean inputs"],
                    strict=True):
                with self.subTest(words):
                    self.assertRegex(text, words)


if __name__ == "__main__":
    unittest.main()
