"""Elastic training with Horovod's API on several hosts: the host of rank 0 is cut off, and the training continues with
its state on the hosts that are left. The hosts are real sshds in namespaces (tests/engines); without root, the test is
skipped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import unittest
from pathlib import Path

from needs import torch_wanted
from programs import PATIENCE

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/engines"))
import ssh_hosts  # noqa: E402

EPOCHS = 4
SAMPLES = 96  # as in the worker
WORKER = Path(__file__).with_name("horovod_elastic_worker.py")


@torch_wanted
@unittest.skipIf(ssh_hosts.why_not(), ssh_hosts.why_not())
class HostsTest(unittest.TestCase):
    def test_the_training_continues_when_the_host_of_rank_0_is_cut_off(self) -> None:
        with ssh_hosts.SshHosts(3) as hosts:
            folder = hosts.folder / "epochs"
            folder.mkdir()
            job = hosts.popen(
                [sys.executable, "-m", "peal", "run", "--np", "1:2", "-H", "node1:1,node2:1,node3:1", sys.executable,
                 "-W", "ignore", "-m", "peal.horovod", str(WORKER), str(folder), str(EPOCHS)],
                cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                end = time.monotonic() + PATIENCE
                while not folder.joinpath("epoch0.json").exists():
                    self.assertIsNone(job.poll(), "ended before the first epoch")
                    self.assertLess(time.monotonic(), end, "the first epoch takes too long")
                    time.sleep(0.05)
                hosts.cut("node1")
                output = job.communicate(timeout=PATIENCE)[0]
            finally:
                job.kill()
                job.communicate()
            self.assertEqual(job.returncode, 0, output)
            self.assertRegex(output, r"host node1 was lost with worker node1\[0\]")
            for epoch in range(EPOCHS):
                used = json.loads(folder.joinpath(f"epoch{epoch}.json").read_text())["used"]
                self.assertEqual(sorted(used), list(range(SAMPLES)), f"epoch {epoch}:\n{output}")


if __name__ == "__main__":
    unittest.main()
