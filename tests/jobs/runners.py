"""The runners of `peal submit`, for the tests of all runners: the engine of each, and its options."""
import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kubernetes"))
import jobs
import slurm_cluster
import ssh_hosts
import stand_in
from jobs import JobTest, role
from slurm_cluster import SlurmCluster
from ssh_hosts import SshHosts
from stand_in import StandIn


class Runner(JobTest):
    """Skipped without the runner's engine.

    `to`: the options of `peal submit`. `of_role`: fields that each role needs. `waits`: fields of a job that waits
    before its start, or before its next one. `refuses`: for a capability, the text of the error. `like_it`: options
    with which `peal run` starts ranks in the same way. `programs`: parts of command lines by which a job starts.
    `ends_sessions`: whether processes that have left the session of their rank end, too.
    """
    runner = None
    to = ()
    of_role = {}
    waits = {}
    refuses = {}
    like_it = None
    programs = ()
    ends_sessions = True

    @classmethod
    def skip_if(cls, reason):
        if reason:
            raise unittest.SkipTest(reason)

    def role(self, *command, **fields):
        return role(*command, **{**self.of_role, **fields})

    def shell(self, script, **fields):
        return self.role("sh", "-c", script, **fields)

    def folders(self):
        """Where the runner and its engine write files."""
        return [self.jobs]

    def shown(self, job):
        """What the engine shows of the job: {what: text}."""
        return {}

    def submitted(self, job):
        """The text that was submitted: for a launcher, the job itself."""
        return (self.jobs / job / "job.yaml").read_text()


IN_A_PAUSE = {"restarts": {"most": 1, "first_pause": "1h", "longest_pause": "1h"}}


class Local(Runner):
    runner = "local"
    to = ("--to", "local")
    like_it = ()
    waits = IN_A_PAUSE
    programs = ("peal\0job",)


class Ssh(Runner):
    runner = "ssh"
    to = ("--to", "ssh", "-H", "node1:2,node2:2")
    like_it = ("--launcher", "ssh", "-H", "node1:2,node2:2")
    waits = IN_A_PAUSE
    programs = ("ssh\0", "agent")

    @classmethod
    def setUpClass(cls):
        cls.skip_if(ssh_hosts.why_not())
        cls.hosts = SshHosts(2, programs=[jobs.PEAL.parent])
        cls.addClassCleanup(cls.hosts.stop)

    def folders(self):
        return [self.jobs, self.hosts.folder]

    def shown(self, job):
        return {"calls of ssh": repr(self.hosts.ssh_calls())}


class Slurm(Runner):
    runner = "slurm"
    to = ("--to", "slurm")
    waits = {"engine_options": {"slurm": ["--hold"]}}
    programs = ("peal\0job", "srun")

    @classmethod
    def setUpClass(cls):
        cls.skip_if(slurm_cluster.why_not())
        cls.hosts = SlurmCluster(2)
        cls.addClassCleanup(cls.hosts.stop)

    def setUp(self):
        self.addCleanup(self.hosts.wait_until_idle)
        super().setUp()

    def folders(self):
        return [self.jobs, self.hosts.folder]  # with Slurm's state, its spool and its logs

    def shown(self, job):
        number = self.record(job, "submitted.json")["engine_id"]
        commands = {"script": ["write", "batch_script", number, "-"], "job": ["show", "job", "-d", number],
                    "steps": ["show", "step"]}
        return {what: self.hosts.run(["scontrol", *words]).stdout for what, words in commands.items()}

    def submitted(self, job):
        return self.shown(job)["script"]


class Mpirun(Ssh):
    """mpirun reaches the hosts by ssh, too."""
    to = ("--to", "mpi", "-H", "node1:2,node2:2")
    like_it = ("--launcher", "mpi", "-H", "node1:2,node2:2")
    refuses = {"files": "--to mpi copies no files"}
    program = None

    @classmethod
    def setUpClass(cls):
        if not shutil.which(cls.program):
            raise unittest.SkipTest(f"{cls.program} is not installed")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        # peal calls `mpirun`, as users do.
        script = self.path("bin/mpirun")
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nexec {self.program} "$@"\n')
        script.chmod(0o755)
        self.path("tmp").mkdir()
        self.environment.update({"TMPDIR": str(self.path("tmp")), "PATH": f"{script.parent}:{os.environ['PATH']}",
                                 "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})

    def folders(self):
        return [*super().folders(), self.path("tmp")]


class OpenMpi(Mpirun):
    runner, program = "openmpi", "mpirun.openmpi"
    programs = (program, "agent")


class Mpich(Mpirun):
    runner, program = "mpich", "mpirun.mpich"
    programs = (program, "agent")


class Kubernetes(Runner):
    runner = "kubernetes"
    to = ("--to", "kubernetes")
    of_role = {"image": "any"}
    waits = {"resources": {"cpus": 64}}
    refuses = {"files": "the Kubernetes runner copies no files"}
    programs = ("create\0--filename=-",)
    ends_sessions = False  # the stand-in has no containers, which would end them

    @classmethod
    def setUpClass(cls):
        cls.skip_if(stand_in.why_not())
        cls.cluster = StandIn()
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        super().setUp()
        self.environment.update({name: self.cluster.environment[name] for name in ("KUBECONFIG", "HOME", "PATH")})

    def folders(self):
        return [self.jobs, self.cluster.folder]

    def shown(self, job):
        return {kind: self.cluster.kubectl("get", kind, "-o", "yaml") for kind in ("jobs", "pods", "services", "events")}


ALL = (Local, Ssh, Slurm, OpenMpi, Mpich, Kubernetes)


def for_each_runner(tests):
    """Classes with these tests, one for each runner: {name: class}."""
    return {runner.__name__: type(runner.__name__, (tests, runner), {"__module__": "__main__"}) for runner in ALL}
