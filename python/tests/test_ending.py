"""The peers of a process are notified of its end, for each way of starting it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Sequence

from needs import torch_wanted
from programs import PATIENCE, reserved_port

# The first process is rank 0 and prints the error that rank 1 causes. It starts rank 1 while it handles
# another exception.
SCRIPT = '''
import atexit, multiprocessing, os, pathlib, subprocess, sys, threading, time
if sys.argv[2] != "fork before peal is there":
    import peal
if "torch" in sys.argv[3]:
    import torch.distributed  # once, for both

class Speechless(Exception):
    def __str__(self):
        raise KeyError("no words")

def end(what):
    if what == "raise":
        raise ValueError("out of luck")
    if what == "raise without words":
        raise Speechless()
    if what == "raise what cannot be encoded":
        raise ValueError(os.fsdecode(b"\\xff"))
    if what == "exit with 3":
        sys.exit(3)

    if what == "exit with 0":
        sys.exit(0)

def join(folder, rank):
    import peal
    return peal.init_process_group(f"file://{folder}/store", rank=rank, world_size=2)

def join_by_torch(folder, rank):
    import torch.distributed as dist
    place = "env://" if "env" in sys.argv[3] else f"file://{folder}/store"
    dist.init_process_group("peal", init_method=place, rank=rank, world_size=2)
    return dist

def rank_1(folder, what):
    if what.startswith("torch: "):
        dist = join_by_torch(folder, 1)
        try:
            end(what.removeprefix("torch: "))
        finally:
            dist.destroy_process_group()
    elif what.startswith("block: "):
        with join(folder, 1):
            end(what.removeprefix("block: "))
    elif what.startswith("under way: "):
        with join(folder, 1) as mine:
            work = mine.barrier_async()
            pathlib.Path(folder, "ends").touch()
            end(what.removeprefix("under way: "))
    elif what.startswith("daemon: "):
        mine = (join_by_torch if "torch" in what else join)(folder, 1)
        work = mine.barrier(async_op=True) if "torch" in what else mine.barrier_async()

        destroy = mine.destroy_process_group if "torch" in what else mine.destroy
        leaves = threading.Event()
        threading.Thread(target=lambda: (leaves.set(), destroy()), daemon=True).start()
        leaves.wait()
        atexit.register(pathlib.Path(folder, "ends").touch)
    else:
        global group  # lives until the end of the process
        group = join(folder, 1)
        end(what)

def rank_0(folder, what, other):
    try:
        mine = (join_by_torch if "torch" in what else join)(folder, 0)
        if "late" in what or what == "under way: exit with 3":
            other.wait()
        while (("soon" in what or what == "under way: exit with 0") and other.poll() is None
               and not os.path.exists(f"{folder}/ends")):
            time.sleep(0.01)
        if what == "under way: exit with 0":
            time.sleep(1.5)  # a failed exit waits only one second
        mine.barrier()
        print("well")
    except RuntimeError as error:
        print(error)

if __name__ == "__main__":
    folder, how, what = sys.argv[1:]
    if how == "as rank 1":
        rank_1(folder, what)
        sys.exit()
    try:
        raise LookupError("of the parent")
    except LookupError:
        if how == "a program":
            other = subprocess.Popen([sys.executable, __file__, folder, "as rank 1", what])
        else:
            context = multiprocessing.get_context(how.split()[0])
            other = context.Process(target=rank_1, args=(folder, what))
            other.start()
    rank_0(folder, what, other)
    if how == "a program":
        other.wait()
    else:
        other.join()
'''

IMPORT = """
import weakref

class Local:
    pass

def fail():
    global seen
    local = Local()
    seen = weakref.ref(local)
    raise ImportError

try:
    fail()
except ImportError:
    import peal
assert seen() is None
"""

# The interpreter ends while threads call peal continuously.
DAEMONS = """
import sys, threading
import peal

def work(group):
    while True:
        try:
            group.barrier()
        except peal.Error:
            pass

group = peal.init_process_group(f"file://{sys.argv[1]}/store", rank=0, world_size=1)
for _ in range(4):
    threading.Thread(target=work, args=[group], daemon=True).start()
