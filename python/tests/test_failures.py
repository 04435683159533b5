"""The errors that users of torch.distributed see after a failure."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from needs import import_torch

import_torch()

import torch
import torch.distributed as dist

from programs import PATIENCE, reserved_port
from ranks import outcomes, results


def raise_on_rank_1() -> None:
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 1:
        raise ValueError("out of luck")
    while True:
        dist.all_reduce(torch.ones(1))


def end_on_rank_1(end: str) -> tuple[float, str]:
    """Rank 1 ends, after it has written the time into the file `end`. The other ranks return the time
    and text of their error. All times are of the machine's monotonic clock."""
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 1:
        Path(end).write_text(str(time.monotonic()))
        os._exit(7)
    try:
        while True:
            dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        return time.monotonic(), str(error)


def disagree() -> None:
    dist.all_reduce(torch.ones(2 + dist.get_rank()))


def be_late() -> float:
    begin = time.monotonic()
    if dist.get_rank() == 1:
        time.sleep(3)
        return 0.0
    try:
        dist.barrier(timeout=datetime.timedelta(seconds=0.5)) if _barrier_takes_timeout() else (
            dist.group.WORLD.monitored_barrier(datetime.timedelta(seconds=0.5)))
    except RuntimeError as error:
        assert " timeout " in str(error), error
        return time.monotonic() - begin
    return -1.0


def _barrier_takes_timeout() -> bool:
    import inspect

    return "timeout" in inspect.signature(dist.barrier).parameters


def wrong_root() -> None:
    data = torch.ones(1)
    options = dist.BroadcastOptions()
    options.rootRank = 5
    dist.group.WORLD.broadcast([data], options)


def abort_on_rank_0() -> str:
    try:
        if dist.get_rank() == 0:
            dist.group.WORLD.abort()
        while True:
            dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        return str(error)


def go_on_without_rank_2() -> float:
    if dist.get_rank() == 2:
        os._exit(7)
    try:
        while True:
            dist.all_reduce(torch.ones(1))
    except RuntimeError:
        left = dist.shrink_group([2])
    data = torch.ones(1)
    dist.all_reduce(data, group=left)
    return float(data)


def monitored(milliseconds: int, wait_all_ranks: bool, missing: list[int]) -> str:
    """The text that a monitored barrier raises if some ranks are missing. The missing ranks live until
    the others have raised, so that no rank counts as lost."""
    store, me = dist.distributed_c10d._get_default_store(), dist.get_rank()
    come = [rank for rank in range(dist.get_world_size()) if rank not in missing]
    text = ""
    if me == 0:
        store.set("rank 0 comes", "")
    if me in come:
        if 0 in come:  # a late rank 0 would count as missing
            store.wait(["rank 0 comes"])
        try:
            dist.group.WORLD.monitored_barrier(datetime.timedelta(milliseconds=milliseconds),
                                               wait_all_ranks)
        except dist.DistBackendError as error:
            text = str(error)
    store.set(f"over/{me}", "")
    store.wait([f"over/{rank}" for rank in range(dist.get_world_size())])
    return text


