"""MNIST by two ranks: the same job learns the same under `peal run` and through each runner.

    mnist_test.py PEAL MNIST    # MNIST: the example
Real digits are read from the folder in PEAL_TEST_MNIST; without it, the digits are drawn.
"""
import json
import os
import pathlib
import sys

import jobs
import images
from capabilities import shows
from runners import Runner, for_each_runner
from ssh_hosts import SshHosts

MNIST = pathlib.Path(sys.argv[2]).resolve()
FOLDER = os.environ.get("PEAL_TEST_MNIST", "")
OPTIONS = ["--ddp", "--steps", "40", *(["--data", FOLDER] if FOLDER else [])]
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


class Mnist:
    expected = None

    def of_job(self):
        """Fields that the job needs."""
        return {}

    def command(self):
        return [MNIST, *OPTIONS, "--report", self.path("report.json")]

    def learned(self, run):
        """The loss and the accuracy on held-out digits."""
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"epoch 1 of \d: loss ")
        values = json.loads(self.path("report.json").read_text())
        print(self.id(), values)
        self.assertEqual(values["ranks"], 2)
        return values["loss"], values["accuracy"]

    @shows("MNIST learns the same")
    def test_two_nodes_learn_what_peal_run_learns(self):
        if Mnist.expected is None:
            Mnist.expected = self.learned(self.peal("run", "-n", 2, *self.command(), env=ENVIRONMENT))
            self.assertGreater(Mnist.expected[1], 0.9)
            self.path("report.json").unlink()
        job = {"env": ENVIRONMENT, **self.of_job(), "roles": [self.role(*self.command(), nodes=2)]}
        self.assertEqual(self.learned(self.stream(job, to=self.to)), Mnist.expected)


class Container(Mnist, Runner):
    runner = "container"
    to = ("--to", "local")
    of_role = {"image": images.IMAGE}

    @classmethod
    def setUpClass(cls):
        cls.skip_if(images.why_not())
        cls.hosts = SshHosts(0, programs=[jobs.PEAL.parent],
                             containers=images.Containers(programs=[jobs.PEAL.parent, MNIST.parent]))
        cls.addClassCleanup(cls.hosts.stop)

    def of_job(self):
        folders = [self.folder, *([FOLDER] if FOLDER else [])]
        return {"engine_options": {"container": [f"--volume={folder}:{folder}" for folder in folders]}}


globals().update(for_each_runner(Mnist))

if __name__ == "__main__":
    jobs.main()
