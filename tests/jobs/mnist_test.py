"""MNIST by two ranks: the same job learns the same under `peal run`, on this machine, on two hosts over ssh, and in
containers of podman.

    mnist_test.py PEAL MNIST    # MNIST: the example
Real digits are read from the folder in PEAL_TEST_MNIST; without it, the digits are drawn.
"""
import json
import os
import pathlib
import sys

import jobs
import images
import ssh_hosts
from jobs import JobTest, role
from ssh_hosts import SshHosts

MNIST = pathlib.Path(sys.argv[2]).resolve()
FOLDER = os.environ.get("PEAL_TEST_MNIST", "")
OPTIONS = ["--ddp", "--epochs", "1", *(["--data", FOLDER] if FOLDER else [])]
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


class Mnist(JobTest):
    def command(self, report):
        return [MNIST, *OPTIONS, "--report", self.path(report)]

    def learned(self, run, report):
        """The loss and the accuracy on held-out digits."""
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"epoch 1 of 1: loss ")
        values = json.loads(self.path(report).read_text())
        print(report, values)
        self.assertEqual(values["ranks"], 2)
        return values["loss"], values["accuracy"]

    def job(self, report, **fields):
        folders = [self.folder, *([FOLDER] if FOLDER else [])]
        return {"env": ENVIRONMENT, "engine_options": {"container": [f"--volume={one}:{one}" for one in folders]},
                "roles": [role(*self.command(report), **fields)]}

    def test_the_losses_are_those_of_peal_run(self):
        expected = self.learned(self.peal("run", "-n", 2, *self.command("run.json"), env=ENVIRONMENT), "run.json")
        self.assertGreater(expected[1], 0.9)
        local = self.stream(self.job("local.json", ranks_per_node=2))
        self.assertEqual(self.learned(local, "local.json"), expected)
        nodes = self.stream(self.job("nodes.json", nodes=2))
        self.assertEqual(self.learned(nodes, "nodes.json"), expected)
        if ssh_hosts.why_not():
            self.skipTest(ssh_hosts.why_not())
        with SshHosts(2, programs=[jobs.PEAL.parent]) as self.hosts:
            ssh = self.stream(self.job("ssh.json", nodes=2), to=("--to", "ssh", "-H", "node1,node2"))
        self.assertEqual(self.learned(ssh, "ssh.json"), expected)
        if images.why_not():
            self.skipTest(images.why_not())
        containers = images.Containers(programs=[jobs.PEAL.parent, MNIST.parent])
        with SshHosts(0, programs=[jobs.PEAL.parent], containers=containers) as self.hosts:
            run = self.stream(self.job("containers.json", nodes=2, image=images.IMAGE))
        self.assertEqual(self.learned(run, "containers.json"), expected)


if __name__ == "__main__":
    jobs.main()
