"""`peal run` on several hosts over ssh: the commands and the output of the ranks, hosts that refuse, and hosts,
agents and launchers that die. The hosts are real sshds in namespaces (tests/engines).

    run_test.py PEAL FIRST    # the program peal, and a program that makes a group
"""
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import ssh_hosts
from nasty_values import NASTY, SHOW
from secret_places import CommandLines, assert_unseen
from ssh_hosts import Fault, Host, SshHosts

PEAL, FIRST = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
LONG = 100_000  # seconds: a rank that ends only because it is ended


def wait_until(condition, what):
    end = time.monotonic() + 60
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after 60 s: not {what}")
        time.sleep(0.05)
    return result


class TestOfHosts(unittest.TestCase):
    maxDiff = None

    def peal(self, *arguments, **options):
        return self.hosts.run([PEAL, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              **options)

    def start(self, *arguments, **options):
        run = self.hosts.popen([PEAL, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               **options)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def commands(self, host):
        """What runs on the host, without sshd."""
        return [" ".join(one.command) for one in self.hosts.processes(host) if not one.command[0].startswith("sshd:")]

    def is_running(self, host, text):
        return any(text in command for command in self.commands(host))

    def assertNothingRuns(self, *names):
        for name in names:
            wait_until(lambda: not self.commands(name), f"{name} is empty: {self.commands(name)}")


class Runs(TestOfHosts):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts(3, programs=[PEAL.parent], own_files=True)
        cls.addClassCleanup(cls.hosts.stop)

    def tearDown(self):
        self.assertNothingRuns("node1", "node2", "node3")

    def test_ranks_are_on_the_hosts_in_their_order_and_know_their_places(self):
        run = self.peal("-n", "5", "-H", "node1:2,node2:2,node3:2", "sh", "-c",
                        "echo $(hostname) $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR")
        self.assertEqual(run.returncode, 0, run.stderr)
        address = self.hosts.address("node1")
        self.assertEqual(sorted(run.stdout.splitlines()), [
            f"[node1:0] node1 0/5 0/2 0 {address}", f"[node1:1] node1 1/5 1/2 0 {address}",
            f"[node2:2] node2 2/5 0/2 1 {address}", f"[node2:3] node2 3/5 1/2 1 {address}",
            f"[node3:4] node3 4/5 0/1 2 {address}"])

    def test_the_ranks_meet_at_the_port_and_the_address_of_the_user(self):
        """A firewall may let one port through."""
        address = self.hosts.address("node1")
        for place, meets in (["--master-port", "22222"], f"{address}:22222"), \
                            (["--rdzv-endpoint", "node1:22223"], "node1:22223"):
            run = self.peal("--no-prefix", "-n", "2", "-H", "node1,node2", *place, "sh", "-c",
                            "echo $MASTER_ADDR:$MASTER_PORT")
            self.assertEqual((run.returncode, run.stdout), (0, f"{meets}\n" * 2), run.stderr)
        run = self.peal("-n", "2", "-H", "node1,node2", "--master-port", "22222", FIRST)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_ranks_of_all_hosts_make_a_group(self):
        run = self.peal("-n", "6", "-H", "node1:2,node2:2,node3:2", FIRST)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"rank \d has 18", run.stdout)), 6, run.stdout)

    def test_more_ranks_than_are_linked_at_the_start_make_a_group(self):
        run = self.peal("-n", "24", "-H", "node1:8,node2:8,node3:8", FIRST)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"rank \d+ has 72", run.stdout)), 24, run.stdout)

    def test_the_launchers_machine_may_be_one_of_the_hosts(self):
        run = self.peal("-n", "2", "-H", "localhost:1,node1:1", FIRST)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("[localhost:0] rank 0 has 6", run.stdout)

    def test_a_hostfile_names_the_hosts(self):
        (pathlib.Path(self.hosts.folder) / "hosts").write_text("node2 slots=1\nnode3:1  # last\n")
        run = self.peal("--hostfile", f"{self.hosts.folder}/hosts", "hostname")
        self.assertEqual(sorted(run.stdout.splitlines()), ["[node2:0] node2", "[node3:1] node3"], run.stderr)

    def test_environment_values_arrive_byte_for_byte(self):
        run = self.peal("-n", "1", "-H", "node1", "--no-prefix", sys.executable, "-c", SHOW, *NASTY,
                        env=NASTY)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), NASTY)

    def test_arguments_arrive_byte_for_byte(self):
        values = list(NASTY.values())
        run = self.peal("-n", "1", "-H", "node1", "--no-prefix", sys.executable, "-c",
                        "import json, sys; print(json.dumps(sys.argv[1:]))", *values)
        self.assertEqual(json.loads(run.stdout), values, run.stderr)

    def test_variables_of_a_login_are_those_of_the_host(self):
        run = self.peal("-n", "1", "-H", "node1", "sh", "-c", "echo $HOME")
        self.assertEqual(run.stdout, f"[node1:0] {self.hosts.home('node1')}\n", run.stderr)

    def test_the_secret_and_the_environment_are_in_no_command_line(self):
        with CommandLines() as lines:
            run = self.start("-n", "2", "-H", "node1,node2", "sleep", str(LONG),
                             env={"PEAL_SECRET": "3c9e-the-secret", "TOKEN": "a-token-of-the-user"})
            wait_until(lambda: self.is_running("node2", f"sleep {LONG}"), "running")
        assert_unseen(self, [b"3c9e-the-secret", b"a-token-of-the-user"], lines, ["ssh\0"], [self.hosts.folder],
                      {"calls of ssh": repr(self.hosts.ssh_calls())})
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143)

    def test_one_connection_for_each_host(self):
        before = len(self.hosts.ssh_calls())
        self.assertEqual(self.peal("-n", "12", "-H", "node1:6,node2:6", "true").returncode, 0)
        self.assertEqual(len(self.hosts.ssh_calls()) - before, 2)

    def test_output_is_shown_in_whole_lines_and_logged_here(self):
        logs = f"{self.hosts.folder}/logs"
        run = self.peal("-n", "4", "-H", "node1:2,node2:2", "--log-dir", logs, sys.executable, "-c",
                        "import os, sys\nfor i in range(40): print(os.environ['RANK'] * 9000)\nsys.stderr.write('end')")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(set(run.stdout.splitlines()), {f"[node{1 + rank // 2}:{rank}] {str(rank) * 9000}" for rank in range(4)})
        self.assertEqual(len(run.stdout.splitlines()), 160)
        for rank in range(4):
            self.assertEqual(pathlib.Path(logs, f"rank-{rank}.out").read_text(), f"{str(rank) * 9000}\n" * 40)
            self.assertEqual(pathlib.Path(logs, f"rank-{rank}.err").read_text(), "end")

    def test_much_output_waits_for_a_slow_reader(self):
        run = self.start("-n", "2", "-H", "node1,node2", "--no-prefix", "sh", "-c", "yes 0123456789 | head -c 20000000")
        time.sleep(3)  # longer than the silence after which a host is lost
        out, err = run.communicate()
        self.assertEqual((run.returncode, err, len(out)), (0, "", 2 * len("0123456789\n") * (20_000_000 // 11) + 2 * (20_000_000 % 11 + 1)))

    def test_the_first_failure_is_reported_with_its_host_and_gives_the_exit_code(self):
        run = self.peal("-n", "4", "-H", "node1:2,node2:2", "sh", "-c",
                        f"[ $RANK != 3 ] || {{ echo no data >&2; exit 7; }}; sleep {LONG}")
        self.assertEqual(run.returncode, 7)
        self.assertRegex(run.stderr, r"peal: rank 3 on node2 \(pid \d+\) ended with exit code 7 after [\d.]+ s; "
                                     r"ranks 0, 1 and 2 were ended by the launcher\n"
                                     r"peal: the last lines of rank 3:\n  \| no data\n")

    def test_a_rank_killed_by_a_signal(self):
        run = self.peal("-n", "2", "-H", "node1,node2", "sh", "-c", f"[ $RANK = 0 ] || kill -SEGV $$; sleep {LONG}")
        self.assertEqual(run.returncode, 139)
        self.assertIn("rank 1 on node2", run.stderr)
        self.assertIn("SIGSEGV", run.stderr)

    def test_peal_why_reads_the_records_of_all_hosts(self):
        run = self.peal("-n", "2", "-H", "node1,node2", "-x", "PEAL_INJECT=rank 1 kill at operation 1", FIRST)
        self.assertEqual(run.returncode, 137, run.stderr)
        self.assertRegex(run.stderr, r"peal: why: .*rank 1")
        dump = re.search(r"peal: see peal why (\S+)", run.stderr).group(1)
        why = self.hosts.run([PEAL, "why", dump], stdout=subprocess.PIPE, text=True)
        self.assertIn("rank 1", why.stdout)
        os.remove(dump)

    def test_rank_0_reads_the_standard_input(self):
        data = pathlib.Path(self.hosts.folder) / "data"
        data.write_bytes(bytes(range(256)) * 10_000)
        digest = hashlib.sha256(data.read_bytes()).hexdigest()
        nothing = hashlib.sha256(b"").hexdigest()
        command = ["-n", "2", "-H", "node1,node2", "sh", "-c", "sha256sum"]
        expected = [f"[node1:0] {digest}  -", f"[node2:1] {nothing}  -"]
        with data.open() as file:
            run = self.peal(*command, stdin=file)
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())), (0, expected), run.stderr)
        with subprocess.Popen(["cat", data], stdout=subprocess.PIPE) as pipe:
            run = self.peal(*command, stdin=pipe.stdout)
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())), (0, expected), run.stderr)

    def assertAnswers(self, stdin, writer, end):
        """Rank 0 reads a line of its input at once, and then the end of the input."""
        run = self.start("-n", "2", "-H", "node1,node2", "--no-prefix", "sh", "-c",
                         "[ $RANK = 0 ] || exit 0; read line; echo got $line; read line || echo end", stdin=stdin)
        os.close(stdin)
        os.write(writer, b"one\n")
        self.assertEqual(run.stdout.readline(), "got one\n")
        end(writer)
        self.assertEqual(run.stdout.readline(), "end\n")
        self.assertEqual(run.wait(60), 0)

    def test_rank_0_answers_while_its_standard_input_is_open(self):
        self.assertAnswers(*os.pipe(), os.close)

    def test_rank_0_answers_at_a_terminal(self):
        terminal, stdin = os.openpty()
        self.addCleanup(os.close, terminal)
        self.assertAnswers(stdin, terminal, lambda writer: os.write(writer, b"\x04"))

    def test_rank_0_reads_nothing_from_an_empty_standard_input(self):
        run = self.peal("-n", "1", "-H", "node1", "--no-prefix", "wc", "-c", stdin=subprocess.DEVNULL)
        self.assertEqual((run.returncode, run.stdout), (0, "0\n"), run.stderr)

    def test_a_job_ends_although_its_standard_input_goes_on_and_nothing_reads_it(self):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
            run = self.peal("-n", "2", "-H", "node1,node2", "true", stdin=yes.stdout)
            yes.stdout.close()
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_rank_0_of_the_next_attempt_reads_on(self):
        run = self.start("-n", "1", "-H", "node1", "--max-restarts", "1", "--no-prefix", "sh", "-c",
                         "echo $PEAL_ATTEMPT; read line; echo $line; exit $((1 - PEAL_ATTEMPT))", stdin=subprocess.PIPE)
        for attempt, line in enumerate(["one", "two"]):
            self.assertEqual(run.stdout.readline(), f"{attempt}\n")
            run.stdin.write(line + "\n")
            run.stdin.flush()
            self.assertEqual(run.stdout.readline(), line + "\n")
        self.assertEqual(run.wait(60), 0)

    def test_ranks_inherit_only_the_standard_files(self):
        run = self.peal("-n", "1", "-H", "node1", "--no-prefix", "sh", "-c", "ls /proc/$$/fd")
        self.assertEqual(run.stdout.split(), ["0", "1", "2"], run.stderr)

    def test_nothing_is_left_in_the_launchers_folder_for_temporary_files(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.peal("-n", "2", "-H", "node1,node2", FIRST, env={"TMPDIR": folder})
            self.assertEqual((run.returncode, os.listdir(folder)), (0, []), run.stderr)

    def test_a_signal_ends_a_job_whose_output_nobody_reads(self):
        run = self.start("-n", "2", "-H", "node1,node2", "--grace", "1", "sh", "-c", "echo ready; yes 0123456789")
        run.stdout.readline()
        time.sleep(1)  # until all pipes are full
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130)

    def test_signals_are_passed_on(self):
        run = self.start("-n", "2", "-H", "node1,node2", "sh", "-c",
                         "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
        self.assertIn("ready", run.stdout.readline())
        self.assertIn("ready", run.stdout.readline())
        run.send_signal(signal.SIGTERM)
        out, err = run.stdout.read(), run.communicate()[1]
        self.assertEqual((run.returncode, out.count("saved")), (0, 2), err)

    def test_a_rank_that_ignores_the_request_is_killed_after_the_grace(self):
        run = self.start("-n", "2", "-H", "node1,node2", "--grace", "0.5", "sh", "-c",
                         f"trap '' TERM; echo ready; sleep {LONG}; sleep {LONG}")
        run.stdout.readline()
        run.stdout.readline()
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate()
        self.assertEqual(run.returncode, 143, err)
        self.assertIn("ranks 0 and 1 were killed, not having ended within 0.5 s (--grace)", err)

    def test_processes_that_ranks_leave_behind_are_ended(self):
        run = self.peal("-n", "2", "-H", "node1,node2", "sh", "-c", f"setsid sleep {LONG} & echo $$")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNothingRuns("node1", "node2")

    def test_the_current_folder_must_exist_on_each_host(self):
        folder = tempfile.mkdtemp(prefix="only here ")  # other hosts have their own /tmp
        self.addCleanup(os.rmdir, folder)
        run = self.peal("-n", "2", "-H", "localhost,node1", "pwd", cwd=folder)
        self.assertEqual(run.returncode, 126)
        self.assertIn(f"node1: the folder {folder} is missing", run.stderr)

    def test_a_command_that_does_not_exist_is_reported_for_each_host_and_no_rank_starts(self):
        run = self.peal("-n", "2", "-H", "node1,node2", "no-such-program")
        self.assertEqual((run.returncode, run.stdout), (127, ""))
        self.assertEqual(run.stderr.count("cannot run \"no-such-program\""), 2)


class Refusals(TestOfHosts):
    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts([Host("good"), *(Host(fault.value, fault=fault) for fault in Fault)],
                             programs=[PEAL.parent])
        cls.addClassCleanup(cls.hosts.stop)

    def test_all_hosts_that_refuse_are_listed_with_their_reasons(self):
        names = ",".join(["good", *(fault.value for fault in Fault)])
        run = self.peal("-n", str(1 + len(Fault)), "-H", names, "--start-timeout", "15", "touch", f"{self.hosts.folder}/started")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"{len(Fault)} of {1 + len(Fault)} hosts cannot be used:\n", run.stderr)
        reasons = {Fault.UNKNOWN_KEY: "its key is not known here", Fault.CHANGED_KEY: "its key is not known here",
                   Fault.REFUSED_KEY: "it accepts no key of yours", Fault.NO_SSHD: "no ssh server listens there",
                   Fault.NO_NAME: "the name has no address", Fault.NO_PROGRAMS: "does not exist there",
                   Fault.OTHER_VERSION: r"peal 99\.0\.0 is installed there, and peal \d[\d.]* here; install the same",
                   Fault.SILENT: "no answer within 15 s"}
        for fault, reason in reasons.items():
            self.assertRegex(run.stderr, rf"\n  {fault.value}: [^\n]*{reason}")
        self.assertNotIn("good:", run.stderr)
        self.assertFalse(os.path.exists(f"{self.hosts.folder}/started"))
        self.assertNothingRuns("good")


