"""The gpt example: its loss curve on a generated text is the golden curve of gpt_loss.txt, on any number
of ranks, and a run that continues from a checkpoint reports the whole curve.

Called by ctest with the programs' paths. PEAL_TEST_ACCEPT=1 writes the golden curve again.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PEAL, GPT = sys.argv[1:3]
GOLDEN = pathlib.Path(__file__).with_name("gpt_loss.txt")
PATIENCE = 300  # seconds
# A model that learns within seconds. In float64, so that all machines agree to many digits; only the
# first random weights are of float32.
SMALL = ["--double", "--steps", "60", "--batch", "12", "--context", "32", "--width", "32", "--heads", "4",
         "--layers", "2", "--report-every", "10"]
TOLERANCE = 1e-4


def train(ranks, *arguments):
    """The loss curve: {step: loss}"""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "curve")
        subprocess.run([PEAL, "run", "-n", str(ranks), GPT, *SMALL, "--report", report, *arguments],
                       env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=PATIENCE, check=True)
        return read(report.read_text())


def read(text):
    return {int(step): float(loss) for step, loss in map(str.split, text.splitlines())}


class LossCurve(unittest.TestCase):
    def assert_golden(self, curve):
        golden = read(GOLDEN.read_text())
        self.assertEqual(list(curve), [step for step in golden if step in curve])
        for step, loss in curve.items():
            self.assertAlmostEqual(loss, golden[step], delta=TOLERANCE, msg=f"step {step}")

    def test_two_ranks_have_the_golden_curve(self):
        curve = train(2)
        if os.environ.get("PEAL_TEST_ACCEPT") == "1":
            GOLDEN.write_text("".join(f"{step} {loss}\n" for step, loss in curve.items()))
        self.assert_golden(curve)
        self.assertEqual(len(curve), 6)
        self.assertLess(curve[60], 0.85 * curve[10], "nothing was learned")

    def test_three_ranks_have_the_golden_curve(self):
        self.assert_golden(train(3))

    def test_a_run_that_continues_with_other_ranks_reports_the_whole_curve(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = train(2, "--checkpoints", folder)
            self.assert_golden(whole)
            shutil.rmtree(pathlib.Path(folder, "step-00000060"))
            self.assertEqual(os.listdir(folder), ["step-00000050"])
            curve = train(1, "--checkpoints", folder)
        self.assert_golden(curve)
        self.assertEqual(list(curve), list(whole))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
