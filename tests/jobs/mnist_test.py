"""MNIST by two ranks: the same job learns the same under `peal run` and through each runner.

    mnist_test.py PEAL MNIST    # MNIST: the example
Real digits are read from the folder in PEAL_TEST_MNIST; without it, the digits are drawn.
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kubernetes"))
import jobs
import slurm_cluster
import ssh_hosts
import stand_in
from jobs import JobTest, role
from mpirun import TO_MPI, use_mpirun
from slurm_cluster import SlurmCluster
from ssh_hosts import SshHosts
from stand_in import StandIn

MNIST = pathlib.Path(sys.argv[2]).resolve()
FOLDER = os.environ.get("PEAL_TEST_MNIST", "")
OPTIONS = ["--ddp", "--steps", "40", *(["--data", FOLDER] if FOLDER else [])]
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


class Mnist(JobTest):
    expected = None

    def setUp(self):
        super().setUp()
        if Mnist.expected is None:
            run = self.peal("run", "-n", 2, *self.command("run.json"), env=ENVIRONMENT)
            Mnist.expected = self.learned(run, "run.json")
            self.assertGreater(self.expected[1], 0.9)

    def command(self, report):
        return [MNIST, *OPTIONS, "--report", self.path(report)]

    def learned(self, run, report):
        """The loss and the accuracy on held-out digits."""
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"epoch 1 of \d: loss ")
        values = json.loads(self.path(report).read_text())
        print(self.id(), values)
        self.assertEqual(values["ranks"], 2)
        return values["loss"], values["accuracy"]

    def assert_learns_the_same(self, to, report="report.json", **fields):
        job = {"env": ENVIRONMENT, "roles": [role(*self.command(report), **fields)]}
        self.assertEqual(self.learned(self.stream(job, to=to), report), self.expected)

    def skip_if(self, reason):
        if reason:
            self.skipTest(reason)

    def test_local(self):
        self.assert_learns_the_same(("--to", "local"), "node.json", ranks_per_node=2)
        self.assert_learns_the_same(("--to", "local"), "nodes.json", nodes=2)

    def test_ssh(self):
        self.skip_if(ssh_hosts.why_not())
        with SshHosts(2, programs=[jobs.PEAL.parent]) as self.hosts:
            self.assert_learns_the_same(("--to", "ssh", "-H", "node1,node2"), nodes=2)

    def test_slurm(self):
        self.skip_if(slurm_cluster.why_not())
        with SlurmCluster(2) as self.hosts:
            self.assert_learns_the_same(("--to", "slurm"), nodes=2)

    def test_open_mpi(self):
        use_mpirun(self, "mpirun.openmpi")
        self.assert_learns_the_same(TO_MPI, nodes=2)

    def test_mpich(self):
        use_mpirun(self, "mpirun.mpich")
        self.assert_learns_the_same(TO_MPI, nodes=2)

    def test_kubernetes(self):
        self.skip_if(stand_in.why_not())
        cluster = StandIn()
        self.addCleanup(cluster.stop)
        self.environment.update({name: cluster.environment[name] for name in ("KUBECONFIG", "HOME", "PATH")})
        self.assert_learns_the_same(("--to", "kubernetes"), nodes=2, image="any")


if __name__ == "__main__":
    jobs.main()
