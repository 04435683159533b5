"""Starts `peal bench` for a test: its folder, its environment, its end, and the files and processes that remain."""
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)  # the first argument of every test that imports this module
PATIENCE = 300  # seconds
QUICK = ["--rounds", "1", "--seconds", "0.02"]

# A worker that greets like gloo's, and answers its first command with `ANSWER`, or ends.
PEER = """#!{python}
import socket, sys, time
if sys.argv[1] == "-c": sys.exit(0)  # "is there torch?"
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[3])
connection.sendall(f"hello gloo {{sys.argv[6]}} a broken one\\n".encode())
connection.makefile("r").readline()
{answer}
time.sleep(60)
"""


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "tmp").mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.folder / "tmp")}

    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, "bench", *arguments], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def start_quick(self, *arguments):
        return self.start(*arguments, *QUICK, "--json", str(self.folder / "results.jsonl"))

    def end_of(self, quick):
        """(exit code, stdout, stderr, results)"""
        out, err = quick.communicate(timeout=PATIENCE)
        path = self.folder / "results.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return quick.returncode, out, err, [json.loads(line) for line in lines]

    def bench(self, *arguments):
        """(exit code, stdout, stderr, results)"""
        return self.end_of(self.start_quick(*arguments))

    def break_gloo(self, answer):
        """From now on gloo's workers run this code instead of answering."""
        script = self.folder / "python"
        script.write_text(PEER.format(python=sys.executable, answer=answer))
        script.chmod(0o700)
        self.environment["PEAL_BENCH_PYTHON"] = str(script)

    def worker(self, backend, name=None):
        """The pid of a worker process of the backend, which may have another name."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_text().split("\0")
            except OSError:  # the process has just ended
                continue
            is_ours = any(word.startswith(str(self.folder)) for word in words)
            if is_ours and words[1:4] == ["bench-worker", backend, name or backend]:
                return int(path.parent.name)
        self.fail(f"no process is a worker of {name or backend}")

    def assert_nothing_is_left(self):
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        mark = f"TMPDIR={self.folder}".encode()
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                self.assertNotIn(mark, path.read_bytes(), path)
            except OSError:  # the process has just ended, or belongs to another user
                pass

    def stderr_says(self, process, text):
        """The stderr of a running process, as soon as it contains `text`."""
        deadline = time.monotonic() + PATIENCE
        said = b""
        while text.encode() not in said:
            ready, _, _ = select.select([process.stderr], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(process.stderr.fileno(), 1 << 16) if ready else b""
            if not more:
                self.fail(f"stderr never contained {text!r}, only {said.decode()!r}")
            said += more
        return said.decode()

    def soon(self, check):
        """Repeats the check until it passes."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return check()
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
