"""The trainer example under signals: it saves, ends with the exit code of the signal, and continues.

Called by ctest with the paths of peal and of the example.
"""
import contextlib
import glob
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

PEAL, TRAINER = sys.argv[1:3]
PATIENCE = 300  # seconds
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PEAL_TERMINAL_WIDTH"}


def children_of(pid):
    direct = []
    for children in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            direct += map(int, pathlib.Path(children).read_text().split())
    return direct + [child for one in direct for child in children_of(one)]


def ranks_of(launcher):
    """The processes below the launcher that run the example."""
    return [pid for pid in children_of(launcher)
            if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(TRAINER)]


@contextlib.contextmanager
def with_patience(run):
    """Kills the run after PATIENCE, or if the body fails: else the test would wait for all its epochs."""
    watchdog = threading.Timer(PATIENCE, run.kill)
    watchdog.start()
    try:
        yield
    except BaseException:
        run.kill()
        raise
    finally:
        watchdog.cancel()


class Stopping(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.arguments = ["--epochs", "100000", "--checkpoints", temporary.name]

    def stopped(self, command, number, to_a_rank=False):
        """The exit code in a shell, and the output, of a run that gets the signal after an epoch."""
        with subprocess.Popen([*command, *self.arguments], env=ENVIRONMENT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run, with_patience(run):
            text = ""
            for line in run.stdout:
                text += line
                if "  loss " in line:
                    break
            else:
                self.fail(f"the run ended, or was killed after {PATIENCE} s, before its first epoch did:\n{text}")
            os.kill(ranks_of(run.pid)[-1] if to_a_rank else run.pid, number)
            text += run.communicate()[0]
        code = run.returncode
        return (code if code >= 0 else 128 - code), text

    def check(self, command, **how):
        """Interrupts a run, and its continuation."""
        for number, begins in ((signal.SIGINT, "epoch 1/"), (signal.SIGTERM, "Training continues after step ")):
            code, text = self.stopped(command, number, **how)
            self.assertEqual(code, 128 + number, text)
            self.assertIn(begins, text.splitlines()[0])
            self.assertIn(f"Interrupted by {number.name} in epoch ", text)
            self.assertIn("run the same command again to continue", text)

    def test_a_signal_to_the_launcher(self):
        self.check([PEAL, "run", "-n", "2", "--grace", "60", TRAINER])

    def test_a_signal_to_a_rank(self):
        self.check([PEAL, "run", "-n", "3", "--grace", "60", TRAINER], to_a_rank=True)

    def test_a_signal_to_a_program_that_starts_its_ranks(self):
        self.check([TRAINER, "--processes", "2"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
