"""The errors of peal.horovod: of one call, between ranks, and after the loss of a rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from needs import import_torch

import_torch()

import torch

from horovod_ranks import RanksTest
from horovod_values import Checks
from programs import PATIENCE


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
            ("scales", ["ismatched", "scale", *both], lambda: hvd.allreduce_async(
                x, name="d", prescale_factor=1.0 + (rank == 1))),
            ("reductions", ["ismatched", "reduc", *both], lambda: hvd.allreduce_async(
                x, name="e", op=hvd.Sum if rank == 1 else hvd.Min)),
            ("roots", ["ismatched", "root", *both], lambda: hvd.broadcast_async(x, int(rank == 1), name="f")),
            ("rows", ["ismatched", "shape", *both], lambda: hvd.allgather_async(
                torch.ones(2, 2 + (rank == 1)), name="g"))):
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


# Rank 1 is killed in the middle. The other ranks write down the error, and how many seconds it took.
LOSE_A_RANK = """
import json, os, pathlib, signal, sys, time, torch
import peal.horovod as hvd

folder = pathlib.Path(sys.argv[1])
hvd.init()
hvd.allreduce(torch.ones(4), name="x")
if hvd.rank() == 1:
    (folder / "killed_at").write_text(str(time.monotonic()))
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        hvd.allreduce(torch.ones(4), name="x")
except Exception as error:
    seconds = time.monotonic() - float((folder / "killed_at").read_text())
    facts = {"class": type(error).__name__, "text": str(error), "seconds": seconds, **vars(error)}
    (folder / f"rank {hvd.rank()}").write_text(json.dumps(facts))
"""


def shut_down_while_a_thread_waits() -> list[str]:
    import peal.horovod as hvd

    hvd.init()
    checks = Checks()
    if hvd.rank() == 1:
        checks.raises(hvd.HorovodInternalError, ["rank 0"], lambda: hvd.allreduce(torch.ones(1), name="other"),
                      "the shutdown of rank 0")
        return checks.failures
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            hvd.synchronize(handle)
        except hvd.HorovodInternalError as error:
            caught.append(error)

    handle = hvd.allreduce_async(torch.ones(1 << 20), name="never")
    hvd.allreduce_async(torch.ones(1 << 20), name="dropped")  # nobody waits for it
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)  # until the thread waits; the outcome is the same before
    hvd.shutdown()
    checks.equal(hvd.is_initialized(), False, "is_initialized")
    thread.join(PATIENCE)
    checks.equal(thread.is_alive(), False, "the thread waits")
    checks.equal([type(one).__name__ for one in caught], ["HorovodInternalError"], "the error of the thread")
    checks.equal("shut down" in str(caught), True, f"its text {caught}")
    return checks.failures


class ErrorsTest(RanksTest):
    def test_errors_of_both_classes_leave_the_group_usable(self) -> None:
        for ranks in (2, 3):
            self.passes(ranks, misuse)

    def test_a_rank_that_is_killed_is_named_with_its_cause_on_all_others(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, "-m", "peal", "run", "-n", "4", sys.executable, "-c", LOSE_A_RANK,
                                  folder], capture_output=True, text=True, timeout=PATIENCE)
            ends = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank *"))]
        self.assertEqual(len(ends), 3, run.stderr)
        for end in ends:
            self.assertEqual((end["class"], end["kind"], end["rank"], end["cause"]),
                             ("HorovodInternalError", "peer_lost", 1, "killed"), end)
            self.assertRegex(end["text"], "rank 1 .* was killed by SIGKILL")
            self.assertLess(end["seconds"], PATIENCE)
        self.assertIn("rank 1", run.stderr)
        print(f"the loss of a rank was noticed after {max(end['seconds'] for end in ends):.3f} s")

    def test_a_network_interface_that_does_not_exist_is_reported(self) -> None:
        run = subprocess.run([sys.executable, "-c", "import peal.horovod as hvd; hvd.init()"], capture_output=True,
                             text=True, env={**os.environ, "HOROVOD_GLOO_IFACE": "nowhere0"}, timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, "interface of HOROVOD_GLOO_IFACE is wrong, .*nowhere0")

    def test_a_shutdown_fails_the_operation_for_which_another_thread_waits(self) -> None:
        self.passes(2, shut_down_while_a_thread_waits)


if __name__ == "__main__":
    unittest.main()