"""

SECRET = "5" * 64  # without a secret, torch's groups print a warning
WAYS = ("a program", "fork", "fork before peal is there", "forkserver", "spawn")
FORKS = ("fork", "fork before peal is there")

# A callback of rank 0 still takes the GIL again and again while the interpreter ends.
BACKEND_SCRIPT = '''
import sys, time
import torch
import torch.distributed as dist
from peal import _torch

folder, rank, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
store = dist.FileStore(f"{folder}/store", 2)
held = [_torch._load().create(store, rank, 2, 3600.0, [], lazy=False, store_ends_with_rank_0=False)]

def linger(done):
    for _ in range(3000):  # longer than the second that operations get
        time.sleep(0.001)
    print("over", flush=True)

def one(kind):
    return torch.ones(1) if kind == "dense" else (
        torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (4,)))

held[0].allreduce([one("sparse")]).wait()
if rank == 1:
    time.sleep(0.3)
    if what == "release":
        held[0].allreduce([one("dense")]).wait()
    sys.stdin.read()
elif what == "under way":
    held[0].allreduce([one("sparse")]).get_future().then(linger)
else:
    first = held[0].allreduce([one("dense")]).get_future().then(lambda done: held.clear())
    held[0].allreduce([one("sparse")]).get_future().then(linger)
    first.wait()
'''


class EndingTest(unittest.TestCase):
    def output_of(self, how: str, what: str) -> tuple[str, str]:
        """The output of rank 0, and the stderr of both ranks."""
        with tempfile.TemporaryDirectory() as folder, reserved_port() as port:
            script = Path(folder, "script.py")
            script.write_text(SCRIPT)
            variables = {**os.environ, "PEAL_SECRET": SECRET, "MASTER_ADDR": "127.0.0.1",
                         "MASTER_PORT": port, "PYTHONWARNINGS": "ignore"}  # torch's, without NumPy
            if "env" in what:  # torch's store warns if the name of this host is unknown
                variables["TORCH_CPP_LOG_LEVEL"] = "ERROR"
            run = subprocess.run([sys.executable, str(script), folder, how, what], env=variables,
                                 capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(run.returncode, 0, run.stderr)
            return run.stdout, run.stderr

    def on_each(self, what: str, words: str, written: str = "",
                ways: Sequence[str] = WAYS) -> None:
        for how in ways:
            with self.subTest(how):
                text, errors = self.output_of(how, what)
                self.assertIn(words, text)
                self.assertNotIn("of the parent", text)
                self.assertIn(written, errors)
                if not written:
                    self.assertEqual(errors, "")

    def test_a_process_that_ends_has_left_its_groups(self) -> None:
        self.on_each("end", "has left the group")

    def test_a_process_that_exits_has_left_its_groups(self) -> None:
        self.on_each("exit with 3", "has left the group")

    def test_peers_receive_the_exception_that_ends_a_process(self) -> None:
        self.on_each("raise", "rank 1 threw: ValueError: out of luck", "ValueError: out of luck")

    def test_peers_receive_the_class_of_an_exception_without_readable_text(self) -> None:
        self.on_each("raise without words", "rank 1 threw: Speechless", "Speechless")

    def test_peers_receive_the_exception_that_leaves_a_block_with_any_text(self) -> None:
        self.on_each("block: raise", "rank 1 threw: ValueError: out of luck", "ValueError")
        for what, words in (("raise what cannot be encoded", "ValueError: \\udcff"),
                            ("raise without words", "Speechless, which has no readable text")):
            self.on_each(f"block: {what}", f"rank 1 threw: {words}", words.split(",")[0], FORKS)

    def test_an_exit_with_0_waits_like_a_return_and_a_failed_exit_waits_a_second(self) -> None:
        self.on_each("under way: exit with 0", "well", ways=["a program"])
        self.on_each("under way: exit with 3", "has left the group", ways=["a program"])

    def daemons_leave(self, kind: str = "") -> None:
        """A daemon thread of rank 1 leaves its group while the interpreter exits. Rank 0 calls its
        barrier at once ("soon") or after the exit ("late"). The test retries, because on a busy
        machine the thread may start too late, or rank 0 may miss the one second."""
        for when, words in (("soon", "well"), ("late", "the Python interpreter ends")):
            for _ in range(10):
                text, errors = self.output_of("a program", f"daemon: {kind}{when}")
                self.assertNotIn("terminate called", errors)
                if words in text and errors == "":
                    break
            self.assertIn(words, text)
            self.assertEqual(errors, "")

    def test_daemon_threads_in_peal_do_not_disturb_the_exit(self) -> None:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run([sys.executable, "-c", DAEMONS, folder], capture_output=True,
                                     text=True, timeout=PATIENCE)
                self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_the_exit_waits_a_second_for_a_daemon_that_leaves(self) -> None:
        self.daemons_leave()

    @torch_wanted
    def test_the_exit_waits_for_a_daemon_that_leaves_torchs_group(self) -> None:
        self.daemons_leave("torch, ")

    @torch_wanted
    def test_the_exit_waits_for_such_a_daemon_if_rank_0_serves_torchs_store(self) -> None:
        self.daemons_leave("torch, env, ")

    @torch_wanted
    def test_peers_are_notified_of_the_end_of_torchs_groups(self) -> None:
        self.on_each("torch: end", "has left the group", ways=["fork"])
        self.on_each("torch: raise what cannot be encoded", "rank 1 threw: ValueError: \\udcff",
                     "ValueError: \\udcff", ["fork"])

    def test_an_import_of_peal_does_not_keep_a_handled_exception_alive(self) -> None:
        run = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    @torch_wanted
    def test_no_thread_of_a_backend_outlives_the_interpreter(self) -> None:
        for what in ("under way", "release"):
            with self.subTest(what), tempfile.TemporaryDirectory() as folder:
                ranks = [subprocess.Popen([sys.executable, "-c", BACKEND_SCRIPT, folder, str(rank),
                                           what],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True)
                         for rank in range(2)]
                out, errors = ranks[0].communicate(timeout=PATIENCE)
                ranks[1].communicate("", timeout=PATIENCE)
                self.assertEqual(ranks[0].returncode, 0, errors)
                self.assertEqual(out, "over\n")


if __name__ == "__main__":
    unittest.main()
