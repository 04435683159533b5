"""Jobs on this machine that start again, their logs, roles with own commands, and what ranks get: variables and the
secret.

    restart_test.py PEAL FIRST    # FIRST: a program that makes a group
"""
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys

import jobs
from jobs import LONG, PATIENCE, JobTest, role, shell, wait_until
from nasty_values import NASTY, SHOW

FIRST = pathlib.Path(sys.argv[2]).resolve()
PYTHON = sys.executable


class Restarts(JobTest):
    def test_a_failed_job_starts_again_until_it_succeeds(self):
        run = self.stream({"restarts": {"most": 2, "first_pause": "100ms"}, "roles": [
            shell("echo attempt $PEAL_ATTEMPT; echo problem >&2; [ $PEAL_ATTEMPT = 2 ]", nodes=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(collections.Counter(run.stdout.splitlines()), collections.Counter(
            f"[w-{node}] {text}" for node in (0, 1) for text in ("attempt 0", "attempt 1", "attempt 2", *["problem"] * 3)))
        for attempt in (0, 1):
            self.assertRegex(run.stderr, rf"(?m)^peal: attempt {attempt} failed: rank [01] \(w [01] on localhost\) ended with "
                                         rf"exit code 1; attempt {attempt + 1} follows$")
        text = self.peal("status", "job").stdout
        self.assertRegex(text, r"(?m)^restarts +2$")
        self.assertRegex(text, r"(?m)^attempt 1 +failed: rank [01] \(w [01] on localhost\) ended with exit code 1$")
        self.assertEqual(self.status("job")["failed_attempt"]["attempt"], 1)
        for attempt in (0, 1, 2):
            self.assertEqual(self.logs("job", "--attempt", attempt, "--rank", 1), f"[w-1] attempt {attempt}\n[w-1] problem\n")
        self.assertEqual(self.logs("job", "--rank", 1), "[w-1] attempt 2\n[w-1] problem\n")
        self.assertEqual(self.logs("job", "-f", "--attempt", 1).count("attempt 1"), 2)

    def test_the_last_failure_counts_after_the_last_restart(self):
        run = self.stream({"restarts": {"most": 1, "first_pause": "10ms"}, "roles": [shell("exit $((PEAL_ATTEMPT + 3))")]})
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertRegex(run.stderr, r"(?m)^peal: job-\w+ failed: rank 0 \(w 0 on localhost\) ended with exit code 4$")
        status = self.status("job")
        self.assertEqual(self.record(status["id"], "end.json")["attempts"], 2)
        self.assertEqual(status["failed_attempt"], {"attempt": 0, "failure": "rank 0 (w 0 on localhost) ended with exit code 3"})

    def test_a_job_that_waits_for_its_restart_says_so_and_can_be_cancelled(self):
        job = self.submit({"restarts": {"most": 3, "first_pause": "1h", "longest_pause": "1h"}, "roles": [shell("exit 5")]})
        status = wait_until(lambda: (seen := self.status(job))["reason"] == "restart 1 of 3" and seen, "waiting")
        self.assertEqual(status["state"], "preparing")
        self.assertEqual(status["failed_attempt"]["failure"], "rank 0 (w 0 on localhost) ended with exit code 5")
        self.cancel(job)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", 143))
        self.assertEqual((self.jobs / job / "attempt-0").is_dir(), True)
        self.assert_no_process()

    def test_a_job_that_waits_for_its_restart_ends_at_its_time_limit(self):
        run = self.stream({"restarts": {"most": 3, "first_pause": "1h", "longest_pause": "1h"}, "max_run_time": "1s",
                           "roles": [shell("exit 5")]})
        self.assertEqual(run.returncode, 124, run.stderr)
        self.assertEqual(self.status("job")["state"], "cancelled")

    def test_a_job_that_is_cancelled_does_not_start_again(self):
        job = self.submit({"restarts": {"most": 3, "first_pause": "10ms"}, "grace": "1s", "roles": [
            shell(f"trap 'exit 9' TERM; echo ready; {self.at_gate()}")]})
        wait_until(lambda: self.logs(job), "ready")
        self.cancel(job)
        self.assertEqual(self.end_of(job)["exit_code"], 143)
        self.assertEqual(len(list((self.jobs / job).glob("attempt-*"))), 1)

    def test_a_launcher_that_gets_a_signal_during_a_pause_ends_and_says_why(self):
        job = self.submit({"restarts": {"most": 1, "first_pause": "1h", "longest_pause": "1h"}, "roles": [shell("exit 5")]})
        wait_until(lambda: self.status(job)["reason"] == "restart 1 of 1", "waiting")
        os.kill(self.launcher_of(job), signal.SIGTERM)
        self.assertEqual(self.end_of(job)["exit_code"], 143)
        end = self.record(job, "end.json")
        self.assertEqual((end["cause"], end["first_failure"]), ("cancelled", "its launcher was ended by SIGTERM"))
        self.assertTrue((self.jobs / job / "launcher.log").read_text().endswith(
            "peal: restart 1 of 1\npeal: the job ends: the launcher got SIGTERM while no rank ran\n"))
        self.assert_no_process()


class Logs(JobTest):
    def follow(self, *arguments, **options):
        return self.start("logs", "-f", *arguments, **options)

    def test_a_follower_sees_all_attempts_to_the_end(self):
        job = self.submit({"restarts": {"most": 1, "first_pause": "300ms"}, "roles": [
            shell(f"echo start $PEAL_ATTEMPT; {self.at_gate()}; echo end $PEAL_ATTEMPT; [ $PEAL_ATTEMPT = 1 ]")]})
        follower = self.follow(job, stderr=subprocess.STDOUT)
        self.assertEqual(follower.stdout.readline(), "start 0\n")
        self.open_gate()
        out, _ = follower.communicate(timeout=PATIENCE)
        self.assertEqual((out, follower.returncode),
                         ("end 0\n"
                          "peal: attempt 0 failed: rank 0 (w 0 on localhost) ended with exit code 1; attempt 1 follows\n"
                          f"start 1\nend 1\npeal: {job} succeeded\n", 0))

    def test_a_follower_of_one_attempt_waits_for_it(self):
        job = self.submit({"restarts": {"most": 1, "first_pause": "300ms"}, "roles": [
            shell(f"{self.at_gate()}; echo attempt $PEAL_ATTEMPT; [ $PEAL_ATTEMPT = 1 ]")]})
        first, second = self.follow(job, "--attempt", "0"), self.follow(job, "--attempt", "1")
        self.open_gate()
        out, err = first.communicate(timeout=PATIENCE)
        self.assertEqual(out, "attempt 0\n")
        self.assertRegex(err, rf"\Apeal: attempt 0 failed: .*; attempt 1 follows\npeal: {job} succeeded\n\Z")
        self.assertEqual(second.communicate(timeout=PATIENCE), ("attempt 1\n", f"peal: {job} succeeded\n"))

    def test_a_follower_of_one_rank_sees_only_that_rank(self):
        job = self.submit({"roles": [shell(f"{self.at_gate()}; echo rank $RANK; echo err $RANK >&2", nodes=2,
                                           ranks_per_node=2)]})
        followers = [self.follow(job, "--rank", rank) for rank in range(4)]
        self.open_gate()
        for rank, follower in enumerate(followers):
            out, err = follower.communicate(timeout=PATIENCE)
            label = f"[w-{rank // 2}:{rank}]"
            self.assertEqual((sorted(out.splitlines()), err),
                             ([f"{label} err {rank}", f"{label} rank {rank}"], f"peal: {job} succeeded\n"))

    def test_long_lines_of_many_ranks_stay_whole(self):
        script = "import os, sys\nfor i in range(30): print(os.environ['RANK'] * 70000, flush=True)"
        job = self.submit({"roles": [role(PYTHON, "-c", f"import os, time\nwhile not os.path.exists('{self.path('go')}'): "
                                                        f"time.sleep(0.02)\n{script}", nodes=3)]})
        follower = self.follow(job)
        self.open_gate()
        out, err = follower.communicate(timeout=PATIENCE)
        self.assertEqual((follower.returncode, err), (0, f"peal: {job} succeeded\n"))
        expected = collections.Counter({f"[w-{rank}] {str(rank) * 70000}": 30 for rank in range(3)})
        self.assertEqual(collections.Counter(out.splitlines()), expected)
        self.assertEqual(collections.Counter(self.logs(job).splitlines()), expected)

    def test_the_beginning_of_a_line_waits_for_its_end_and_the_last_line_needs_none(self):
        job = self.submit({"roles": [shell(f"printf begin; touch {self.path('begun')}; {self.at_gate()}; printf ' end\\nlast'")]})
        follower = self.follow(job)
        self.await_file("begun")
        self.open_gate()
        self.assertEqual(follower.communicate(timeout=PATIENCE), ("begin end\nlast\n", f"peal: {job} succeeded\n"))

    def test_any_bytes_are_passed_on(self):
        data = bytes(range(1, 256)).replace(b"\n", b"").replace(b"\r", b"")
        self.path("data").write_bytes(data + b"\n")
        job = self.submit({"roles": [role("cat", self.path("data"))]})
        self.end_of(job)
        run = self.start("logs", job, text=False, errors=None)
        self.assertEqual(run.communicate(timeout=PATIENCE)[0], data + b"\n")

    def test_much_output_fast(self):
        job = self.submit({"roles": [shell("yes 0123456789 | head -n 300000", nodes=2)]})
        out, _ = self.follow(job).communicate(timeout=PATIENCE)
        self.assertEqual(out.count("0123456789\n"), 600_000)


class Roles(JobTest):
    def test_each_role_has_its_own_command_variables_and_place(self):
        run = self.stream({"env": {"SHARED": "job", "BOTH": "job"}, "roles": [
            shell("echo $PEAL_ROLE-$PEAL_ROLE_RANK $RANK/$WORLD_SIZE $LOCAL_RANK $GROUP_RANK $SHARED $BOTH", name="chief",
                  env={"BOTH": "chief"}),
            shell("echo I am $PEAL_ROLE-$PEAL_ROLE_RANK $RANK/$WORLD_SIZE $LOCAL_RANK $GROUP_RANK $SHARED $BOTH",
                  name="helper", nodes=2, ranks_per_node=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [
            "[chief-0] chief-0 0/5 0 0 job chief",
            "[helper-0:1] I am helper-0 1/5 0 1 job job", "[helper-0:2] I am helper-1 2/5 1 1 job job",
            "[helper-1:3] I am helper-2 3/5 0 2 job job", "[helper-1:4] I am helper-3 4/5 1 2 job job"])

    def test_the_end_of_the_success_role_ends_the_others_and_the_job_succeeds(self):
        run = self.stream({"success_role": "master", "grace": f"{PATIENCE}s", "roles": [
            shell(f"until [ -e {self.path('0')} -a -e {self.path('1')} ]; do sleep 0.05; done; echo done", name="master"),
            shell(f"trap 'echo told to end; exit 0' TERM; touch {self.path('')}/$PEAL_ROLE_RANK; {self.at_gate('never')}",
                  name="worker", nodes=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        for line in ("[master-0] done", "[worker-0] told to end", "[worker-1] told to end"):
            self.assertIn(line, run.stdout.splitlines())
        self.assertEqual(self.status("job")["state"], "succeeded")
        self.assert_no_process()

    def test_a_failure_of_another_role_fails_the_job(self):
        run = self.stream({"success_role": "master", "grace": "1s", "roles": [
            role("sleep", LONG, name="master"), shell("exit 6", name="worker")]})
        self.assertEqual(run.returncode, 6, run.stderr)
        self.assertRegex(run.stderr, r"failed: rank 1 \(worker 0 on localhost\) ended with exit code 6\n\Z")

    def test_a_role_outside_the_world_is_no_rank(self):
        run = self.stream({"roles": [role(FIRST, nodes=2), shell("echo rank:${RANK-no} $PEAL_ROLE-$PEAL_ROLE_RANK", name="judge",
                                                                 in_world=False)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()),
                         ["[judge-0] rank:no judge-0", "[w-0] rank 0 has 6", "[w-1] rank 1 has 6"])


class Variables(JobTest):
    def assert_shown(self, run, expected):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), expected)

    def test_values_of_the_job_file_arrive_byte_for_byte(self):
        self.assert_shown(self.stream({"env": NASTY, "roles": [role(PYTHON, "-c", SHOW, *NASTY)]}), NASTY)

    def test_values_of_the_submission_arrive_byte_for_byte(self):
        self.assert_shown(self.stream({"roles": [role(PYTHON, "-c", SHOW, *NASTY)]}, env=NASTY), NASTY)

    def test_arguments_arrive_byte_for_byte(self):
        run = self.stream({"roles": [role(PYTHON, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *NASTY.values())]})
        self.assert_shown(run, list(NASTY.values()))

    def test_the_role_the_job_and_the_submission_override_each_other_in_this_order(self):
        run = self.stream({"env": {"B": "job", "C": "job"}, "roles": [role(PYTHON, "-c", SHOW, "A", "B", "C", env={"C": "role"})]},
                          env={"A": "shell", "B": "shell", "C": "shell"})
        self.assert_shown(run, {"A": "shell", "B": "job", "C": "role"})

    def test_the_path_of_the_job_finds_the_command(self):
        self.path("own-tool").write_text("#!/bin/sh\necho found\n")
        self.path("own-tool").chmod(0o755)
        run = self.stream({"env": {"PATH": f"{self.folder}:{os.environ['PATH']}"}, "roles": [role("own-tool")]})
        self.assertEqual((run.returncode, run.stdout), (0, "found\n"), run.stderr)

    def test_a_rank_that_submits_a_job_gives_it_no_rank(self):
        inner = self.write({"name": "inner", "roles": [shell("echo $RANK/$WORLD_SIZE $PEAL_ATTEMPT")]}, "inner")
        run = self.stream({"name": "outer", "roles": [
            shell(f"[ $RANK = 0 ] || '{jobs.PEAL}' submit '{inner}' --to local --stream-logs", nodes=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("[w-1] 0/1 0\n", run.stdout)


class Records(JobTest):
    def test_options_that_look_like_secrets_are_not_recorded(self):
        job = self.submit({"roles": [role("sh", "-c", "echo $0 $1")]}, "--", "--api-key=abc123", "--token", "def456")
        self.end_of(job)
        for name in ("submitted.json", "state.json", "end.json", "launcher.log"):
            text = (self.jobs / job / name).read_text()
            self.assertNotRegex(text, "abc123|def456", name)
        self.assertEqual((self.jobs / job / "job.yaml").stat().st_mode & 0o777, 0o600)


if __name__ == "__main__":
    jobs.main()
