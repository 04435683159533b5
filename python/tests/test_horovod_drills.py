"""Elastic training with Horovod's API on real processes: workers are killed, hosts come and go, at random
moments. The job finishes, no sample is lost or used twice, and no process is left.

PEAL_ELASTIC_DRILLS is the number of drills; PEAL_SEED repeats one."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Callable, Iterator

from needs import torch_wanted
from programs import PATIENCE

DRILLS = int(os.environ.get("PEAL_ELASTIC_DRILLS", "3"))
EPOCHS = 4
SAMPLES = 96  # as in the worker
WORKER = Path(__file__).with_name("horovod_elastic_worker.py")


class Job:
    """A job on the hosts of a file. Each name of this machine is a host."""

    def __init__(self, folder: Path, hosts: dict[str, int]) -> None:
        self.folder = folder
        self.set_hosts(hosts)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "peal", "run", "--min-np", "1", "--host-discovery-script",
             f"cat {folder}/hosts", "--blacklist-cooldown-range", "1", "2", sys.executable, "-W",
             "ignore", "-m", "peal.horovod", str(WORKER), str(folder), str(EPOCHS)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def set_hosts(self, hosts: dict[str, int]) -> None:
        self.hosts = hosts
        new = self.folder / "hosts.new"
        new.write_text("".join(f"{name}:{slots}\n" for name, slots in hosts.items()))
        new.replace(self.folder / "hosts")  # the script never reads half of it

    def workers(self) -> list[int]:
        """The processes that train."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = entry.joinpath("cmdline").read_bytes().split(b"\0")
                if str(self.folder).encode() in words and b"peal.horovod" in words[:6]:
                    found.append(int(entry.name))
        # The driver's command line names them too.
        return [pid for pid in found if pid != self.process.pid and not _is_launcher(pid)]

    def epochs(self) -> list[dict[str, list[int]]]:
        files = (self.folder / f"epoch{epoch}.json" for epoch in range(EPOCHS))
        return [json.loads(file.read_text()) for file in files if file.exists()]


def _is_launcher(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"--host-discovery-script" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return True


@contextlib.contextmanager
def job(hosts: dict[str, int]) -> Iterator[Job]:
    with tempfile.TemporaryDirectory() as folder:
        running = Job(Path(folder), hosts)
        try:
            yield running
        finally:
            running.process.kill()
            running.process.wait()


@torch_wanted
class ElasticDrills(unittest.TestCase):
    def test_drills(self) -> None:
        seed = int(os.environ.get("PEAL_SEED", random.SystemRandom().randrange(1 << 32)))
        for drill in range(DRILLS):
            with self.subTest(seed=seed + drill):
                self.drill(random.Random(seed + drill), drill)

    def drill(self, choice: random.Random, number: int) -> None:
        event = ("kill", "add", "remove")[number % 3]
        with job({"localhost": 2, "127.0.0.1": 1} if event == "remove" else {"localhost": 2}) as running:
            self.wait_for(lambda: len(running.epochs()) > 0 or running.process.poll() is not None)
            time.sleep(choice.uniform(0, 0.6))
            if event == "kill":
                workers = running.workers()
                self.assertTrue(workers, "no worker runs any more")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(choice.choice(workers), signal.SIGKILL)
            elif event == "add":
                running.set_hosts({"localhost": 2, "127.0.0.1": 1})
            else:
                running.set_hosts({"localhost": 2})
            output, _ = running.process.communicate(timeout=PATIENCE)
            self.assertEqual(running.process.returncode, 0, output)
            self.assertIn("has finished", output)
            self.assertNotIn("Traceback", output)  # also of a removed worker
            epochs = running.epochs()
            self.assertEqual(len(epochs), EPOCHS, output)
            for epoch in epochs:
                self.check_ledger(epoch, output)
            self.assertEqual(running.workers(), [], output)

    def check_ledger(self, epoch: dict[str, list[int]], output: str) -> None:
        """Each sample is used, and only once, but for the padding of the last step of each number of
        ranks."""
        used, sizes = epoch["used"], epoch["sizes"]
        self.assertEqual(set(used), set(range(SAMPLES)), output)
        repeated = len(used) - SAMPLES
        self.assertLess(repeated, max(sizes), f"{repeated} samples were used twice\n{output}")

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, "the job makes no progress")
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
