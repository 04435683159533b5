"""Ranks that are asked to stop end after the same step and save, whatever asks them, and whichever rank is asked.

    stop_test.py PEAL STOPPING    # STOPPING: the example program
"""
import os
import pathlib
import re
import signal
import sys
import time
import unittest

import jobs
import ssh_hosts
from jobs import LONG, JobTest, environment_of, role, shell, wait_until
from ssh_hosts import Host, SshHosts

STOPPING = pathlib.Path(sys.argv[2]).resolve()
FLAG = "PEAL_STOP_FLAG"
WARNING = (-1).to_bytes(4, sys.byteorder, signed=True)  # the content of the flag: peal/system/stop_flag.cpp
# Starts a child that notes SIGTERM, as a worker of a data loader would die of it, and then the program. The line of the
# child comes first only if the child was signalled while the program ran.
WITH_CHILD = """
(trap 'echo child >> order-$RANK; exit' TERM; echo > child-$RANK; while :; do sleep 0.05; done) & child=$!
until [ -e child-$RANK ]; do sleep 0.05; done
"$0" checkpoint || exit
echo program >> order-$RANK
kill $child
wait $child
"""


class StopTest(JobTest):
    def run_until_step_3(self, *arguments, ranks=3, program=(STOPPING, "checkpoint")):
        """Starts `peal run`, and returns as soon as all ranks train."""
        run = self.start("run", "-n", ranks, "--grace", jobs.PATIENCE, *arguments, *program)
        lines = []
        while sum("step 3" in line for line in lines) < ranks:
            line = run.stdout.readline()
            self.assertTrue(line, f"ended: {lines}{run.stderr.read() if not line else ''}")
            lines.append(line)
        return run

    def flags(self):
        """{rank: the path of its flag}, of the programs that look at one."""
        found = {}
        for pid in self.processes():
            variables = dict(pair.split(b"=", 1) for pair in environment_of(pid).split(b"\0") if b"=" in pair)
            if FLAG.encode() in variables:
                found[int(variables[b"RANK"])] = pathlib.Path(variables[FLAG.encode()].decode())
        return found

    def assert_same_step(self, text, ranks, least=3):
        steps = re.findall(r"rank \d ends after step (\d+)", text)
        self.assertEqual(len(steps), ranks, text)
        self.assertEqual(len(set(steps)), 1, text)
        self.assertGreaterEqual(int(steps[0]), least)
        self.assertEqual((self.folder / "checkpoint").read_text().split()[0], steps[0])


