"""The mnist example under `peal run`: what two ranks learn, what is displayed, and the errors of mistakes.

Called by ctest with the programs' paths and the name of one of the classes. Real digits are read
from the folder in PEAL_TEST_MNIST; without it their test ends with SKIPPED.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

PEAL, MNIST = sys.argv[1:3]
FOLDER = os.environ.get("PEAL_TEST_MNIST", "")
PATIENCE = 300  # seconds
SKIPPED = 77  # the exit code that ctest reads as skipped


TWO_RANKS = [PEAL, "run", "-n", "2", MNIST, "--ddp"]
# Sets TERM, because the caller of the tests may not have it.
ONE_CORE_EACH = os.environ | {"OMP_NUM_THREADS": "1", "TERM": "xterm"}


def mnist(*arguments):
    """Runs the two ranks as one program."""
    return subprocess.run([*TWO_RANKS, *arguments], env=ONE_CORE_EACH, timeout=PATIENCE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def mnist_on_a_terminal(columns, *arguments):
    """The output of the two ranks on a terminal of that width."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([*TWO_RANKS, *arguments], env=ONE_CORE_EACH, stdin=subprocess.DEVNULL,
                          stdout=terminal, stderr=terminal), open(screen, "rb", 0) as output:
        os.close(terminal)
        text = b""
        try:
            while piece := output.read(4096):
                text += piece
        except OSError:  # the end of a terminal that no process has open any more
            pass
    return text.decode()


class Digits:
    """Five epochs of data-parallel training on 9,000 digits; 1,000 are held out."""
    arguments = []
    kind = ""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            cls.run_of_both = mnist("--epochs", "5", "--report", str(report), *cls.arguments)
            cls.report = json.loads(report.read_text()) if report.exists() else {}
        print(cls.run_of_both.stdout, cls.report)

    def test_two_ranks_reach_97_percent_on_held_out_digits(self):
        self.assertEqual(self.run_of_both.returncode, 0)
        self.assertEqual((self.report["ranks"], self.report["epochs"]), (2, 5))
        self.assertEqual(self.report["data"], self.kind)
        self.assertGreaterEqual(self.report["accuracy"], 0.97)

    def test_each_epoch_is_one_line_by_rank_0(self):
        lines = self.run_of_both.stdout.splitlines()
        self.assertEqual([line[:len("[0] epoch 1 of 5:")] for line in lines if "epoch" in line],
                         [f"[0] epoch {epoch} of 5:" for epoch in range(1, 6)])
        self.assertEqual([line for line in lines if not line.startswith("[0] ")], [])


class GeneratedDigits(Digits, unittest.TestCase):
    kind = "generated"


@unittest.skipUnless(FOLDER, "PEAL_TEST_MNIST names no folder with MNIST's files")
class RealDigits(Digits, unittest.TestCase):
    arguments = ["--data", FOLDER]
    kind = "mnist-t10k"


class Terminal(unittest.TestCase):
    def test_the_progress_bar_fits_and_each_epoch_ends_with_a_line(self):
        columns = 60
        text = re.sub(r"\x1b\[\w", "", mnist_on_a_terminal(columns, "--steps", "20"))
        rows = re.split(r"[\r\n]+", text)
        bars = [row for row in rows if row.startswith("[0] epoch 1/5 [")]
        self.assertTrue(bars, text)
        self.assertLessEqual(max(map(len, bars)), columns)
        self.assertTrue([row for row in rows if row.startswith("[0] epoch 1 of 5: loss")], text)


class Mistakes(unittest.TestCase):
    def ends_with(self, text, *arguments):
        run = mnist(*arguments)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertRegex(run.stdout, rf"(?m)^\[[01]\] mnist: .*{text}")

    def test_a_batch_that_the_digits_do_not_fill(self):
        self.ends_with("9000 training digits .* use a smaller --batch", "--batch", "9002")

    def test_a_report_that_cannot_be_written(self):
        self.ends_with("cannot write the report", "--steps", "1", "--report", "/nowhere/report")

    def test_a_folder_without_digits(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ends_with("the files of MNIST are not in", "--data", folder)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False).result
    if result.wasSuccessful() and result.skipped:
        print("SKIPPED:", result.skipped[0][1])
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())