class FailuresTest(unittest.TestCase):
    def test_an_exception_on_one_rank_reaches_the_others_with_its_text(self) -> None:
        ends = outcomes(3, raise_on_rank_1)
        self.assertEqual(ends[1].kind, "ValueError")
        for rank in (0, 2):
            self.assertEqual(ends[rank].kind, "DistError")
            self.assertIn("rank 1 threw: ValueError: out of luck", ends[rank].error)

    def test_peers_notice_the_end_of_a_rank_before_their_timeout(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "end")
            ends = outcomes(3, end_on_rank_1, str(path), timeout=3600.0)
            ended = float(path.read_text())
        self.assertEqual(ends[1].error, "ended with exit code 7")
        for rank in (0, 2):
            seen, text = ends[rank].result
            self.assertIn("peer_lost: rank 1", text)
            self.assertLess(seen - ended, PATIENCE)

    def test_an_abort_ends_the_operations_of_the_peers(self) -> None:
        for text in results(2, abort_on_rank_0):
            self.assertIn("abort", text)

    def test_the_remaining_ranks_continue_in_a_smaller_group(self) -> None:
        ends = outcomes(3, go_on_without_rank_2)
        self.assertEqual([end.result for end in ends[:2]], [2.0, 2.0], str(ends[0]))

    def test_ranks_that_disagree_see_both_sides(self) -> None:
        for end in outcomes(2, disagree):
            self.assertIn("mismatch: ", end.error)
            self.assertIn("rank 0 in all_reduce #1 (sum of 2 f32)", end.error)
            self.assertIn("rank 1 in all_reduce #1 (sum of 3 f32)", end.error)

    def test_a_timeout_is_named_and_does_not_come_early(self) -> None:
        self.assertGreaterEqual(outcomes(2, be_late)[0].result, 0.5)

    def check_monitored(self, milliseconds: int, wait_all_ranks: bool, missing: list[int],
                        on_rank_0: str) -> None:
        names = ", ".join(map(str, missing))
        own = (f". monitored_barrier of the group world: rank{'s' if missing[1:] else ''} {names} "
               f"did not come within {milliseconds} ms")
        for rank, text in enumerate(results(4, monitored, milliseconds, wait_all_ranks, missing)):
            with self.subTest(missing=missing, wait_all_ranks=wait_all_ranks, rank=rank):
                if rank in missing:
                    self.assertEqual(text, "")
                    continue
                words = "[Rank 0]: " + on_rank_0 if rank == 0 else (
                    f"Rank {rank} successfully reached monitoredBarrier, but received errors while "
                    "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank")
                self.assertEqual(text, "timeout: after a timeout was reached: " + words + own)

    def test_a_monitored_barrier_names_missing_ranks_in_torchs_text_and_in_its_own(self) -> None:
        # Rank 3 must arrive in time here, even on a busy machine.
        self.check_monitored(5000, False, [1, 2], "Rank 1 failed to pass monitoredBarrier in 5000 ms")
        self.check_monitored(100, True, [1, 2, 3],
                             "Ranks 1, 2, 3 failed to pass monitoredBarrier in 100 ms")

    def test_a_monitored_barrier_without_time_says_that_rank_0_timed_out(self) -> None:
        self.check_monitored(0, False, [1, 2, 3],
                             "Rank 1 failed to pass monitoredBarrier in 0 ms. Rank 0 timed out in "
                             "monitoredBarrier after 0 ms")

    def test_a_monitored_barrier_without_rank_0_says_that_the_other_ranks_arrived(self) -> None:
        self.check_monitored(100, False, [0], "")

    def test_argument_checks_keep_torchs_texts(self) -> None:
        for end in outcomes(2, wrong_root):
            self.assertIn("invalid root rank", end.error)


# The tests may inherit an ignored Ctrl-C, because shells ignore it for background jobs.
HEEDS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

SCRIPT = HEEDS_CTRL_C + """
import sys, time, torch, torch.distributed as dist
rank, size, store, what = int(sys.argv[1]), 2, sys.argv[2], sys.argv[3]
dist.init_process_group("peal", init_method="file://" + store, rank=rank, world_size=size)
dist.all_reduce(torch.ones(1))
if what in ("sum", "leave a sum"):
    data = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (4,))
    dist.all_reduce(data.clone())  # the first sum makes the group of sums on both ranks
else:
    data = torch.ones(1)
if what == "release":
    from peal import _c10d
    store = dist.PrefixStore("part", dist.distributed_c10d._get_default_store())
    part = _c10d.create(store, rank, size, 3600.0, [0, 1], lazy=False, store_ends_with_rank_0=False)
    if rank == 0:
        work = part.allreduce([data])
print("ready", flush=True)
if what == "release" and rank == 0:
    try:
        del part  # takes a second and does not check signals; Python checks them afterwards
        for _ in range(500):
            time.sleep(0.01)
    except KeyboardInterrupt:
        print(time.monotonic())
        raise
elif what == "alarm" and rank == 0:
    def give_up(*_): raise TimeoutError("too slow")
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        dist.all_reduce(data)
    except TimeoutError:
        print(time.monotonic())
        raise
elif what in ("block", "sum") and rank == 0:
    try:
        dist.all_reduce(data)
    except KeyboardInterrupt:
        print(time.monotonic())  # the clock of the machine
        raise
elif what == "second start fails" and rank == 0:
    # The first operation has started, and the second cannot start.
    out = [torch.zeros(2), torch.zeros(2, dtype=torch.float64)]
    try:
        dist.group.WORLD.allgather_into_tensor_coalesced(out, [torch.zeros(1), out[1][1:]])
    except KeyboardInterrupt:
        print(time.monotonic())
        raise
elif what in ("leave", "leave a sum") and rank == 0:
    work = dist.all_reduce(data, async_op=True)
    try:
        dist.destroy_process_group()
    except KeyboardInterrupt:
        print(time.monotonic())
        raise
elif what != "nothing":
    sys.stdin.read()
    try:
        dist.barrier()
    except RuntimeError as error:
        print(error)
"""


