"""The life of a job on this machine: submitted, seen from elsewhere, streamed, cancelled, and left by its launcher.

    life_test.py PEAL
"""
import os
import pty
import signal
import subprocess
import tempfile

import jobs
from jobs import LONG, PATIENCE, JobTest, role, shell, wait_until

CANCELLED, TIMED_OUT, INTERRUPTED = 143, 124, 130


class Submit(JobTest):
    def test_the_id_is_the_output_and_the_next_commands_are_shown(self):
        run = self.peal("submit", self.write({"name": "My job_1", "roles": [role("true")]}), "--to", "local")
        self.assertEqual(run.returncode, 0, run.stderr)
        job = run.stdout.removesuffix("\n")
        self.assertRegex(job, r"\Amy-job-1-\w{6}\Z")
        self.assertEqual(run.stderr, f"peal: submitted {job}; see it with\n  peal status {job}\n  peal logs -f {job}\n")
        self.assertEqual(self.end_of(job)["state"], "succeeded")

    def test_a_job_is_known_by_the_beginning_of_its_id_from_any_shell_and_folder(self):
        job = self.submit({"roles": [shell(f"echo hello; {self.at_gate()}", nodes=2)]})
        self.await_state(job, "running")
        command = ["env", "-i", f"PEAL_JOBS_DIR={self.jobs}", jobs.PEAL]
        status = subprocess.run([*command, "status", job[:5]], cwd="/", text=True, stdout=subprocess.PIPE, check=True)
        self.assertRegex(status.stdout, rf"\Ajob +{job}\nstate +running\nrunner +local\nsubmitted +[-\d: ]+ on \S+\n\n"
                                        r"node +state +exit +host +reason\n"
                                        r"w-0 +running +- +localhost\nw-1 +running +- +localhost\n\Z")
        listed = subprocess.run([*command, "jobs"], cwd="/", text=True, stdout=subprocess.PIPE, check=True)
        self.assertRegex(listed.stdout, rf"(?m)^{job} +running +local +2 ")
        logs = subprocess.Popen([*command, "logs", "-f", job], cwd="/", text=True, stdout=subprocess.PIPE)
        self.assertEqual(sorted([logs.stdout.readline(), logs.stdout.readline()]), ["[w-0] hello\n", "[w-1] hello\n"])
        self.open_gate()
        self.assertEqual((logs.communicate()[0], logs.returncode), ("", 0))
        ended = subprocess.run([*command, "status", job], cwd="/", text=True, stdout=subprocess.PIPE, check=True)
        self.assertRegex(ended.stdout, r"(?m)^state +succeeded$")
        self.assertRegex(ended.stdout, r"(?m)^exit code +0$")

    def test_records_are_for_the_user_only(self):
        job = self.submit({"roles": [role("true")]})
        self.end_of(job)
        self.assertEqual((self.jobs / job).stat().st_mode & 0o777, 0o700)
        for path in (self.jobs / job).rglob("*"):
            if path.is_file():
                self.assertEqual(path.stat().st_mode & 0o077, 0, path)

    def test_commands_start_where_the_job_was_submitted_or_in_its_directory(self):
        with tempfile.TemporaryDirectory(prefix="with space ") as folder:
            os.mkdir(f"{folder}/below")
            here = self.stream({"roles": [role("pwd")]}, cwd=folder)
            self.assertEqual((here.returncode, here.stdout), (0, f"{folder}\n"), here.stderr)
            below = self.stream({"directory": "below", "roles": [role("pwd")]}, cwd=folder)
            self.assertEqual((below.returncode, below.stdout), (0, f"{folder}/below\n"), below.stderr)

    def test_arguments_of_the_command_line_reach_the_program(self):
        run = self.stream({"roles": [role("printf", "<%s>", "a b")]}, "--", "--lr", "0.1 $x", "")
        self.assertEqual((run.returncode, run.stdout), (0, "<a b><--lr><0.1 $x><>\n"), run.stderr)

    def test_the_path_of_a_role_finds_its_command(self):
        run = self.stream_with_paths(to=("--to", "local"))
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())),
                         (0, ["[a-0] the tool of a", "[b-0] the tool of b"]), run.stderr)

    def test_many_jobs_at_the_same_time_have_their_own_ids_and_ports(self):
        ids = [self.submit({"roles": [shell(f"echo $MASTER_PORT; {self.at_gate()}")]}) for _ in range(4)]
        for job in ids:
            wait_until(lambda: self.logs(job), f"output of {job}")
        self.assertEqual(len({self.logs(job) for job in ids}), 4)
        self.open_gate()
        self.assertEqual({self.end_of(job)["state"] for job in ids}, {"succeeded"})


