#!/usr/bin/env python3
"""A Slurm cluster on this machine, in namespaces (world.py): munged, slurmctld, and a slurmd for each node.

    with SlurmCluster(nodes=3) as cluster:
        cluster.run(["srun", "-N3", "hostname"])
        cluster.kill_slurmd("node2")

All nodes are on the host `launcher` and have its name, as with several slurmd on one machine. With
`own_hosts=True`, each node is a host of its own, with its own name, and can be cut, frozen, killed and restored.
Accounting is disabled, as in most small clusters: `sacct` answers nothing, and `scontrol` forgets an ended job.

As a command, from tests in other languages; it ends with 77 if there can be no cluster here:

    slurm_cluster.py [--nodes 3] [--own-hosts] -- COMMAND...

COMMAND runs on the launcher's host, where SLURM_CONF is set, with the number and the signals of this process.
"""
import argparse
import os
import secrets
import signal
import sys

import process_list
import world

SKIPPED = 77  # the exit code that ctest reads as skipped
FIRST_PORT = 17001  # of the slurmd on one host
DAEMONS = ("munged", "slurmctld", "slurmd")


def why_not():
    """Why there can be no cluster here: a sentence, or nothing."""
    return world.why_not([*DAEMONS, "srun", "sbatch", "scontrol", "sinfo"])


