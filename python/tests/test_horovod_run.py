"""horovod.run: a function on several ranks."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from needs import import_torch

import_torch()

import peal.horovod as hvd
from peal import _spawn

from programs import output_of


def place_and_sum(value: int, factor: int = 1) -> tuple[str | None, int, int, float]:
    import torch

    hvd.init()
    total = hvd.allreduce(torch.tensor(float(value * (hvd.rank() + 1))), op=hvd.Sum, name="value")
    place = (os.environ.get("HOROVOD_HOSTNAME"), hvd.rank(), hvd.local_rank(), factor * float(total))
    print("rank", hvd.rank(), flush=True)
    return place


def raise_on_rank_1() -> None:
    hvd.init()
    if hvd.rank() == 1:
        raise LookupError("no such row")
    hvd.barrier()


class RunTest(unittest.TestCase):
    def test_the_loss_of_a_rank_is_not_the_first_failure(self) -> None:
        lost = hvd.HorovodInternalError("rank 1 has ended")
        lost.kind, lost.rank = "peer_lost", 1
        disagreement = hvd.HorovodMismatchError("types differ")
        disagreement.kind = "mismatch"
        with mock.patch.dict(os.environ, RANK="0"):
            for error, follows in ((lost, True), (disagreement, False), (LookupError("x"), False)):
                self.assertEqual(_spawn._follows(error), follows, error)
        self.assertEqual(_spawn._kind_of(lost), "peer_lost")

    def test_a_function_runs_on_ranks_and_gives_a_list_of_results(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            got = hvd.run(place_and_sum, (1,), {"factor": 10}, num_proc=3, hosts="localhost:2,127.0.0.1:2",
                          output_filename=folder)
            self.assertEqual(got, [("localhost", 0, 0, 60.0), ("localhost", 1, 1, 60.0),
                                   ("127.0.0.1", 2, 0, 60.0)])
            for rank in range(3):
                self.assertEqual(Path(folder, f"rank.{rank}/stdout").read_text(), f"rank {rank}\n")
                self.assertTrue(Path(folder, f"rank.{rank}/stderr").exists())

    def test_an_exception_shows_the_traceback_of_its_rank(self) -> None:
        with self.assertRaises(RuntimeError) as caught:
            hvd.run(raise_on_rank_1, num_proc=2)
        text = str(caught.exception)
        self.assertIn("rank 1 of 2 failed first: LookupError: no such row", text)
        self.assertIn("in raise_on_rank_1", text)

    @unittest.skipUnless(importlib.util.find_spec("cloudpickle"), "cloudpickle is not installed")
    def test_with_cloudpickle_a_script_needs_no_guard_and_lambdas_work(self) -> None:
        program = ("import horovod.torch as hvd, horovod\n"
                   "class Result(tuple): pass\n"
                   "def work(x): hvd.init(); return Result([x, hvd.rank()])\n"
                   "print(horovod.run(work, (7,), num_proc=2), horovod.run(lambda: 3, num_proc=1))\n")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "program.py")
            script.write_text(program)
            text = output_of(sys.executable, "-m", "peal.horovod", script)
        self.assertEqual(text, "[(7, 0), (7, 1)] [3]\n")

    @unittest.skipIf(importlib.util.find_spec("cloudpickle"), "cloudpickle is installed")
    def test_without_cloudpickle_the_error_says_what_to_install(self) -> None:
        with self.assertRaisesRegex(ValueError, "Install cloudpickle"):
            hvd.run(lambda: 3, num_proc=1)


class PlacesTest(unittest.TestCase):
    """The variables of the ranks of horovod.run."""

    def places(self, num_proc: int, hosts: str) -> list[tuple[str, ...]]:
        from peal.horovod import runner

        names = ("HOSTNAME", "RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
        return [tuple(place[f"HOROVOD_{name}"] for name in names)
                for place in runner._places(runner._slots_of(hosts, None, num_proc), num_proc)]

    def test_the_first_host_is_filled_first(self) -> None:
        self.assertEqual(self.places(3, "localhost:2,127.0.0.1:2"), [
            ("localhost", "0", "3", "0", "2", "0", "2"),
            ("localhost", "1", "3", "1", "2", "0", "1"),
            ("127.0.0.1", "2", "3", "0", "1", "1", "2")])

    def test_wrong_hosts_are_value_errors(self) -> None:
        for num_proc, hosts, words in (
                (3, "localhost:2", r"Requested more processes \(3\) than there are available slots \(2\)"),
                (1, "elsewhere:2", "elsewhere is another host"), (1, "localhost:x", "number of slots")):
            with self.assertRaisesRegex(ValueError, words):
                self.places(num_proc, hosts)

    def test_a_file_of_hosts_may_have_comments(self) -> None:
        from peal.horovod import runner

        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# hosts\n\nlocalhost slots=2  # here\n127.0.0.1\n")
            file.flush()
            self.assertEqual(runner._slots_of(None, file.name, 3), [("localhost", 2), ("127.0.0.1", 1)])

    def test_arguments_that_exclude_each_other(self) -> None:
        for arguments, words in (({"hosts": "localhost:1", "hostfile": "x"}, "only allow one provided"),
                                 ({"use_gloo": True, "use_mpi": True}, "only allow one set True"),
                                 ({"use_mpi": True}, "without MPI"), ({"num_proc": 0}, "cannot start 0"),
                                 ({"min_num_proc": 2}, "start an elastic job by horovodrun")):
            with self.assertRaisesRegex(ValueError, words):
                hvd.run(print, **arguments)
        with contextlib.suppress(ValueError), self.assertWarns(DeprecationWarning):
            hvd.run(print, np=0)


if __name__ == "__main__":
    unittest.main()