class Run(StopTest):
    def test_all_ranks_end_after_the_same_step_whichever_of_them_is_asked(self):
        for rank in range(3):
            with self.subTest(rank=rank):
                (self.folder / "checkpoint").unlink(missing_ok=True)
                run = self.run_until_step_3()
                with open(self.flags()[rank], "r+b", buffering=0) as flag:
                    flag.write(WARNING)
                out, err = run.communicate(timeout=jobs.PATIENCE)
                self.assertEqual((run.returncode, err), (0, ""))
                self.assert_same_step(out, 3)

    def test_a_signal_to_one_rank_stops_all(self):
        run = self.run_until_step_3()
        pids = [pid for pid in self.processes() if b"RANK=1\0" in environment_of(pid)]
        self.assertEqual(len(pids), 1)
        os.kill(pids[0], signal.SIGTERM)
        out, err = run.communicate(timeout=jobs.PATIENCE)
        self.assertEqual((run.returncode, err), (0, ""))
        self.assert_same_step(out, 3)

    def test_sigterm_to_the_launcher_reaches_no_child_of_a_rank(self):
        run = self.run_until_step_3(program=("sh", "-c", WITH_CHILD, STOPPING))
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=jobs.PATIENCE)
        self.assertEqual(run.returncode, 0, err)
        self.assertRegex(err, r"\Apeal: ended by SIGTERM after [\d.]+ s\n\Z")
        self.assert_same_step(out, 3)
        for rank in range(3):
            self.assertEqual((self.folder / f"order-{rank}").read_text(), "program\nchild\n")

    def test_the_two_signals_of_timeout_are_one_request(self):
        save = f"trap 'echo asked; sleep 0.2; echo saved; exit 0' TERM; echo ready; sleep {LONG} & wait"
        run = self.start("run", "-n", 1, "--grace", jobs.PATIENCE, "sh", "-c", save)
        while "ready" not in run.stdout.readline():
            pass
        first = time.monotonic()
        run.send_signal(signal.SIGTERM)
        while "asked" not in run.stdout.readline():
            pass
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=jobs.PATIENCE)
        # A busy machine may take more than a second. Then there are two requests, and the second one kills the rank.
        self.assertTrue("saved" in out or time.monotonic() - first >= 1, err)

    def test_the_next_run_continues(self):
        run = self.run_until_step_3()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=jobs.PATIENCE)
        step = int((self.folder / "checkpoint").read_text().split()[0])
        again = self.peal("run", "-n", 2, STOPPING, "checkpoint", step + 2)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assert_same_step(again.stdout, 2)
        self.assertEqual(int((self.folder / "checkpoint").read_text().split()[0]), step + 2)

    def test_a_warning_comes_before_the_time_limit(self):
        run = self.peal("run", "-n", 2, "--timeout", LONG, "--warn-before", LONG - 1, STOPPING, "checkpoint")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"\Apeal: the ranks ended after [\d.]+ s, after the warning before the time limit\n\Z")

    def test_ranks_that_do_not_ask_end_at_the_time_limit_by_sigterm(self):
        run = self.peal("run", "-n", 2, "--timeout", 2, "--warn-before", 1, "sleep", LONG)
        self.assertEqual(run.returncode, 124)
        self.assertRegex(run.stderr, r"\Apeal: ended after [\d.]+ s by its time limit of 2 s\n\Z")

    def test_the_warning_reaches_the_ranks_of_a_launcher_that_is_a_rank(self):
        run = self.peal("run", "--timeout", LONG, "--warn-before", LONG - 1, "-n", 1,
                        jobs.PEAL, "run", "-n", 2, STOPPING, "checkpoint")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("ends after"), 2)

    def test_the_warning_reaches_the_workers_of_an_elastic_launcher_that_is_a_rank(self):
        # The end of the first worker ends the job, so each waits until both are warned.
        look = (f"import os, pathlib, time; path = os.environ['{FLAG}']\n"
                f"while open(path, 'rb').read(4) != {WARNING}: time.sleep(0.05)\n"
                f"print('warned', flush=True); folder = pathlib.Path({str(self.folder)!r})\n"
                "(folder / f'warned-{os.getpid()}').touch()\n"
                "while len(list(folder.glob('warned-*'))) < 2: time.sleep(0.05)")
        run = self.peal("run", "--timeout", LONG, "--warn-before", LONG - 1, "-n", 1,
                        jobs.PEAL, "run", "--min-np", 2, "-n", 2, sys.executable, "-c", look)
        self.assertEqual((run.returncode, run.stdout.count("warned")), (0, 2), run.stderr)

    def test_a_program_that_follows_one_that_looked_gets_sigterm(self):
        script = (f"{STOPPING} checkpoint > out & first=$!; until grep -q 'step 3' out; do sleep 0.05; done; kill -KILL $first; "
                  f"wait $first; echo follows; trap 'echo gets; exit 0' TERM; sleep {LONG} & wait")
        run = self.start("run", "-n", 1, "--grace", jobs.PATIENCE, "sh", "-c", script)
        while "follows" not in run.stdout.readline():
            pass
        run.send_signal(signal.SIGTERM)
        self.assertIn("gets", run.communicate(timeout=jobs.PATIENCE)[0])

    def test_workers_of_an_elastic_job_are_asked(self):
        look = ("import fcntl, os, time; file = open(os.environ['PEAL_STOP_FLAG'], 'r+b', 0)\n"
                "fcntl.lockf(file, fcntl.LOCK_SH); print('looks', flush=True)\n"
                f"while os.pread(file.fileno(), 4, 0) != ({int(signal.SIGTERM)}).to_bytes(4, sys.byteorder): time.sleep(0.05)\n"
                "print('asked')")
        run = self.start("run", "--min-np", 2, "-n", 2, "--grace", jobs.PATIENCE, sys.executable, "-c", f"import sys; {look}")
        lines = [run.stdout.readline() for _ in range(2)]
        self.assertTrue(all("looks" in line for line in lines), lines)
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=jobs.PATIENCE)
        self.assertEqual((run.returncode, out.count("asked")), (0, 2), err)

    def test_a_warning_without_a_limit_is_an_error(self):
        run = self.peal("run", "-n", 1, "--warn-before", 5, "true", env={"SLURM_JOB_ID": ""})
        self.assertEqual(run.returncode, 2)
        self.assertIn("--warn-before needs a time limit", run.stderr)

    def test_a_warning_before_the_start_is_an_error(self):
        run = self.peal("run", "-n", 1, "--timeout", 5, "--warn-before", 6, "true")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("--warn-before 6 is longer than --timeout 5", run.stderr)

    def test_no_flag_is_left(self):
        run = self.run_until_step_3()
        folders = {path.parent for path in self.flags().values()}
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=jobs.PATIENCE)
        self.assertEqual(len(folders), 1)
        self.assertFalse(folders.pop().exists())


