"""What the tests of submitted jobs share: a folder of jobs for each test, the commands of peal, and waiting.

A job of a test waits for files that the test makes, and a test waits for states and output: no test depends on time.
"""
import itertools
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import secret_places
import ssh_hosts

PEAL = pathlib.Path(sys.argv[1]).resolve()
PATIENCE = 60  # seconds
LONG = 100_000  # seconds: a process that ends only because it is ended
MARK = "PEAL_TEST_JOBS"  # in the environment of all processes of a test
NUMBERS = itertools.count()



def wait_until(condition, what, patience=PATIENCE):
    """The first true result of condition()."""
    end = time.monotonic() + patience
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after {patience} s: not {what() if callable(what) else what}")
        time.sleep(0.03)
    return result


def role(*command, name="w", **fields):
    return {"name": name, "command": [str(word) for word in command], **fields}


def shell(script, **fields):
    return role("sh", "-c", script, **fields)


def environment_of(pid):
    """Empty if the process is gone, or is a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


class JobTest(unittest.TestCase):
    """Jobs on this machine. With `hosts`, peal runs on the host `launcher` of these hosts."""
    maxDiff = None
    hosts = None
    prefix = "peal-jobs-test-"  # of the folder's name

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=self.prefix)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.jobs = self.folder / "jobs"
        self.mark = f"{os.getpid()}-{next(NUMBERS)}"
        self.environment = {"PEAL_JOBS_DIR": str(self.jobs), MARK: self.mark}
        self.addCleanup(self.end_all_processes)

    # Commands.

    def peal(self, *arguments, cwd=None, env=None, program=PEAL):
        run = self.start(*arguments, cwd=cwd, env=env, program=program)
        out, err = run.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(arguments, run.returncode, out, err)

    def start(self, *arguments, cwd=None, env=None, program=PEAL, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                   "errors": "backslashreplace", "cwd": cwd or self.folder, **options}
        words = [program, *map(str, arguments)]
        environment = {**self.environment, **(env or {})}
        if self.hosts:
            run = self.hosts.popen(words, env=environment, **options)
        else:
            run = subprocess.Popen(words, env={**os.environ, **environment}, **options)
        self.addCleanup(self.close, run)
        return run

    @staticmethod
    def close(run):
        if run.poll() is None:
            run.kill()
        run.wait()
        for pipe in (run.stdout, run.stderr):
            if pipe:
                pipe.close()

    def write(self, job, name="job"):
        """Writes the job file: a text as it is, or fields as JSON. Returns its path."""
        path = self.folder / f"{name}.yaml"
        path.write_text(job if isinstance(job, str) else json.dumps(job))
        return path

    def submit(self, job, *options, to=("--to", "local"), **popen):
        """Returns the id."""
        run = self.peal("submit", self.write(job), *to, *options, **popen)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.strip()

    def stream(self, job, *options, to=("--to", "local"), **popen):
        """The job to its end, in the foreground."""
        return self.peal("submit", self.write(job), *to, "--stream-logs", *options, **popen)

    def stream_with_paths(self, to):
        """Runs a job whose roles have the same command, and different folders in their PATH."""
        for name in ("a", "b"):
            tool = self.folder / name / "tool"
            tool.parent.mkdir()
            tool.write_text(f"#!/bin/sh\necho the tool of {name}\n")
            tool.chmod(0o755)
        return self.stream({"roles": [role("tool", name=name, env={"PATH": f"{self.folder / name}:/usr/bin:/bin"})
                                      for name in ("a", "b")]}, to=to)

    def status(self, job):
        run = self.peal("status", "--json", job)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def await_state(self, job, *states):
        """Waits for one of the states, and returns the status."""
        return wait_until(lambda: (status := self.status(job))["state"] in states and status,
                          lambda: f"{states}: {self.status(job)}")

    def end_of(self, job):
        return self.await_state(job, "succeeded", "failed", "cancelled")

    def logs(self, job, *options, **popen):
        run = self.peal("logs", job, *options, **popen)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def cancel(self, job):
        run = self.peal("cancel", job)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def record(self, job, name):
        return json.loads((self.jobs / job / name).read_text())

    def launcher_of(self, job):
        return self.record(job, "state.json")["launcher"]["pid"]

    # The job and its test talk by files.

    def path(self, name):
        return self.folder / name

    def await_file(self, name):
        wait_until(self.path(name).exists, f"made by the job: {name}")

    def open_gate(self, name="go"):
        self.path(name).touch()

    def at_gate(self, name="go"):
        """For the shell: waits for open_gate(name)."""
        return f"until [ -e {shlex.quote(str(self.path(name)))} ]; do sleep 0.05; done"

    # Processes.

    def processes(self):
        """The numbers of all processes of this test's jobs, on any host."""
        mark = f"{MARK}={self.mark}\0".encode()
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and mark in environment_of(name) + b"\0"]

    def secrets(self):
        """The secrets of this test's running jobs."""
        return secret_places.secrets_of(map(environment_of, self.processes()))

    def assert_no_process(self):
        wait_until(lambda: not self.processes(), f"gone: the processes {self.processes()}")

    def end_all_processes(self):
        """Also after a failed test."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + (10 if number == signal.SIGTERM else 0)
            left = self.processes()
            for pid in left:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            while self.processes() and time.monotonic() < end:
                time.sleep(0.03)
        wait_until(lambda: not self.processes(), "killed")


def main(why_not=None):
    """`why_not`: the reason, if no test can run here."""
    if why_not:
        print("SKIPPED:", why_not)
        sys.exit(ssh_hosts.SKIPPED)
    result = unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[2:] if "/" not in word],
                           exit=False).result
    if result.wasSuccessful() and result.skipped:
        print("SKIPPED:", result.skipped[0][1])
        sys.exit(ssh_hosts.SKIPPED)
    sys.exit(not result.wasSuccessful())
