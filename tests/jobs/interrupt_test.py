"""Signals to `peal submit` while it starts a job: no job runs without its id.

The programs of the engines are scripts that wait for the test.

    interrupt_test.py PEAL
"""
import os
import pathlib
import shlex
import signal
import subprocess
import time

import jobs
from jobs import PATIENCE, JobTest, role, shell, wait_until

GOES_ON = r"(?m)^peal: the job goes on; peal cancel {} ends it$"


def is_pending(pid, number):
    """Whether the process has not received the signal yet. A second one of the same number would not be added."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in pending)


class Interrupt(JobTest):
    def engine(self, name, script):
        """A program that answers only after the gate was opened."""
        path = self.path(f"bin/{name}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat > /dev/null\ntouch {shlex.quote(str(self.path('asked')))}\n"
                        f"{self.at_gate()}\n{script}\n")
        path.chmod(0o755)
        self.environment["PATH"] = f"{path.parent}:{os.environ['PATH']}"

    def submit_in_a_group(self, to, *options):
        """`peal submit` in a process group of its own, as a shell with a terminal starts it."""
        return self.start("submit", self.write({"roles": [role("true", image="any")]}), "--to", to, *options, start_new_session=True)

    def end_of_submission(self, run):
        out, err = run.communicate(timeout=PATIENCE)
        [job] = os.listdir(self.jobs)
        self.assertRegex(err, GOES_ON.format(job))
        return job, out

    def test_ctrl_c_waits_for_the_answer_of_the_engine(self):
        for to, program, script, engine_id in (
                ("slurm", "sbatch", "echo 17", "17"), ("kubernetes", "kubectl", "echo created", None)):
            for options in ((), ("--stream-logs",)):
                with self.subTest((to, options)):
                    self.setUp()
                    self.engine(program, script)
                    run = self.submit_in_a_group(to, *options)
                    self.await_file("asked")
                    os.killpg(run.pid, signal.SIGINT)
                    self.assertRegex(run.stderr.readline(), r"\Apeal: the job is being started; ")
                    self.open_gate()
                    job, out = self.end_of_submission(run)
                    self.assertEqual((run.returncode, out), (128 + signal.SIGINT, "" if options else job + "\n"))
                    self.assertEqual(self.record(job, "submitted.json")["engine_id"], engine_id or job)

    def test_other_signals_wait_too(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self.setUp()
                self.engine("sbatch", "echo 17")
                run = self.submit_in_a_group("slurm")
                self.await_file("asked")
                run.send_signal(number)
                self.open_gate()
                job, out = self.end_of_submission(run)
                self.assertEqual((run.returncode, out), (128 + number, job + "\n"))

    def test_both_signals_of_timeout_are_one_request(self):
        for _ in range(10):
            self.setUp()
            self.engine("sbatch", "echo 17")
            run = self.submit_in_a_group("slurm")
            self.await_file("asked")
            begin = time.monotonic()
            for _ in range(2):
                os.kill(run.pid, signal.SIGTERM)
                wait_until(lambda: not is_pending(run.pid, signal.SIGTERM), "delivered: SIGTERM")
            self.open_gate()
            out, err = run.communicate(timeout=PATIENCE)
            # On a busy machine, more than 1 s may lie between the signals. Then they count as two requests: try again.
            if run.returncode != -signal.SIGTERM or time.monotonic() - begin < 1:
                break
        self.assertEqual((run.returncode, out), (128 + signal.SIGTERM, os.listdir(self.jobs)[0] + "\n"), err)

    def test_a_second_request_ends_the_submission_at_once(self):
        self.engine("sbatch", "echo 17")
        run = self.submit_in_a_group("slurm")
        self.await_file("asked")
        run.send_signal(signal.SIGINT)
        run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, -signal.SIGTERM)

    def test_slurm_knows_a_job_whose_submission_was_killed(self):
        self.engine("sbatch", "echo 17")
        for name, script in (("scontrol", 'echo "JobId=17 JobName=$(cat name) JobState=PENDING Reason=Resources"'),
                             ("scancel", 'echo "$@" >> cancelled')):
            path = self.path(f"bin/{name}")
            path.write_text(f"#!/bin/sh\ncd '{self.folder}'\n[ -e name ] || exit 0\n{script}\n")
            path.chmod(0o755)
        run = self.submit_in_a_group("slurm")
        self.await_file("asked")
        [job] = os.listdir(self.jobs)
        self.assertEqual(self.status(job)["state"], "queued")  # it is being submitted
        run.kill()
        run.communicate()
        self.assertEqual(self.status(job)["state"], "unknown")
        self.path("name").write_text(job)
        self.assertEqual(self.status(job)["engine_state"], "PENDING")
        self.assertIn(" queued (PENDING) ", self.peal("jobs").stdout)
        self.cancel(job)
        self.assertIn(f"--state=PENDING --name={job}\n", self.path("cancelled").read_text())

    def test_an_engine_that_refuses_the_job_leaves_nothing(self):
        self.engine("sbatch", "echo no >&2; exit 1")
        run = self.submit_in_a_group("slurm")
        self.await_file("asked")
        os.killpg(run.pid, signal.SIGINT)
        self.open_gate()
        _, err = run.communicate(timeout=PATIENCE)
        self.assertEqual((run.returncode, os.listdir(self.jobs)), (1, []), err)
        self.assertIn("Slurm says: no", err)

    def test_a_job_on_this_machine_is_announced_although_the_user_has_interrupted_its_start(self):
        path = self.write({"roles": [shell(self.at_gate())]})
        self.jobs.mkdir()
        run = subprocess.Popen([jobs.PEAL, "submit", path, "--to", "local"], text=True, cwd=self.folder,
                               env={**os.environ, **self.environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.close, run)
        wait_until(lambda: run.poll() is not None or any(not name.startswith(".") for name in os.listdir(self.jobs)),
                   "submitted")
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=PATIENCE)
        # On a busy machine, the submission may have ended before, or have written the id already.
        self.assertIn(run.returncode, (0, 128 + signal.SIGINT, -signal.SIGINT), err)
        [job] = os.listdir(self.jobs)
        self.assertEqual(out, job + "\n")
        self.await_state(job, "running")
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "succeeded")


if __name__ == "__main__":
    jobs.main()
