"""How `peal.spawn` reports the ends of its ranks."""

from __future__ import annotations

import array
import datetime
import itertools
import multiprocessing.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable
from unittest import mock

import peal
from needs import torch_wanted
from peal import _spawn
from programs import PATIENCE

RANKS = 2


# ---- on each rank

def write_late(folder: str) -> None:
    path = Path(folder, os.environ["RANK"])
    time.sleep(0.5)  # flushing files and leaving groups may take this long
    path.write_text("ended")


def end_slowly(folder: str, raises: bool) -> None:
    multiprocessing.util.Finalize(None, write_late, (folder,), exitpriority=10)
    if raises and os.environ["RANK"] == "1":
        raise ValueError("out of luck")


def never_end(pids: str) -> int:
    path = Path(pids, os.environ["RANK"])
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)  # so that the file never exists without its text
    threading.Thread(target=threading.Event().wait).start()
    return int(os.environ["RANK"])


def place_of_horovod() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("HOROVOD_")}


class NeedsTwo(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class HasALock(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


class Speechless(Exception):
    def __init__(self) -> None:
        super().__init__(threading.Lock())

    def __str__(self) -> str:
        raise KeyError("no words")


def raise_on_rank_1(error: type[Exception], *arguments: str) -> str:
    if os.environ["RANK"] == "1":
        raise error(*arguments)
    return "well"


def exit_process_of_rank_1() -> None:
    if os.environ["RANK"] == "1":
        os._exit(3)


def return_on_rank_1(error: type[Exception], *arguments: str) -> Any:
    return error(*arguments) if os.environ["RANK"] == "1" else "well"


def unreserved_ports() -> list[str]:
    """The variables whose ports are not reserved. A bind without SO_REUSEADDR fails on a reserved
    port."""
    free = []
    for name in ("MASTER_PORT", "PEAL_MASTER_PORT"):
        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", int(os.environ[name])))
                free.append(name)
            except OSError:
                pass
    return free


def return_a_tensor() -> Any:
    import torch

    return torch.full((3,), float(os.environ["RANK"]))


def fail_before_the_meeting() -> None:
    if os.environ["RANK"] == "0":
        raise ValueError("out of luck")
    peal.init_process_group(timeout=3600)


def fail_in_a_group() -> None:
    try:
        with peal.init_process_group() as group:
            if group.rank == 1:
                raise ValueError("out of luck")
            group.barrier()
    except ValueError:
        time.sleep(1)  # the other rank has sent its outcome by then
        raise
    except peal.Error as error:
        raise RuntimeError(f"step 7: {error}") from error


def be_killed(number: int) -> None:
    os.kill(os.getpid(), number)


def leave_a_child_behind(kind: str, file: str, number: int | None) -> None:
    if kind == "fork":
        child = os.fork()
        if child == 0:
            time.sleep(3 * PATIENCE)
            os._exit(0)
    else:
        child = os.posix_spawn("/bin/sleep", ["sleep", str(3 * PATIENCE)], {})
    Path(file).write_text(str(child))
    if number is not None:
        be_killed(number)


def raise_its_own_cause() -> None:
    try:
        raise ValueError("out of luck")
    except ValueError as error:
        raise error from error


class Several(Exception):
    """An exception that is false, because its length is 0."""

    def __len__(self) -> int:
        return 0


def fail_after_a_lost_peer() -> None:
    lost = Several()
    lost.__cause__ = peal.Error("rank 1 was lost", "peer_lost")
    raise ValueError("out of luck") from lost


def both_kinds_of_groups() -> list[float]:
    import torch
    import torch.distributed as dist

    dist.init_process_group("peal")
    data = torch.ones(1)
    with peal.init_process_group(timeout=PATIENCE) as group:
        group.all_reduce(data)
        dist.all_reduce(data)
    dist.destroy_process_group()
    return data.tolist()


def meet_again() -> tuple[float, str]:
    group = peal.init_process_group(timeout=3600)
    begin = time.monotonic()
    try:
        peal.init_process_group(timeout=3600)
    except peal.Error as error:
        took, said = time.monotonic() - begin, str(error)
    group.barrier()
    group.destroy()
    with peal.init_process_group(timeout=PATIENCE) as second:  # `group` still exists
        second.barrier()
    return took, said


def exit_on_rank_1() -> None:
    global group  # lives until the end of the process
    group = peal.init_process_group()
    if group.rank == 1:
        sys.exit(3)
    group.barrier()


def exit_with(*code: int) -> str:
    if os.environ["RANK"] == "1":
        sys.exit(*code)
    return "well"


def exit_amid_an_operation() -> None:
    data = array.array("f", [1.0])
    with peal.init_process_group(timeout=PATIENCE) as group:
        if group.rank == 0:
            group.recv(data, 1)
        group.all_reduce_async(data)
        sys.exit(3)


def exit_amid_an_operation_of_torch() -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("peal", timeout=datetime.timedelta(seconds=PATIENCE))
    try:
        if dist.get_rank() == 0:
            dist.recv(torch.ones(1), 1)
        dist.all_reduce(torch.ones(1), async_op=True)
        sys.exit(3)
    finally:
        dist.destroy_process_group()


UNGUARDED = """
import peal

def work():
    return 1

print(peal.spawn(work, ranks=2))
"""

PARENT = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import peal, test_spawn
if __name__ == "__main__":
    peal.spawn(test_spawn.never_end, sys.argv[2], ranks=2)
"""

# ----

def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("the condition did not become true in 30 s")
        time.sleep(0.05)


def is_running(pid: str) -> bool:
    try:
        _, _, after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return after_name.split()[0] != "Z"  # a zombie, which no process has reaped


class EndingTest(unittest.TestCase):
    def test_ranks_get_time_to_end_after_success_and_after_a_failure(self) -> None:
        for raises in (False, True):
            with self.subTest(raises=raises), tempfile.TemporaryDirectory() as folder:
                try:
                    peal.spawn(end_slowly, folder, raises, ranks=RANKS)
                    self.assertFalse(raises)
                except peal.SpawnError:
                    self.assertTrue(raises)
                self.assertEqual(sorted(os.listdir(folder)), ["0", "1"])

    def test_ranks_have_horovods_names_of_their_place(self) -> None:
        for rank, place in enumerate(peal.spawn(place_of_horovod, ranks=3)):
            self.assertEqual(place, {
                "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": "3", "HOROVOD_LOCAL_RANK": str(rank),
                "HOROVOD_LOCAL_SIZE": "3", "HOROVOD_CROSS_RANK": "0", "HOROVOD_CROSS_SIZE": "1",
                "HOROVOD_HOSTNAME": "localhost"})

    def test_a_rank_that_does_not_end_is_killed(self) -> None:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(_spawn, "_END_S", 1.0):
            begin = time.monotonic()
            self.assertEqual(peal.spawn(never_end, folder, ranks=RANKS), [0, 1])
            self.assertGreater(time.monotonic() - begin, 1)
            for rank in range(RANKS):
                pid = int(Path(folder, str(rank)).read_text())
                with self.assertRaises(ProcessLookupError):
                    os.kill(pid, 0)

    def test_ranks_do_not_outlive_the_process_that_started_them(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "parent.py")
            script.write_text(PARENT)
            pids = Path(folder, "pids")
            pids.mkdir()
            parent = subprocess.Popen([sys.executable, script, Path(__file__).parent, pids])
            files = [pids / str(rank) for rank in range(RANKS)]
            wait_for(lambda: all(file.exists() for file in files))
            parent.kill()
            parent.wait()
            wait_for(lambda: not any(is_running(file.read_text()) for file in files))


class OutcomesTest(unittest.TestCase):
    def test_a_rank_that_fails_before_the_rendezvous_ends_the_others(self) -> None:
        begin = time.monotonic()
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(fail_before_the_meeting, ranks=RANKS)
        self.assertLess(time.monotonic() - begin, PATIENCE)
        self.assertIn("rank 0 of 2 failed first", str(caught.exception))
        self.assertIn("out of luck", str(caught.exception))
        self.assertIn("after another rank failed", str(caught.exception.errors[1]))

    def test_the_first_failure_is_the_cause_even_if_its_outcome_arrives_later(self) -> None:
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(fail_in_a_group, ranks=RANKS)
        self.assertIn("rank 1 of 2 failed first: ValueError: out of luck\n", str(caught.exception))
        lost, raised = caught.exception.errors
        self.assertIn("rank 1 threw: ValueError: out of luck", str(lost))
        self.assertIsInstance(raised, ValueError)
        self.assertIs(caught.exception.__cause__, raised)

    def test_the_error_names_the_signal_that_ended_a_rank(self) -> None:
        for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGRTMIN + 1, "signal 35")):
            with self.assertRaises(peal.SpawnError) as caught:
                peal.spawn(be_killed, number, ranks=1)
            self.assertIn(f"was killed by {name}", str(caught.exception))

    def test_the_kind_is_that_of_the_first_failure(self) -> None:
        for kind, function, *arguments in (
                ("unsupported", raise_on_rank_1, peal.Error, "no such thing", "unsupported"),
                ("resource", raise_on_rank_1, FileNotFoundError, "no such file"),
                ("aborted", raise_on_rank_1, HasALock),
                ("peer_lost", exit_process_of_rank_1)):
            with self.subTest(kind), self.assertRaises(peal.SpawnError) as caught:
                peal.spawn(function, *arguments, ranks=RANKS)
            self.assertEqual(caught.exception.kind, kind)
            self.assertEqual(caught.exception.rank, 1)
            self.assertIsNone(caught.exception.errors[0])

    def test_the_error_of_a_script_without_a_main_guard_names_the_guard(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "unguarded.py")
            script.write_text(UNGUARDED)
            ended = subprocess.run([sys.executable, script], capture_output=True, text=True,
                                   timeout=PATIENCE)
        self.assertNotEqual(ended.returncode, 0)
        self.assertEqual(ended.stdout, "")
        last = ended.stderr.strip().splitlines()[-1]
        self.assertIn("SpawnError", last)
        self.assertIn("ended with exit code 1 before it called the function: its stderr says why",
                      last)
        self.assertIn('if __name__ == "__main__":', last)

    def test_a_rank_that_ends_inside_its_function_is_not_reported_as_not_started(self) -> None:
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(os._exit, 7, ranks=1)
        self.assertEqual(str(caught.exception).count("ended with exit code 7"), 1)
        self.assertIn("and its function neither returned nor raised", str(caught.exception))

    def test_the_end_of_a_rank_is_noticed_while_a_child_of_the_rank_lives_on(self) -> None:
        for kind, number in itertools.product(("fork", "spawn"), (None, signal.SIGKILL)):
            with self.subTest(kind, number=number), tempfile.NamedTemporaryFile("r") as file, \
                    mock.patch.object(_spawn, "_END_S", 2 * PATIENCE):
                begin = time.monotonic()
                try:
                    self.assertEqual(
                        peal.spawn(leave_a_child_behind, kind, file.name, number, ranks=1), [None])
                    self.assertIsNone(number)
                except peal.SpawnError as error:
                    self.assertIn("was killed by SIGKILL", str(error))
                    self.assertIsNotNone(number)
                finally:
                    os.kill(int(file.read()), signal.SIGKILL)
                self.assertLess(time.monotonic() - begin, PATIENCE)

    def test_an_exception_caused_by_a_lost_peer_counts_as_a_consequence(self) -> None:
        with self.assertRaises(ValueError) as caught:
            fail_after_a_lost_peer()
        self.assertTrue(_spawn._follows(caught.exception))
        self.assertFalse(_spawn._follows(ValueError("out of luck")))

    def test_an_exception_may_be_its_own_cause(self) -> None:
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(raise_its_own_cause, ranks=1)
        self.assertIn("out of luck", str(caught.exception))

    def check_exit(self, function: Callable[[], None]) -> None:
        """If rank 1 exits with 3, the error on rank 0 says that rank 1 has left."""
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(function, ranks=RANKS)
        lost, end = caught.exception.errors
        assert isinstance(end, SystemExit), repr(end)
        self.assertEqual(end.code, 3)
        self.assertIn("rank 1", str(lost))
        self.assertIn("has left", str(lost))
        self.assertNotIn("threw", str(lost))
        self.assertIn("rank 1 of 2 failed first", str(caught.exception))

    def test_peers_see_an_exit_as_a_leave_and_not_as_an_exception(self) -> None:
        self.check_exit(exit_on_rank_1)

    def test_an_exit_does_not_wait_for_an_operation(self) -> None:
        self.check_exit(exit_amid_an_operation)

    @torch_wanted
    def test_an_exit_does_not_wait_for_an_operation_of_torch(self) -> None:
        self.check_exit(exit_amid_an_operation_of_torch)

    def test_an_exit_with_code_0_gives_the_result_none(self) -> None:
        for code in ((), (0,)):
            with self.subTest(code):
                self.assertEqual(peal.spawn(exit_with, *code, ranks=RANKS), ["well", None])

    @torch_wanted
    def test_a_torch_group_and_a_peal_group_can_meet_side_by_side(self) -> None:
        self.assertEqual(peal.spawn(both_kinds_of_groups, ranks=RANKS), [[4.0], [4.0]])

    def test_a_second_init_fails_at_once_before_destroy_and_succeeds_after(self) -> None:
        for took, said in peal.spawn(meet_again, ranks=RANKS):
            self.assertIn("has met here already", said)
            self.assertLess(took, PATIENCE)  # the timeout is an hour

    def check_error(self, words: str, error: type[Exception], *arguments: str) -> None:
        with self.assertRaises(peal.SpawnError) as caught:
            peal.spawn(raise_on_rank_1, error, *arguments, ranks=RANKS)
        text = str(caught.exception)
        self.assertIn("rank 1 of 2 failed first", text)
        self.assertIn("in raise_on_rank_1", text)
        self.assertIn(error.__name__, text)
        none, raised = caught.exception.errors
        self.assertIsNone(none)
        self.assertIsInstance(raised, RuntimeError)
        self.assertIn(words, str(raised))

    def test_an_exception_that_cannot_be_unpickled_arrives_as_its_text(self) -> None:
        self.check_error("NeedsTwo: this and that", NeedsTwo, "this", "that")

    def test_an_exception_that_cannot_be_pickled_arrives_as_its_text(self) -> None:
        self.check_error("HasALock: locked", HasALock)

    def test_an_exception_without_readable_text_arrives_as_its_class_name(self) -> None:
        self.check_error("Speechless", Speechless)

    def test_a_result_that_cannot_be_pickled_or_unpickled_is_an_error_of_its_rank(self) -> None:
        for error, arguments, words, kind in ((NeedsTwo, ("this", "that"), "cannot be unpickled", "usage"),
                                              (HasALock, (), "cannot pickle", "aborted")):
            with self.subTest(error.__name__):
                with self.assertRaises(peal.SpawnError) as caught:
                    peal.spawn(return_on_rank_1, error, *arguments, ranks=RANKS)
                self.assertIn("rank 1 of 2 failed first", str(caught.exception))
                self.assertIn(words, str(caught.exception))
                self.assertIn(words, str(caught.exception.errors[1]))
                self.assertEqual(caught.exception.kind, kind)

    def test_spawn_rejects_arguments_that_cannot_be_pickled_before_it_starts_a_rank(self) -> None:
        for function, argument in ((lambda one: one, 1), (be_killed, threading.Lock())):
            with self.assertRaises(peal.Error) as caught:
                peal.spawn(function, argument, ranks=RANKS)
            self.assertEqual(caught.exception.kind, "usage")
            self.assertIn("cannot hand its function and arguments", str(caught.exception))
            self.assertIn("top level of a module", str(caught.exception))
        self.assertEqual(multiprocessing.active_children(), [])

    def test_ports_of_the_stores_stay_reserved_while_the_ranks_run(self) -> None:
        self.assertEqual(peal.spawn(unreserved_ports, ranks=RANKS), [[]] * RANKS)

    @torch_wanted
    def test_tensors_can_be_results(self) -> None:
        got = peal.spawn(return_a_tensor, ranks=RANKS)
        self.assertEqual([tensor.tolist() for tensor in got], [[0.0] * 3, [1.0] * 3])


if __name__ == "__main__":
    unittest.main()
