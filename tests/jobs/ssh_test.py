"""Jobs over ssh, on real sshds in namespaces (tests/engines): places, variables, hosts that cannot be used or are lost,
spare hosts, and launchers that are killed.

    ssh_test.py PEAL FIRST    # FIRST: a program that makes a group
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import jobs
import ssh_hosts
from jobs import LONG, PATIENCE, JobTest, role, shell, wait_until
from nasty_values import NASTY, SHOW
from ssh_hosts import Fault, Host, SshHosts

FIRST = pathlib.Path(sys.argv[2]).resolve()
PYTHON = sys.executable


def to(*hosts):
    return "--to", "ssh", "-H", ",".join(hosts)


class SshTest(JobTest):
    def commands(self, host):
        """What runs on the host, without sshd."""
        return [" ".join(one.command) for one in self.hosts.processes(host) if not one.command[0].startswith("sshd:")]

    def assert_nothing_runs(self, *hosts):
        for host in hosts:
            wait_until(lambda: not self.commands(host), f"{host} is empty: {self.commands(host)}")

    def start_long(self, *hosts, **fields):
        """A job with two ranks on each host, which ignore requests to end."""
        job = self.submit({"grace": "500ms", **fields, "roles": [shell(
            f"trap '' TERM; setsid sleep {LONG} & echo ready; while :; do sleep 1; done", nodes=len(hosts),
            ranks_per_node=2)]}, to=to(*(f"{host}:2" for host in hosts)))
        wait_until(lambda: self.logs(job).count("ready") == 2 * len(hosts), "ready")
        self.await_state(job, "running")
        return job


class Runs(SshTest):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts([Host("node1"), Host("node2"), Host("refusing", fault=Fault.REFUSED_KEY),
                              Host("unknown", fault=Fault.UNKNOWN_KEY), Host("silent", fault=Fault.SILENT)],
                             programs=[jobs.PEAL.parent, FIRST.parent])
        cls.addClassCleanup(cls.hosts.stop)

    def tearDown(self):
        self.assert_no_process()
        self.assert_nothing_runs("node1", "node2")

    def test_ranks_are_on_the_hosts_in_their_order_and_know_their_places(self):
        run = self.stream({"roles": [shell(
            "echo $(hostname) $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR",
            nodes=2, ranks_per_node=2)]}, to=to("node1:2", "node2:2"))
        self.assertEqual(run.returncode, 0, run.stderr)
        address = self.hosts.address("node1")
        self.assertEqual(sorted(run.stdout.splitlines()), [
            f"[w-{node}:{2 * node + local}] node{node + 1} {2 * node + local}/4 {local}/2 {node}/2 {address}"
            for node in (0, 1) for local in (0, 1)])

    def test_ranks_of_all_hosts_make_a_group_and_the_hosts_are_in_the_status(self):
        self.path("hosts").write_text("node2 slots=2\nnode1:2  # last\n")
        run = self.stream({"roles": [role(FIRST, nodes=2, ranks_per_node=2)]}, to=("--to", "ssh", "--hostfile", "hosts"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"rank \d has 12", run.stdout)), 4, run.stdout)
        self.assertEqual([node["host"] for node in self.status("job")["nodes"]], ["node2", "node1"])

    def test_this_machine_may_be_one_of_the_hosts(self):
        run = self.stream({"roles": [role(FIRST, nodes=2)]}, to=to("localhost", "node1"))
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())),
                         (0, ["[w-0] rank 0 has 6", "[w-1] rank 1 has 6"]), run.stderr)

    def test_the_path_of_a_role_finds_its_command(self):
        run = self.stream_with_paths(to=to("node1", "node2"))
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())),
                         (0, ["[a-0] the tool of a", "[b-0] the tool of b"]), run.stderr)

    def test_peal_run_on_each_host_makes_one_world(self):
        run = self.stream({"roles": [role(jobs.PEAL, "run", "-n", 2, FIRST, nodes=2)]}, to=to("node1", "node2"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"rank \d has 12", run.stdout)), 4, run.stdout)

    def test_values_arrive_byte_for_byte(self):
        values = {"env": NASTY, "roles": [role(PYTHON, "-c", SHOW, *NASTY)]}
        run = self.stream(values, to=to("node1"))
        self.assertEqual(json.loads(run.stdout), NASTY, run.stderr)
        del values["env"]
        run = self.stream(values, to=to("node1"), env=NASTY)
        self.assertEqual(json.loads(run.stdout), NASTY, run.stderr)

    def test_variables_of_a_login_are_those_of_the_host(self):
        run = self.stream({"roles": [shell("echo $HOME")]}, to=to("node1"))
        self.assertEqual(run.stdout, f"{self.hosts.home('node1')}\n", run.stderr)

    def test_one_connection_for_each_host(self):
        before = len(self.hosts.ssh_calls())
        self.stream({"roles": [role("true", nodes=2, ranks_per_node=4)]}, to=to("node1:4", "node2:4"))
        self.assertEqual(len(self.hosts.ssh_calls()) - before, 2)

    def test_a_failure_names_its_host_and_a_signal_gives_the_exit_code(self):
        run = self.stream({"grace": "1s", "roles": [shell(f"[ $RANK = 0 ] || kill -SEGV $$; sleep {LONG}", nodes=2)]},
                          to=to("node1", "node2"))
        self.assertEqual(run.returncode, 139, run.stderr)
        self.assertRegex(run.stderr, r"failed: rank 1 \(w 1 on node2\) was killed by SIGSEGV")

    def test_cancel_ends_ranks_on_all_hosts_after_the_grace(self):
        job = self.start_long("node1", "node2")
        self.cancel(job)
        self.cancel(job)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", 143))
        self.assert_nothing_runs("node1", "node2")

    def test_a_launcher_that_is_killed_leaves_no_process_on_any_host(self):
        job = self.start_long("node1", "node2")
        os.kill(self.launcher_of(job), signal.SIGKILL)
        self.assertRegex(self.end_of(job)["first_failure"], r"^its launcher \(pid \d+ on launcher\) is gone$")
        self.assert_nothing_runs("node1", "node2")

    def test_hosts_that_cannot_be_used_are_listed_at_once_with_their_reasons(self):
        run = self.stream({"start_timeout": "5s", "roles": [shell(f"touch {self.path('started')}", nodes=5)]},
                          to=to("node1", "refusing", "unknown", "silent", "no-such-host"))
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        failure = self.status("job")["first_failure"]
        self.assertIn("4 of 5 hosts cannot be used", failure)
        for reason in ("refusing: it accepts no key of yours", "unknown: its key is not known here",
                       "silent: no answer within 5 s", "no-such-host: the name has no address"):
            self.assertIn(reason, failure)
        self.assertFalse(self.path("started").exists())

    def test_before_the_hosts_answer_a_job_is_preparing_and_can_be_followed_and_cancelled(self):
        job = self.submit({"roles": [shell("echo output", nodes=2)]}, to=to("node1", "silent"))
        status = wait_until(lambda: (seen := self.status(job))["nodes"] and seen, "known: the nodes")
        self.assertEqual((status["state"], [node["state"] for node in status["nodes"]]), ("preparing", ["preparing"] * 2))
        self.assertIn("connects with the hosts", status["reason"])
        self.assertEqual(self.logs(job), "")
        follower = self.start("logs", "-f", job)
        self.cancel(job)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", 143))
        self.assertEqual((follower.communicate(timeout=PATIENCE), follower.returncode),
                         (("", f"peal: {job} cancelled: a user has cancelled it\n"), 0))
        self.assertEqual([node["reason"] for node in status["nodes"]], ["it did not start"] * 2)

    def test_the_time_limit_counts_while_hosts_are_awaited(self):
        run = self.stream({"max_run_time": "1s", "roles": [role("true")]}, to=to("silent"))
        self.assertEqual(run.returncode, 124, run.stderr)
        self.assertEqual(self.status("job")["state"], "cancelled")

    def test_a_launcher_that_gets_a_signal_while_hosts_are_awaited_says_so(self):
        job = self.submit({"roles": [role("true")]}, to=to("silent"))
        self.await_state(job, "preparing")
        os.kill(self.launcher_of(job), signal.SIGTERM)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"], status["first_failure"]),
                         ("failed", 143, "its launcher was ended by SIGTERM"))

    def test_a_follower_that_begins_before_the_start_sees_the_output(self):
        hosts = SshHosts([Host("late", fault=Fault.SILENT)], programs=[jobs.PEAL.parent])
        self.addCleanup(hosts.stop)
        before, self.hosts = self.hosts, hosts
        try:
            job = self.submit({"roles": [shell("echo output")]}, to=to("late"))
            follower = self.start("logs", "-f", job)
            self.await_state(job, "preparing")
            hosts.restore("late")
            self.assertEqual(follower.communicate(timeout=PATIENCE), ("output\n", f"peal: {job} succeeded\n"))
            self.assertEqual(self.end_of(job)["state"], "succeeded")
        finally:
            self.hosts = before

    def test_the_status_elsewhere_does_not_claim_what_it_cannot_see(self):
        """On another host that shares the folder of the jobs."""
        job = self.start_long("node1")

        def on_node2():
            run = self.hosts.run([jobs.PEAL, "status", "--json", job], host="node2", env=self.environment,
                                 stderr=subprocess.PIPE)
            return json.loads(run.stdout)
        self.assertEqual(on_node2()["state"], "running")
        cancel = self.hosts.run([jobs.PEAL, "cancel", job], host="node2", env=self.environment)
        self.assertEqual((cancel.returncode, cancel.stdout), (0, f"{job} is being cancelled\n"))
        self.assertEqual(self.end_of(job)["state"], "cancelled")
        self.assertEqual(on_node2()["state"], "cancelled")


class Losses(SshTest):
    def setUp(self):
        super().setUp()
        self.hosts = SshHosts(3, programs=[jobs.PEAL.parent])
        self.addCleanup(self.hosts.stop)

    def submit_restartable(self):
        job = self.submit({"restarts": {"most": 1, "first_pause": "100ms"}, "spare_nodes": 1, "grace": "1s", "roles": [shell(
            f"echo $(hostname) $RANK $PEAL_ATTEMPT; [ $PEAL_ATTEMPT = 1 ] || sleep {LONG}", nodes=2)]},
            to=to("node1", "node2", "node3"))
        wait_until(lambda: self.logs(job).count("node") == 2, "output")
        return job

    def test_a_spare_host_replaces_a_host_that_is_cut_off(self):
        job = self.submit_restartable()
        self.assertEqual(sorted(self.logs(job).splitlines()), ["[w-0] node1 0 0", "[w-1] node2 1 0"])
        self.hosts.cut("node1")
        status = self.end_of(job)
        self.assertEqual((status["state"], [node["host"] for node in status["nodes"]]), ("succeeded", ["node2", "node3"]))
        self.assertEqual(sorted(self.logs(job).splitlines()), ["[w-0] node2 0 1", "[w-1] node3 1 1"])
        self.assertRegex((self.jobs / job / "launcher.log").read_text(), r"host node1 was lost .*no sign of life")
        self.assert_nothing_runs("node2", "node3")

    def test_a_job_with_a_range_of_nodes_starts_again_on_the_hosts_that_are_left(self):
        job = self.submit({"restarts": {"most": 1, "first_pause": "100ms"}, "grace": "1s", "roles": [shell(
            f"echo $(hostname) $RANK of $WORLD_SIZE; [ $PEAL_ATTEMPT = 1 ] || sleep {LONG}", nodes="2:4")]},
            to=to("node1", "node2", "node3"))
        wait_until(lambda: self.logs(job).count("of 3") == 3, "output")
        self.hosts.cut("node2")
        status = self.end_of(job)
        self.assertEqual((status["state"], [node["host"] for node in status["nodes"]]), ("succeeded", ["node1", "node3"]))
        self.assertEqual(sorted(self.logs(job).splitlines()), ["[w-0] node1 0 of 2", "[w-1] node3 1 of 2"])
        self.assert_nothing_runs("node1", "node3")

    def test_a_lost_host_without_restarts_fails_the_job_and_is_named(self):
        job = self.start_long("node1", "node2")
        self.hosts.kill_all("node2")
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 137))
        self.assertRegex(status["first_failure"], r"rank [23] \(w 1 on node2\) was lost: ")
        self.assertEqual(status["nodes"][1]["state"], "failed")
        self.assert_nothing_runs("node1")


if __name__ == "__main__":
    jobs.main(ssh_hosts.why_not())