class SlurmCluster(world.World):
    def __init__(self, nodes=3, own_hosts=False, own_files=False, cpus=2, settings=None, kept=(),
                 containers=None, partitions=()):
        """`cpus`: of each node; this machine may have fewer. `settings`: more lines of slurm.conf, as a dict.
        `partitions`: more partitions than `main`, each as in slurm.conf, without Nodes: each has all nodes.
        `own_files` needs own_hosts: nodes then share no temporary files."""
        self.nodes = [f"node{index + 1}" for index in range(nodes)]
        self.own_hosts = own_hosts
        super().__init__(self.nodes if own_hosts else [], own_files, kept, containers)
        try:
            self._write_configuration(cpus, settings or {}, partitions)
            self.boot(self._plans())
            self.wait_until_idle()
        except BaseException:
            self.stop()
            raise

    def environment(self, host=world.LAUNCHER, more=None):
        inherited = {name: value for name, value in super().environment(host, more).items()
                     if not name.startswith("SLURM_") or name in (more or {})}
        return {"SLURM_CONF": str(self._slurm / "slurm.conf"), **inherited}

    def host_of(self, node):
        return node if self.own_hosts else self.launcher

    def processes(self, host):
        """The processes of the host, except Slurm's own. With slurmstepd, which belongs to a job."""
        return [one for one in super().processes(host) if _program(one) not in DAEMONS]

    def states(self):
        """{node: its state, as sinfo names it}; empty if slurmctld does not answer."""
        run = self.run(["sinfo", "-h", "-N", "-o", "%N %T"], timeout=None)
        return dict(line.split() for line in run.stdout.splitlines()) if run.returncode == 0 else {}

    def wait_until_idle(self, nodes=None):
        """Until Slurm would start a job on each of the nodes, by default on all."""
        wanted = set(nodes or self.nodes)
        try:
            world.wait_until(lambda: wanted <= {node for node, state in self.states().items() if state == "idle"},
                             f"idle: the nodes {', '.join(sorted(wanted))}")
        except world.WorldError as error:
            logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self._slurm.glob("*.log")))
            raise world.WorldError(f"{error}; states: {self.states()}; logs:\n{logs}") from None

    def kill_slurmd(self, node):
        """The node's slurmd dies by SIGKILL. Its slurmstepd and the tasks live on; after SlurmdTimeout (10 s), Slurm
        says that the node is down."""
        slurmd = self._slurmd_of(node)
        process_list.kill(slurmd)
        world.wait_until(lambda: not self._slurmd_of(node), f"dead: the slurmd of {node}")

    def restart(self, node):
        """After kill_slurmd."""
        self._check(["slurmd", "-N", node], self.host_of(node))

    def drain(self, node):
        """The node gets no new job; a running one continues."""
        self._check(["scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test"])

    def resume(self, node):
        """After drain."""
        self._check(["scontrol", "update", f"NodeName={node}", "State=RESUME"])

    def kill_controller(self):
        """slurmctld dies by SIGKILL: Slurm's commands wait or fail, jobs run on."""
        process_list.kill(self._daemons(self.launcher, "slurmctld"), signal.SIGKILL)

    def restart_controller(self):
        self._check(["slurmctld"])

    @property
    def _slurm(self):
        return self.folder / "slurm"

    def _slurmd_of(self, node):
        return [one for one in self._daemons(self.host_of(node), "slurmd") if node in one.command]

    def _daemons(self, host, name):
        return [one for one in self.all_processes(host) if _program(one) == name]

    def _check(self, command, host=world.LAUNCHER):
        run = self.run(command, host)
        if run.returncode != 0:
            raise world.WorldError(f"{' '.join(command)} failed: {run.stdout}")

    def _plans(self):
        slurm, conf = self._slurm, self._slurm / "slurm.conf"
        munged = world.Daemon((
            world.find_program("munged"), "--foreground", "--force", f"--key-file={slurm}/munge/key",
            f"--socket={slurm}/munge/socket", f"--pid-file={slurm}/munge/pid", f"--log-file={slurm}/munged.log",
            f"--seed-file={slurm}/munge/seed"))

        def after_munged(*command):
            program = world.find_program(command[0])
            return world.Daemon(("/bin/sh", "-c", f"until [ -S {slurm}/munge/socket ]; do sleep 0.05; done; "
                                                  f'SLURM_CONF={conf} exec "$@"', "sh", program, *command[1:]))
        controller = (munged, after_munged("slurmctld", "-D"))
        slurmds = [after_munged("slurmd", "-D", "-N", node) for node in self.nodes]
        if not self.own_hosts:
            return [world.Plan(self.launcher, (*controller, *slurmds))]
        return [world.Plan(self.launcher, controller),
                *(world.Plan(node, (slurmd,)) for node, slurmd in zip(self.nodes, slurmds))]

    def _write_configuration(self, cpus, more, partitions):
        slurm = self._slurm
        slurm.joinpath("munge").mkdir(parents=True)
        slurm.joinpath("state").mkdir()
        key = slurm / "munge/key"
        key.touch(0o400)
        key.write_bytes(secrets.token_bytes(1024))
        settings = {
            "ClusterName": "test",
            "SlurmctldHost": f"{self.launcher}({self.address(self.launcher)})",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthInfo": f"socket={slurm}/munge/socket",
            "StateSaveLocation": f"{slurm}/state",
            "SlurmdSpoolDir": f"{slurm}/spool-%n",
            "SlurmctldPidFile": f"{slurm}/slurmctld.pid",
            "SlurmdPidFile": f"{slurm}/slurmd-%n.pid",
            "SlurmctldLogFile": f"{slurm}/slurmctld.log",
            "SlurmdLogFile": f"{slurm}/slurmd-%n.log",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "SlurmdParameters": "config_overrides",  # this machine may have fewer cores
            "SchedulerParameters": "sched_interval=1,bf_interval=1",
            "SlurmdTimeout": "10",
            "KillWait": "5",
            "ReturnToService": "2",
            "MpiDefault": "none",
            "MailProg": "/bin/true",
            **more,
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        for index, node in enumerate(self.nodes):
            place = (f"NodeAddr={self.address(node)}" if self.own_hosts else
                     f"NodeHostname={self.launcher} NodeAddr={self.address(self.launcher)} Port={FIRST_PORT + index}")
            lines.append(f"NodeName={node} {place} CPUs={cpus} RealMemory=4000")
        lines.append(f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES")
        lines += [f"PartitionName={partition} Nodes=ALL" for partition in partitions]
        slurm.joinpath("slurm.conf").write_text("\n".join(lines) + "\n")


def _program(process):
    """A helper of slurmctld calls itself `slurmctld: slurmscriptd`."""
    return os.path.basename(process.command[0]).split(":")[0]


def main():
    arguments = argparse.ArgumentParser(prog="slurm_cluster.py")
    arguments.add_argument("--nodes", type=int, default=3)
    arguments.add_argument("--own-hosts", action="store_true")
    arguments.add_argument("command", nargs="+")
    options = arguments.parse_args()
    if reason := why_not():
        print("SKIPPED:", reason)
        sys.exit(SKIPPED)
    cluster = SlurmCluster(options.nodes, options.own_hosts)
    command = cluster.command(options.command)
    os.execvpe(command[0], command, cluster.environment())


if __name__ == "__main__":
    main()