class ProcessesTest(unittest.TestCase):
    """Tests of whole processes, as users start them."""

    def start(self, what: str) -> list[subprocess.Popen[str]]:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        processes = [
            subprocess.Popen([sys.executable, "-c", SCRIPT, str(rank), f"{folder.name}/store",
                              what],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
            for rank in range(2)]
        for process in processes:
            self.addCleanup(process.kill)
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "ready\n")
        return processes

    def ends_by_ctrl_c(self, what: str, kind: str = "aborted",
                       reason: str = "a signal handler raised KeyboardInterrupt") -> None:
        blocked, other = self.start(what)
        time.sleep(0.5)
        begin = time.monotonic()
        blocked.send_signal(signal.SIGINT)
        out, text = blocked.communicate(timeout=PATIENCE)
        self.assertLess(float(out) - begin, PATIENCE)
        self.assertIn("KeyboardInterrupt", text)
        printed, _ = other.communicate("", timeout=PATIENCE)
        self.assertRegex(printed, rf"\A{kind}: .*rank 0.*{reason}.*\n\Z")

    def test_peers_learn_which_rank_an_alarm_has_interrupted(self) -> None:
        alarmed, other = self.start("alarm")
        _, text = alarmed.communicate(timeout=PATIENCE)
        self.assertIn("TimeoutError: too slow", text)
        printed, _ = other.communicate("", timeout=PATIENCE)
        self.assertIn("rank 0 was interrupted: a signal handler raised TimeoutError: too slow", printed)

    def test_ctrl_c_ends_a_sum_of_sparse_tensors(self) -> None:
        self.ends_by_ctrl_c("sum")

    def test_ctrl_c_ends_a_blocked_collective(self) -> None:
        self.ends_by_ctrl_c("block")

    def test_ctrl_c_ends_the_wait_for_operations_that_started_before_an_error(self) -> None:
        self.ends_by_ctrl_c("second start fails")

    def test_ctrl_c_ends_the_wait_for_operations_in_flight_when_groups_are_left(self) -> None:
        self.ends_by_ctrl_c("leave")
        self.ends_by_ctrl_c("leave a sum", "peer_lost", "has left the group")

    def test_ctrl_c_is_not_lost_while_the_last_reference_to_a_group_is_released(self) -> None:
        self.ends_by_ctrl_c("release", "peer_lost", "threw: KeyboardInterrupt")

    def test_ctrl_c_ends_the_wait_for_missing_ranks(self) -> None:
        with tempfile.TemporaryDirectory() as folder, reserved_port() as port:
            for place in (f"tcp://127.0.0.1:{port}", f"file://{folder}/store"):
                for rank in (0, 1):
                    with self.subTest(place=place, rank=rank):
                        script = (HEEDS_CTRL_C + "import peal; print('ready', flush=True); "
                                  f"peal.init_process_group('{place}', rank={rank}, world_size=2, "
                                  "timeout=3600)")
                        process = subprocess.Popen([sys.executable, "-c", script], text=True,
                                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                        self.addCleanup(process.kill)
                        assert process.stdout is not None
                        self.assertEqual(process.stdout.readline(), "ready\n")
                        time.sleep(0.3)
                        process.send_signal(signal.SIGINT)
                        _, text = process.communicate(timeout=PATIENCE)
                        self.assertIn("KeyboardInterrupt", text)

    def test_a_process_that_never_destroys_its_group_ends_with_0(self) -> None:
        for process in self.start("nothing"):
            _, text = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, text)


if __name__ == "__main__":
    unittest.main()
