"""The errors of peal.horovod: of one call, between ranks, and after the loss of a rank."""

from __future__ import annotations

import os
import signal
import unittest
from typing import Any

from needs import import_torch

import_torch()

import torch

from horovod_ranks import RanksTest, outcomes
from horovod_values import Checks


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


class ErrorsTest(RanksTest):
    def test_errors_of_both_classes_leave_the_group_usable(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, misuse)

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