class Terminal(JobTest):
    """What happens to a job when the shell that has submitted it ends."""

    def assert_it_goes_on(self, job):
        self.await_state(job, "running")
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "succeeded")

    def test_a_job_survives_the_terminal_of_its_submission(self):
        path = self.write({"roles": [shell(f"echo ready; {self.at_gate()}")]})
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.environ.update(self.environment)
            os.execl(jobs.PEAL, "peal", "submit", path, "--to", "local", "--stream-logs")
        output = b""
        while b"ready" not in output:
            output += os.read(terminal, 4096)
        os.close(terminal)  # the kernel sends SIGHUP to the processes of the terminal
        self.assertTrue(os.WIFSIGNALED(os.waitpid(pid, 0)[1]))
        self.assert_it_goes_on("job")

    def test_a_job_survives_its_shell_and_the_signals_of_its_group(self):
        path = self.write({"roles": [shell(f"echo ready; {self.at_gate()}")]})
        shell_process = subprocess.Popen(["sh", "-c", f"'{jobs.PEAL}' submit '{path}' --to local; sleep {LONG}"],
                                         env={**os.environ, **self.environment}, start_new_session=True, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        job = shell_process.stdout.readline().strip()
        self.await_state(job, "running")
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(shell_process.pid, number)
            except ProcessLookupError:
                pass  # the group has ended
        shell_process.communicate()
        self.assert_it_goes_on(job)

    def test_a_reader_of_the_output_may_leave(self):
        stream = self.start("submit", self.write({"roles": [shell(f"echo ready; {self.at_gate()}; yes | head -9999")]}),
                            "--to", "local", "--stream-logs")
        self.assertEqual(stream.stdout.readline(), "ready\n")
        stream.stdout.close()
        self.assert_it_goes_on("job")
        stream.wait(PATIENCE)

    def test_signals_that_the_shell_ignores_reach_the_ranks(self):
        path = self.write({"roles": [role("grep", "SigIgn", "/proc/self/status")]})
        run = self.peal("-c", f"trap '' INT QUIT HUP USR1; '{jobs.PEAL}' submit '{path}' --to local --stream-logs",
                        program="sh")
        self.assertEqual(run.returncode, 0, run.stderr)
        ignored = int(run.stdout.split()[1], 16)
        self.assertEqual(ignored & 0x7FFFFFFF, 0, run.stdout)  # without the signals 32 and 33 of the C library

    def test_the_ranks_have_no_terminal_and_read_nothing(self):
        run = self.stream({"roles": [shell("cat; ls /proc/$$/fd; tty; ps -o tty= $$", nodes=2)]})
        for node in ("w-0", "w-1"):
            lines = [line.removeprefix(f"[{node}] ") for line in run.stdout.splitlines() if line.startswith(f"[{node}]")]
            self.assertEqual(lines, ["0", "1", "2", "not a tty", "?"], run.stderr)


class Stream(JobTest):
    def test_the_exit_code_is_that_of_the_job(self):
        for what, fields, code, state in (
                ("success", shell("exit 0"), 0, "succeeded"),
                ("a code of the program", shell("exit 7"), 7, "failed"),
                ("a code as of a time limit", shell("exit 124"), 124, "failed"),
                ("a code as of a cancelled job", shell("exit 143"), 143, "failed"),
                ("a signal", shell("kill -KILL $$"), 137, "failed"),
                ("a fault", shell("kill -SEGV $$"), 139, "failed"),
                ("the first failure of several", shell("[ $RANK = 1 ] && exit 9; sleep 100", nodes=3), 9, "failed")):
            with self.subTest(what):
                run = self.stream({"name": "j" + str(code), "grace": "1s", "roles": [fields]})
                self.assertEqual(run.returncode, code, run.stderr)
                words = rf"j{code}-\w+ {state}" + ("" if code == 0 else ": .+")
                self.assertRegex(run.stderr, rf"(?m)^peal: {words}$")
                jobs_of_code = [job for job in os.listdir(self.jobs) if job.startswith(f"j{code}-")]
                self.assertEqual({self.status(job)["state"] for job in jobs_of_code}, {state})

    def test_a_job_that_runs_too_long_is_cancelled(self):
        run = self.stream({"max_run_time": "1s", "roles": [role("sleep", LONG, nodes=2)]})
        self.assertEqual(run.returncode, TIMED_OUT, run.stderr)
        self.assertRegex(run.stderr, r"(?m)^peal: job-\w+ cancelled: it ran longer than max_run_time, 1 s$")
        status = self.status("job")
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", TIMED_OUT))
        self.assert_no_process()

    def test_a_job_that_is_cancelled_elsewhere_ends_the_stream(self):
        stream = self.start("submit", self.write({"roles": [shell(f"echo ready; sleep {LONG}")]}), "--to", "local",
                            "--stream-logs")
        self.assertEqual(stream.stdout.readline(), "ready\n")
        self.cancel("job")
        out, err = stream.communicate(timeout=PATIENCE)
        self.assertEqual((stream.returncode, out), (CANCELLED, ""))
        self.assertRegex(err, r"(?m)^peal: job-\w+ cancelled: ")

    def test_ctrl_c_leaves_the_job_running(self):
        for arguments in (["submit", self.write({"roles": [shell(f"echo ready; {self.at_gate()}")]}), "--to", "local",
                           "--stream-logs"], ["logs", "-f", "job"]):
            stream = self.start(*arguments)
            self.assertEqual(stream.stdout.readline(), "ready\n")
            stream.send_signal(signal.SIGINT)
            _, err = stream.communicate(timeout=PATIENCE)
            self.assertEqual(stream.returncode, INTERRUPTED, err)
            self.assertRegex(err, r"(?m)^peal: the job goes on; peal cancel job-\w+ ends it$")
            self.await_state("job", "running")
        self.open_gate()
        self.assertEqual(self.end_of("job")["state"], "succeeded")


class Cancel(JobTest):
    def test_ranks_are_asked_to_end_and_a_second_request_changes_nothing(self):
        job = self.submit({"roles": [shell(f"trap 'echo saved; exit 0' TERM; echo ready; {self.at_gate('never')}",
                                           nodes=2)]})
        wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
        for _ in range(2):
            self.assertIn(self.cancel(job), {f"{job} is being cancelled\n", f"{job} has ended already: cancelled\n"})
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", CANCELLED))
        self.assertIn("cancelled", status["reason"])
        self.assertEqual(self.logs(job).count("saved"), 2)
        self.assertEqual(self.cancel(job), f"{job} has ended already: cancelled\n")
        self.assertEqual(self.status(job), status)
        self.assert_no_process()

    def test_a_rank_that_ignores_the_request_is_killed_after_the_grace(self):
        job = self.submit({"grace": "500ms", "roles": [shell(
            f"trap '' TERM; setsid sleep {LONG} & echo ready; while :; do sleep 1; done")]})
        wait_until(lambda: self.logs(job), "ready")
        self.cancel(job)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", CANCELLED))
        self.assert_no_process()

    def test_a_job_is_cancelling_until_its_ranks_have_saved(self):
        job = self.submit({"grace": f"{PATIENCE}s", "roles": [shell(
            f"trap '{self.at_gate()}; exit 0' TERM; echo ready; while :; do sleep 0.1; done")]})
        wait_until(lambda: self.logs(job), "ready")
        self.cancel(job)
        self.assertEqual(self.status(job)["state"], "cancelling")
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "cancelled")

    def test_a_job_that_ends_well_by_itself_is_not_called_cancelled_later(self):
        job = self.submit({"roles": [role("true")]})
        self.end_of(job)
        self.assertEqual(self.cancel(job), f"{job} has ended already: succeeded\n")
        self.assertFalse((self.jobs / job / "cancel.json").exists())

    def test_several_jobs_at_once(self):
        ids = [self.submit({"roles": [role("sleep", LONG)]}) for _ in range(2)]
        run = self.peal("cancel", *ids)
        self.assertEqual((run.returncode, run.stdout.count("is being cancelled")), (0, 2), run.stderr)
        self.assertEqual({self.end_of(job)["state"] for job in ids}, {"cancelled"})

    def test_an_unknown_id_beside_a_known_one_cancels_nothing(self):
        job = self.submit({"roles": [shell(self.at_gate())]})
        run = self.peal("cancel", job, "no-such-job")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertFalse((self.jobs / job / "cancel.json").exists())
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "succeeded")


