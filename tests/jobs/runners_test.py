"""The same tests for all runners of `peal submit`. docs/runners_table.py makes docs/guide/runners.md from them.

    runners_test.py PEAL FIRST    # FIRST: a program that makes a group
"""
import json
import os
import pathlib
import shlex
import sys

import jobs
from capabilities import shows
from jobs import LONG, MARK, PATIENCE, wait_until
from nasty_values import NASTY, SHOW
from runners import for_each_runner
from secret_places import CommandLines, assert_unseen

FIRST = pathlib.Path(sys.argv[2]).resolve()


class EachRunner:
    def run_to_end(self, job):
        """Runs the job with `--stream-logs` to its end."""
        return self.stream(job, to=self.to)

    def assert_refused(self, capability, job):
        run = self.peal("submit", self.write(job), *self.to)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertIn(self.refuses[capability], run.stderr)

    @shows("submit and status", "logs of one rank", "logs while the job runs")
    def test_a_job_is_submitted_watched_and_followed(self):
        job = self.submit({"roles": [self.shell(f"echo begin $RANK; {self.at_gate()}; echo end $RANK", nodes=2)]}, to=self.to)
        follower = self.start("logs", "-f", job)
        self.assertEqual(sorted([follower.stdout.readline(), follower.stdout.readline()]),
                         ["[w-0] begin 0\n", "[w-1] begin 1\n"])
        status = self.await_state(job, "running")
        self.assertEqual([node["state"] for node in status["nodes"]], ["running"] * 2)
        self.open_gate()
        self.assertEqual(sorted(follower.stdout), ["[w-0] end 0\n", "[w-1] end 1\n"])
        self.assertEqual(follower.wait(PATIENCE), 0)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("succeeded", 0))
        self.assertEqual(self.logs(job, "--rank", 1), "[w-1] begin 1\n[w-1] end 1\n")

    @shows("a group of ranks on several nodes")
    def test_ranks_of_all_nodes_make_a_group(self):
        run = self.run_to_end({"env": {"PATH": f"{jobs.PEAL.parent}:{os.environ['PATH']}"},
                               "roles": [self.role(FIRST, nodes=2, ranks_per_node=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        for rank in range(4):
            self.assertIn(f"rank {rank} has 12\n", run.stdout)

    def test_peal_run_starts_such_ranks_too(self):
        if self.like_it is None:  # the tests of Slurm have an allocation for it; Kubernetes has nothing like it
            return  # not a skip, which would hide the other tests of the runner
        run = self.peal("run", "-n", 4, *self.like_it, FIRST)
        self.assertEqual(run.returncode, 0, run.stderr)
        for rank in range(4):
            self.assertRegex(run.stdout, rf"rank {rank} has 12\n")

    @shows("exit code of the first failure")
    def test_the_first_failure_is_named_and_gives_the_exit_code(self):
        run = self.run_to_end({"grace": "1s", "roles": [self.shell(f"[ $RANK != 1 ] || exit 9; sleep {LONG}", nodes=2)]})
        self.assertEqual(run.returncode, 9, run.stderr)
        self.assertRegex(run.stderr, r"failed: .*w.1.* ended with exit code 9")
        self.assertEqual(self.status("job")["cause"], "program")

    @shows("cancel a running job")
    def test_a_cancelled_job_gives_its_ranks_their_grace_and_leaves_no_process(self):
        saved = self.path("saved")
        background = f"setsid sleep {LONG} &" if self.ends_sessions else ""
        job = self.submit({"grace": f"{PATIENCE}s", "env": {MARK: self.mark}, "roles": [
            self.shell(f"trap 'touch {shlex.quote(str(saved))}; exit 0' TERM; {background} echo ready; "
                       "while :; do sleep 0.1; done")]}, to=self.to)
        wait_until(lambda: "ready" in self.logs(job), "ready")
        self.cancel(job)
        self.assertEqual(self.end_of(job)["state"], "cancelled")
        self.cancel(job)
        self.assertTrue(saved.exists())
        self.assert_no_process()

    @shows("cancel a job that waits")
    def test_a_job_that_waits_has_a_reason_and_can_be_cancelled(self):
        of_job = {name: value for name, value in self.waits.items() if name != "resources"}
        of_role = {name: value for name, value in self.waits.items() if name == "resources"}
        job = self.submit({**of_job, "roles": [self.shell("exit 5", **of_role)]}, to=self.to)
        wait_until(lambda: (seen := self.status(job))["reason"] and seen["state"] in ("queued", "preparing")
                   and "connects" not in seen["reason"], "waiting")
        self.cancel(job)
        self.assertEqual(self.end_of(job)["state"], "cancelled")

    @shows("values byte for byte")
    def test_values_arrive_byte_for_byte(self):
        run = self.run_to_end({"env": NASTY, "roles": [self.role(sys.executable, "-c", SHOW, *NASTY)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout[run.stdout.index("{"):]), NASTY)

    @shows("secret unseen")
    def test_the_secret_and_values_are_where_nobody_else_can_read_them(self):
        with CommandLines() as lines:
            job = self.submit({"env": {"TOKEN": "a-value-of-the-job", MARK: self.mark},
                               "roles": [self.shell(f"echo ready; {self.at_gate()}", nodes=2)]}, to=self.to,
                              env={"OF_THE_SHELL": "a-value-of-the-shell"})
            wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
            secrets = self.secrets()
        self.assertEqual(len(secrets), 1)
        texts = {**self.shown(job), "status": json.dumps(self.status(job)), "logs": self.logs(job)}
        assert_unseen(self, secrets, lines, self.programs, self.folders(), texts, [b"a-value-of-the-job", b"a-value-of-the-shell"])
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "succeeded")

    @shows("files")
    def test_files_are_copied_to_the_nodes(self):
        self.path("data").write_text("content of the file\n")
        job = {"directory": str(self.path("there")), "files": [{"from": "data", "to": "copied"}],
               "roles": [self.role("cat", "copied")]}
        if "files" in self.refuses:
            return self.assert_refused("files", job)
        run = self.run_to_end(job)
        self.assertEqual((run.returncode, run.stdout), (0, "content of the file\n"), run.stderr)

    @shows("time limit")
    def test_a_job_ends_at_its_time_limit(self):
        job = self.submit({"max_run_time": "2s", "grace": "1s", "roles": [self.role("sleep", LONG)]}, to=self.to)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["cause"]), ("cancelled", "time_limit"), status)

    @shows("restarts", "logs of an attempt")
    def test_a_failed_job_starts_again_and_keeps_the_output_of_each_attempt(self):
        mark = shlex.quote(str(self.path("mark")))
        run = self.run_to_end({"restarts": {"most": 1, "first_pause": "100ms"}, "roles": [
            self.shell(f"[ -e {mark} ] && echo second && exit 0; touch {mark}; echo first; exit 1")]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("first", self.logs("job", "--attempt", 0))
        self.assertNotIn("first", self.logs("job"))
        self.assertIn("second", self.logs("job"))

    @shows("roles with their own command")
    def test_roles_have_their_own_commands_in_one_world(self):
        run = self.run_to_end({"roles": [self.shell("echo chief $RANK of $WORLD_SIZE", name="chief"),
                                         self.shell("echo helper $RANK of $WORLD_SIZE", name="helper")]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), ["[chief-0] chief 0 of 2", "[helper-0] helper 1 of 2"])

    @shows("print")
    def test_print_shows_what_is_submitted_and_starts_nothing(self):
        job = {"name": "printed", "directory": str(self.folder), "env": {"TOKEN": "a-value-of-the-job"}, "max_run_time": "1h",
               "labels": {"team": "speech"}, "roles": [self.role("true", nodes=2)]}
        run = self.peal("submit", self.write(job), *self.to, "--print")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertFalse(self.jobs.exists())
        if self.runner == "kubernetes":  # which adds much to what it gets
            return self.assertIn('"kind": "Job"', run.stdout)
        submitted = self.submit(job, to=self.to)
        self.assertEqual(run.stdout.replace("printed-000000", submitted), self.submitted(submitted))
        self.end_of(submitted)


globals().update(for_each_runner(EachRunner))

if __name__ == "__main__":
    jobs.main()