class Submitted(StopTest):
    def test_a_job_that_stops_after_its_warning_has_succeeded(self):
        job = self.submit({"max_run_time": f"{LONG}s", "warn_before": f"{LONG - 1}s",
                           "roles": [role(STOPPING, "checkpoint", ranks_per_node=2)]})
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("succeeded", 0), status)
        self.assertEqual(status["reason"], "its ranks ended after the warning before its time limit")
        self.assert_same_step(self.logs(job), 2, least=0)  # the warning may come before the first step

    def test_a_job_that_does_not_stop_reaches_its_time_limit(self):
        job = self.submit({"max_run_time": "2s", "warn_before": "1s", "roles": [role("sleep", LONG)]})
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"], status["cause"]), ("cancelled", 124, "time_limit"))

    def test_a_cancelled_job_saves(self):
        job = self.submit({"grace": f"{jobs.PATIENCE}s", "roles": [role(STOPPING, "checkpoint", ranks_per_node=2)]})
        wait_until(lambda: self.logs(job).count("step 3") == 2, "training")
        self.cancel(job)
        self.assertEqual(self.end_of(job)["state"], "cancelled")
        self.assert_same_step(self.logs(job), 2)

    def test_a_warning_needs_a_limit_that_is_longer(self):
        for fields in ({"warn_before": "1m"}, {"warn_before": "1m", "max_run_time": "30s"}):
            run = self.peal("submit", self.write({"roles": [shell("true")], **fields}), "--to", "local")
            self.assertEqual(run.returncode, 2)
            self.assertIn("warn_before", run.stderr)


class Hosts(StopTest):
    @classmethod
    def setUpClass(cls):
        if ssh_hosts.why_not():
            raise unittest.SkipTest(ssh_hosts.why_not())
        cls.hosts = SshHosts([Host("node1"), Host("node2")], programs=[jobs.PEAL.parent, STOPPING.parent])
        cls.addClassCleanup(cls.hosts.stop)

    def submit_to_hosts(self, **fields):
        job = {"roles": [role(STOPPING, self.folder / "checkpoint", nodes=2, ranks_per_node=2)], **fields}
        return self.submit(job, to=("--to", "ssh", "-H", "node1:2,node2:2"))

    def test_a_cancelled_job_saves(self):
        job = self.submit_to_hosts(grace=f"{jobs.PATIENCE}s")
        wait_until(lambda: self.logs(job).count("step 3") == 4, "training")
        self.cancel(job)
        self.assertEqual(self.end_of(job)["state"], "cancelled")
        self.assert_same_step(self.logs(job), 4)

    def test_a_warning_reaches_all_hosts(self):
        job = self.submit_to_hosts(max_run_time=f"{LONG}s", warn_before=f"{LONG - 1}s")
        self.assertEqual(self.end_of(job)["state"], "succeeded")
        self.assertEqual(self.logs(job).count("ends after step"), 4)


if __name__ == "__main__":
    jobs.main()