class Launcher(JobTest):
    def start_long(self):
        job = self.submit({"grace": "500ms", "roles": [shell(
            f"trap '' TERM; setsid sleep {LONG} & echo ready; while :; do sleep 1; done", nodes=2)]})
        wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
        self.await_state(job, "running")
        return job

    def test_a_launcher_that_is_killed_leaves_a_failed_job_and_no_process(self):
        job = self.start_long()
        launcher = self.launcher_of(job)
        follower = self.start("logs", "-f", job)
        os.kill(launcher, signal.SIGKILL)
        status = self.end_of(job)
        self.assertEqual((status["state"], {node["state"] for node in status["nodes"]}), ("failed", {"failed"}))
        self.assertRegex(status["first_failure"], rf"^its launcher \(pid {launcher} on \S+\) is gone$")
        self.assertEqual(self.peal("status", job).stdout.count("is gone"), 1)
        self.assertEqual((follower.communicate(timeout=PATIENCE)[1], follower.returncode),
                         (f"peal: {job} failed: {status['first_failure']}\n", 0))
        self.assert_no_process()
        self.assertEqual(self.cancel(job), f"{job} has ended already: failed\n")

    def test_a_stream_of_a_job_whose_launcher_is_killed_fails(self):
        stream = self.start("submit", self.write({"roles": [shell(f"echo ready; sleep {LONG}")]}), "--to", "local",
                            "--stream-logs")
        stream.stdout.readline()
        os.kill(self.launcher_of(self.status("job")["id"]), signal.SIGKILL)
        _, err = stream.communicate(timeout=PATIENCE)
        self.assertEqual(stream.returncode, 1)
        self.assertRegex(err, r"(?m)^peal: job-\w+ failed: its launcher \(pid \d+ on \S+\) is gone$")

    def test_a_launcher_that_gets_a_signal_ends_the_job_and_says_so(self):
        job = self.start_long()
        os.kill(self.launcher_of(job), signal.SIGTERM)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("failed", CANCELLED))
        self.assertRegex(status["first_failure"], r"^[^\n]*ended by SIGTERM[^\n]*$")
        self.assertNotIn("peal:", status["first_failure"])
        self.assert_no_process()

    def test_a_launcher_that_is_stopped_for_a_while_keeps_its_job(self):
        job = self.submit({"roles": [shell(f"echo ready; {self.at_gate()}")]})
        wait_until(lambda: self.logs(job), "ready")
        launcher = self.launcher_of(job)
        os.kill(launcher, signal.SIGSTOP)
        self.cancel(job)
        self.assertEqual(self.status(job)["state"], "cancelling")
        os.kill(launcher, signal.SIGCONT)
        self.assertEqual(self.end_of(job)["state"], "cancelled")


if __name__ == "__main__":
    jobs.main()