class Deaths(TestOfHosts):
    def setUp(self):
        self.hosts = SshHosts(3, programs=[PEAL.parent], own_files=True)
        self.addCleanup(self.hosts.stop)

    def start_long(self, *options):
        run = self.start("-n", "4", "-H", "node1:2,node2:2", *options, "sh", "-c",
                         f"setsid sleep {LONG} & echo ready; sleep {LONG}")
        for _ in range(4):
            self.assertIn("ready", run.stdout.readline())
        return run

    def assertLost(self, run, host, reason):
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 137, err)
        self.assertRegex(err, rf"host {host} was lost with ranks \d and \d after [\d.]+ s: {reason}")
        for silence in re.findall(r"no sign of life for ([\d.]+) s", err):
            self.assertGreaterEqual(float(silence), 2, err)  # more on a busy host

    def test_a_host_that_is_cut_off_is_lost_and_ends_its_ranks_itself(self):
        run = self.start_long()
        self.hosts.cut("node2")
        self.assertLost(run, "node2", r"no sign of life for [\d.]+ s")
        self.assertNothingRuns("node1")
        self.assertNothingRuns("node2")  # still cut off

    def test_a_host_that_is_frozen_is_lost(self):
        run = self.start_long()
        self.hosts.freeze("node1")
        self.assertLost(run, "node1", r"no sign of life for [\d.]+ s")
        self.assertNothingRuns("node2")

    def test_a_host_that_dies_is_lost_at_once(self):
        run = self.start_long()
        self.hosts.kill_all("node2")
        self.assertLost(run, "node2", "ssh ended with exit code 255")

    def test_an_agent_that_is_killed_takes_its_ranks_with_it(self):
        run = self.start_long()
        agent = next(one for one in self.hosts.processes("node1") if one.command[-1] == "agent")
        os.kill(agent.pid, signal.SIGKILL)
        self.assertLost(run, "node1", "ssh ended with exit code 255")
        self.assertNothingRuns("node1", "node2")

    def test_a_guard_that_is_killed_takes_its_ranks_with_it(self):
        run = self.start_long()
        guard = next(one for one in self.hosts.processes("node1") if one.command[0] == "rank-guard")
        os.kill(guard.pid, signal.SIGKILL)
        self.assertLost(run, "node1", "the process that guards its ranks was killed")
        self.assertNothingRuns("node1", "node2")

    def restarted(self, strike, pattern):
        """A job of two hosts and a spare one restarts after the strike, and ends well. Returns its report."""
        run = self.start("-n", "4", "-H", "node1:2,node2:2,node3:2", "--max-restarts", "1", "sh", "-c",
                         f"echo $(hostname) $PEAL_ATTEMPT $RANK; [ $PEAL_ATTEMPT = 1 ] || sleep {LONG}")
        for _ in range(4):
            self.assertRegex(run.stdout.readline(), r" 0 \d$")
        strike(run)
        out, err = run.stdout.read(), run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, err)
        self.assertRegex(err, pattern)
        self.assertIn("peal: restart 1 of 1\n", err)
        return out

    def test_a_job_continues_on_a_spare_host_after_a_host_is_cut_off(self):
        out = self.restarted(lambda _: self.hosts.cut("node1"), "host node1 was lost with ranks 0 and 1")
        self.assertEqual(sorted(out.splitlines()), ["[node2:0] node2 1 0", "[node2:1] node2 1 1",
                                                    "[node3:2] node3 1 2", "[node3:3] node3 1 3"])

    def test_a_job_starts_again_after_a_rank_is_killed(self):
        def kill_a_rank(_):
            victim = next(one for one in self.hosts.processes("node2") if one.command[0] == "sh")
            os.kill(victim.pid, signal.SIGKILL)
        out = self.restarted(kill_a_rank, "on node2 .* was killed by SIGKILL")
        self.assertEqual(out.count(" 1 "), 4)
        self.assertNotIn("node3", out)

    def test_restarts_end_when_no_host_has_room(self):
        run = self.start("-n", "4", "-H", "node1:2,node2:2,node3:1", "--max-restarts", "5",
                         "--blacklist-cooldown-range", "1000", "2000", "sh", "-c", f"echo ready; sleep {LONG}")
        for _ in range(4):
            run.stdout.readline()
        self.hosts.kill_all("node2")
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 137, err)
        self.assertRegex(err, "the job ends: there is room for 3 ranks, and the job needs 4, for 600 s: node2: ssh ended")

    def test_an_agent_that_gets_a_signal_says_so(self):
        run = self.start_long()
        agent = next(one for one in self.hosts.processes("node1") if one.command[-1] == "agent")
        os.kill(agent.pid, signal.SIGTERM)
        run.communicate(timeout=60)
        self.assertEqual(run.returncode, 143)
        self.assertNothingRuns("node1", "node2")

    def test_a_launcher_that_is_killed_leaves_no_process_on_any_host(self):
        run = self.start_long()
        run.kill()
        self.assertNothingRuns("node1", "node2")

    def test_a_launcher_that_is_stopped_by_ctrl_z_keeps_its_job(self):
        run = self.start_long()
        run.send_signal(signal.SIGTSTP)
        time.sleep(17)  # longer than the patience of the agents
        self.assertTrue(self.is_running("node1", f"sleep {LONG}"))
        run.send_signal(signal.SIGCONT)
        time.sleep(1)
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143)


if __name__ == "__main__":
    if ssh_hosts.why_not():
        print(ssh_hosts.why_not())
        sys.exit(ssh_hosts.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
