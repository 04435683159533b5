"""Elastic jobs on several hosts over ssh, and in Slurm: hosts that join, leave, refuse, are cut off and come back;
workers, agents and launchers that are killed. The hosts are real sshds in namespaces (tests/engines).

    elastic_test.py PEAL WORKER    # the program peal, and tests/elastic/worker.cpp
"""
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import slurm_cluster
import ssh_hosts
import world
from capabilities import shows
from slurm_cluster import SlurmCluster
from ssh_hosts import Fault, Host, SshHosts

PEAL, WORKER = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
PATIENCE = 90  # seconds
# "[HOST[SLOT]] pid P: round R, rank r of n, ..., step S"
BEGIN = re.compile(r"^\S+ pid (?P<pid>\d+): round (?P<round>\d+), rank (?P<rank>\d+) of (?P<size>\d+), .* "
                   r"on (?P<worker>\S+), step (?P<step>\d+)$", re.MULTILINE)


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE} s: not {what() if callable(what) else what}")
        time.sleep(0.05)
    return result


class Job:
    """A running job, and all that it has written."""

    def __init__(self, process):
        self.process = process
        self.text = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.text += line

    def rounds(self):
        """By round, the workers that have begun it: rank -> match of BEGIN."""
        rounds = collections.defaultdict(dict)
        for match in BEGIN.finditer(self.text):
            rounds[int(match["round"])][int(match["rank"])] = match
        return rounds

    def wait_for_round_of(self, *workers):
        """Waits until a round with exactly these workers has begun on each of them. Returns its number."""
        def find():
            for number, ranks in self.rounds().items():
                whole = ranks and len(ranks) == int(ranks[min(ranks)]["size"])
                if whole and sorted(match["worker"] for match in ranks.values()) == sorted(workers):
                    return number
            return None
        return wait_until(find, lambda: f"a round of {workers} in:\n{self.text}")

    def wait_for(self, pattern):
        return wait_until(lambda: re.search(pattern, self.text), lambda: f"{pattern} in:\n{self.text}")

    def end(self):
        """Returns the exit code, when all output is read."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the job does not end:\n{self.text}") from None
        self._reader.join()
        self.process.stdout.close()
        return code


class TestOfElasticJobs(unittest.TestCase):
    maxDiff = None

    def start(self, *arguments, pause=20, env=None, command=None):
        """A job that trains until `finish`. The cool-down is short; the test may give another."""
        folder = self.world.folder / f"job-{self.id().rsplit('.', 1)[-1]}"
        folder.mkdir(exist_ok=True)
        self.finish_file = folder / "finish"
        self.hosts_file = folder / "hosts"
        process = self.world.popen(
            [*(self.before if hasattr(self, "before") else ()), PEAL, "run", "--blacklist-cooldown-range", "1", "2",
             *arguments, *(command or (WORKER, "train", str(pause)))],
            env={"PEAL_TEST_ELASTIC": str(folder), **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        job = Job(process)
        self.addCleanup(job.end)
        self.addCleanup(process.kill)
        return job

    def finish(self, job):
        self.finish_file.touch()
        self.assertEqual(job.end(), 0, job.text)

    def discovery(self, *hosts):
        """The options for a script that prints these hosts, until `set_hosts`."""
        folder = self.world.folder / f"job-{self.id().rsplit('.', 1)[-1]}"
        folder.mkdir(exist_ok=True)
        self.hosts_file = folder / "hosts"
        self.set_hosts(*hosts)
        return "--host-discovery-script", f"cat {self.hosts_file}"

    def set_hosts(self, *hosts):
        new = self.hosts_file.with_suffix(".new")
        new.write_text("".join(f"{host}\n" for host in hosts))
        new.replace(self.hosts_file)

    def commands(self, host):
        """What runs on the host, without sshd."""
        return [" ".join(one.command) for one in self.world.processes(host)
                if not one.command[0].startswith("sshd:")]

    def assertNothingRuns(self, *hosts):
        for host in hosts:
            wait_until(lambda: not self.commands(host), lambda: f"{host} is empty: {self.commands(host)}")

    def kill_on(self, host, word):
        """Kills the first process of the host whose command has this word."""
        victim = wait_until(lambda: next((one for one in self.world.processes(host)
                                          if any(word in part for part in one.command)), None), f"{word} on {host}")
        os.kill(victim.pid, signal.SIGKILL)


class OnThisMachine(TestOfElasticJobs):
    runner = "local"

    @shows("elastic")
    def test_the_job_grows_when_discovery_adds_slots(self):
        self.world = SshHosts([])
        self.addCleanup(self.world.stop)
        job = self.start("--min-np", "1", *self.discovery("localhost:1"))
        job.wait_for_round_of("localhost[0]")
        self.set_hosts("localhost:2")
        job.wait_for_round_of("localhost[0]", "localhost[1]")
        self.finish(job)


class OverSsh(TestOfElasticJobs):
    runner = "ssh"
    hosts = ("node1", "node2", "node3")

    def setUp(self):
        self.world = SshHosts(3, programs=[PEAL.parent], own_files=True, kept=[WORKER.parent])
        self.addCleanup(self.world.stop)

    def test_workers_of_all_hosts_train_together(self):
        job = self.start("-n", "2:4", "-H", "node1:2,node2:2")
        job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        self.finish(job)
        self.assertRegex(job.text, r"(?m)^node2\[1\] pid \d+: round 1, rank 3 of 4, local 1 of 2, cross 1 of 2 ")
        self.assertNotIn("peal:", job.text)
        self.assertNothingRuns(*self.hosts)

    def test_the_launchers_machine_may_be_one_of_the_hosts(self):
        job = self.start("--min-np", "2", "-H", "localhost:1,node1:1")
        job.wait_for_round_of("localhost[0]", "node1[0]")
        self.finish(job)
        self.assertNothingRuns(*self.hosts)

    @shows("elastic")
    def test_the_job_grows_when_discovery_adds_a_host_and_shrinks_when_it_removes_one(self):
        job = self.start("--min-np", "1", *self.discovery("node1:1"))
        job.wait_for_round_of("node1[0]")
        self.set_hosts("node1:1", "node2:2")
        job.wait_for_round_of("node1[0]", "node2[0]", "node2[1]")
        self.set_hosts("node2:2")
        job.wait_for_round_of("node2[0]", "node2[1]")
        self.assertNothingRuns("node1")  # its agent has left, too
        self.finish(job)
        self.assertIn("node1[0] has been removed from elastic job", job.text)
        self.assertNothingRuns(*self.hosts)

    def test_a_host_that_is_cut_off_is_replaced_by_the_spare_one_and_may_come_back(self):
        job = self.start("-n", "2:4", "-H", "node1:2,node2:2,node3:2", pause=100)
        first = job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        self.assertNotIn("agent", " ".join(self.commands("node3")))  # a spare host is not connected
        self.world.cut("node1")  # with rank 0
        job.wait_for(r"peal: host node1 was lost with workers node1\[0\], node1\[1\] after [\d.]+ s: "
                     r"no sign of life for [\d.]+ s; it gets no new workers for \d s")
        job.wait_for_round_of("node2[0]", "node2[1]", "node3[0]", "node3[1]")
        steps = [int(match["step"]) for number, ranks in job.rounds().items() if number > first
                 for match in ranks.values()]
        self.assertGreater(min(steps), 0, "the state was lost")
        self.assertNothingRuns("node1")  # still cut off
        self.world.restore("node1")
        self.world.cut("node3")
        job.wait_for_round_of("node2[0]", "node2[1]", "node1[0]", "node1[1]")
        self.finish(job)
        self.assertNothingRuns("node1", "node2", "node3")

    def test_an_agent_that_is_killed_is_a_lost_host_that_joins_again(self):
        job = self.start("-n", "2:4", "-H", "node1:2,node2:2")
        job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        agent = next(one for one in self.world.processes("node2") if one.command[-1] == "agent")
        os.kill(agent.pid, signal.SIGKILL)
        job.wait_for("peal: host node2 was lost with workers .*: ssh ended with exit code 255")
        wait_until(lambda: len(job.rounds()) >= 3 and "round 3 begins with 4 workers" in job.text,
                   lambda: f"4 workers again:\n{job.text}")
        self.finish(job)
        self.assertNothingRuns(*self.hosts)

    def test_a_guard_that_is_killed_is_a_lost_host_that_joins_again(self):
        job = self.start("-n", "1:2", "-H", "node1:1,node2:1")
        job.wait_for_round_of("node1[0]", "node2[0]")
        self.kill_on("node2", "rank-guard")
        job.wait_for("peal: host node2 was lost with worker .*: the process that guards its ranks was killed")
        job.wait_for("round 3 begins with 2 workers")
        self.finish(job)
        self.assertNothingRuns(*self.hosts)

    def test_a_worker_that_is_killed_is_replaced_and_the_others_continue(self):
        job = self.start("-n", "2:4", "-H", "node1:2,node2:2")
        number = job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        pid = int(job.rounds()[number][0]["pid"])
        victim = next(one for one in self.world.processes("node1") if one.pid_inside == pid)
        os.kill(victim.pid, signal.SIGKILL)
        job.wait_for(r"peal: worker node1\[0\] \(rank 0 of round 1, pid \d+\) was killed by SIGKILL after [\d.]+ s; "
                     r"node1 gets no new workers for \d s")
        job.wait_for("round 3 begins with 4 workers")
        self.finish(job)
        self.assertNothingRuns(*self.hosts)

    def test_a_launcher_that_is_killed_leaves_no_process_on_any_host(self):
        job = self.start("-n", "2:5", "-H", "localhost:1,node1:2,node2:2")
        job.wait_for_round_of("localhost[0]", "node1[0]", "node1[1]", "node2[0]", "node2[1]")
        job.process.kill()
        self.assertNothingRuns("node1", "node2")
        wait_until(lambda: not [one for one in self.world.processes("launcher") if str(WORKER) in one.command],
                   "the workers beside the launcher have ended")

    def test_a_signal_ends_the_workers_of_all_hosts(self):
        job = self.start("-n", "2:4", "-H", "node1:2,node2:2")
        job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.end(), 143, job.text)
        self.assertNothingRuns(*self.hosts)

    def test_a_node_range_counts_hosts(self):
        job = self.start("--nnodes", "1:2", "-n", "2", "-H", "node1,node2,node3")
        job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        self.world.cut("node2")
        job.wait_for_round_of("node1[0]", "node1[1]", "node3[0]", "node3[1]")
        self.finish(job)

    def test_the_logs_of_all_hosts_are_here(self):
        logs = self.world.folder / "logs"
        job = self.start("-n", "2:2", "-H", "node1:1,node2:1", "--log-dir", str(logs))
        job.wait_for_round_of("node1[0]", "node2[0]")
        self.finish(job)
        for host in ("node1", "node2"):
            self.assertIn(f"on {host}[0], step 0\ndone\n", (logs / f"{host}-0.out").read_text())

    def test_peal_why_reads_the_records_of_the_last_round_on_all_hosts(self):
        job = self.start("-n", "3:3", "-H", "node1:1,node2:2", command=(WORKER, "bug", "9"))
        self.assertEqual(job.end(), 9, job.text)
        self.assertIn("workers failed in 3 rounds in a row before a commit", job.text)
        self.assertRegex(job.text, r"peal: why: The process of rank 0 ended with exit code 9, after broadcast #\d")
        dump = re.search(r"peal: see peal why (\S+)", job.text).group(1)
        why = self.world.run([PEAL, "why", dump])
        self.assertIn("rank 0", why.stdout)
        os.remove(dump)
        self.assertNothingRuns(*self.hosts)

    def test_a_host_keeps_the_records_of_the_latest_rounds_only(self):
        count = self.world.folder / "count"
        script = self.world.folder / "toggle"
        script.write_text(f"n=$(cat {count} || echo 0)\necho $((n + 1)) > {count}\necho node1:1\n"
                          "[ $((n / 2 % 2)) = 0 ] || echo node2:1\n")
        job = self.start("--min-np", "1", "--host-discovery-script", f"sh {script} 2>&-")
        job.wait_for("peal: round 18 begins")
        folders = self.world.run(["sh", "-c", "ls -d /tmp/peal-*/round-*"], host="node1").stdout.split()
        rounds = {int(folder.rsplit("-", 1)[-1]) for folder in folders}
        self.assertIn(17, rounds)
        self.assertFalse({1, 2} & rounds, rounds)
        self.finish(job)

    def test_each_worker_has_the_variables_of_its_host_and_of_the_user(self):
        # The end of the first worker ends the job, so each waits for the other.
        show = ("import os, pathlib, time; print(os.environ['HOME'], repr(os.environ['NASTY']), 'RANK' in os.environ, flush=True)\n"
                "folder = pathlib.Path(os.environ['PEAL_TEST_ELASTIC'])\n"
                "(folder / os.uname().nodename).touch()\n"
                "while len(list(folder.glob('node*'))) < 2: time.sleep(0.05)")
        job = self.start("-n", "2:2", "-H", "node1:1,node2:1", env={"NASTY": "a,b 'c'\n$HOME"},
                         command=(sys.executable, "-c", show))
        self.assertEqual(job.end(), 0, job.text)
        lines = [f"{host}[0] {self.world.home(host)} {'a,b ' + chr(39) + 'c' + chr(39) + chr(10) + '$HOME'!r} False"
                 for host in ("node1", "node2")]
        self.assertEqual(sorted(line for line in job.text.splitlines() if line.startswith("node")), lines, job.text)


class ByMpirun:
    """mpirun reaches the hosts by ssh, too."""
    program = None

    def setUp(self):
        mpirun = world.find_program(self.program)
        if not mpirun:
            self.skipTest(f"{self.program} is not installed")
        self.world = SshHosts(3, programs=[PEAL.parent], own_files=True, kept=[WORKER.parent])
        self.addCleanup(self.world.stop)
        script = self.world.folder / "mpi/mpirun"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nexec {mpirun} "$@"\n')
        script.chmod(0o755)
        self.path = f"{script.parent}:{os.environ['PATH']}"

    @shows("elastic")
    def test_a_spare_host_replaces_one_that_is_cut_off(self):
        job = self.start("--launcher", "mpi", "-n", "2:4", "-H", "node1:2,node2:2,node3:2",
                         env={"PATH": self.path, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        self.world.cut("node2")
        number = job.wait_for_round_of("node1[0]", "node1[1]", "node3[0]", "node3[1]")
        self.assertGreater(min(int(match["step"]) for match in job.rounds()[number].values()), 0, "the state was lost")
        self.finish(job)
        self.assertNothingRuns("node1", "node3")


class ByOpenMpi(ByMpirun, TestOfElasticJobs):
    runner, program = "openmpi", "mpirun.openmpi"


class ByMpich(ByMpirun, TestOfElasticJobs):
    runner, program = "mpich", "mpirun.mpich"


class Refusals(TestOfElasticJobs):
    def setUp(self):
        self.world = SshHosts([Host("good"), *(Host(fault.value, fault=fault) for fault in Fault)],
                              programs=[PEAL.parent], kept=[WORKER.parent])
        self.addCleanup(self.world.stop)

    def test_a_host_that_refuses_is_named_once_and_the_others_train(self):
        job = self.start("-n", "1:2", "-H", "no-sshd:1,good:1")
        job.wait_for_round_of("good[0]")
        job.wait_for(r"peal: host no-sshd cannot be used: no ssh server listens there.*; it is tried again in \d s")
        calls = len(self.world.ssh_calls())
        wait_until(lambda: len(self.world.ssh_calls()) > calls + 1, "tried again")
        self.finish(job)
        self.assertEqual(job.text.count("cannot be used"), 1)
        self.assertNothingRuns("good")

    def test_a_host_that_does_not_answer_does_not_stop_the_others(self):
        job = self.start("--min-np", "1", "--start-timeout", "1000", *self.discovery("good:1"))
        job.wait_for_round_of("good[0]")
        self.set_hosts("silent:1", "good:2")
        job.wait_for_round_of("good[0]", "good[1]")
        self.finish(job)
        self.assertNothingRuns("good")

    def test_if_every_host_refuses_the_job_ends_and_says_why(self):
        job = self.start("-n", "1:2", "-H", "refused-key:1,no-programs:1")
        self.assertEqual(job.end(), 1, job.text)
        self.assertIn("host refused-key cannot be used: it accepts no key of yours", job.text)
        self.assertIn("host no-programs cannot be used: ", job.text)
        self.assertIn("before the first round: none of the hosts can be used", job.text)

    def test_a_command_that_exists_on_no_host_gives_its_exit_code(self):
        job = self.start("-n", "1:1", "-H", "good:1", command=("no-such-program",))
        self.assertEqual(job.end(), 127, job.text)
        self.assertIn('host good cannot be used: cannot run "no-such-program"', job.text)
        self.assertNothingRuns("good")


class InSlurm(TestOfElasticJobs):
    runner = "slurm"
    before = ("salloc", "--quiet", "--no-kill", "--nodes=3", "--ntasks=6")

    def setUp(self):
        if slurm_cluster.why_not():
            self.skipTest(slurm_cluster.why_not())
        self.world = SlurmCluster(3, own_hosts=True)
        self.addCleanup(self.world.stop)

    @shows("elastic")
    def test_a_job_goes_on_inside_its_allocation_after_a_node_is_lost(self):
        job = self.start("-n", "2:4")
        job.wait_for_round_of("node1[0]", "node1[1]", "node2[0]", "node2[1]")
        self.world.cut("node2")
        job.wait_for(r"host node2 was lost with workers .* no sign of life for [\d.]+ s")
        job.wait_for_round_of("node1[0]", "node1[1]", "node3[0]", "node3[1]")
        self.finish(job)


if __name__ == "__main__":
    if ssh_hosts.why_not():
        print(ssh_hosts.why_not())
        sys.exit(ssh_hosts.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
