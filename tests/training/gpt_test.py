"""The gpt example: its loss curve on a generated text is the golden curve of gpt_loss.txt, on any number
of ranks. A run that continues from a checkpoint reports the whole curve, also with more steps.

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
SMALL = ["--double", "--batch", "12", "--context", "32", "--width", "32", "--heads", "4", "--layers", "2"]
TOLERANCE = 1e-4


def run(ranks, *arguments, steps=60, report_every=10):
    """The loss curve, {step: loss}, and the output."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "curve")
        done = subprocess.run([PEAL, "run", "-n", str(ranks), GPT, *SMALL, "--steps", str(steps),
                               "--report-every", str(report_every), "--report", report, *arguments],
                              env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=PATIENCE, check=True,
                              stdout=subprocess.PIPE, text=True)
        print(done.stdout)
        return read(report.read_text()), done.stdout


def train(*arguments, **how):
    return run(*arguments, **how)[0]


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

    def test_a_point_whose_steps_are_before_and_after_a_checkpoint_averages_all_of_them(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = train(2, "--checkpoints", folder, report_every=20)
            shutil.rmtree(pathlib.Path(folder, "step-00000060"))
            curve = train(1, "--checkpoints", folder, report_every=20)
        golden = read(GOLDEN.read_text())
        for of_run in (whole, curve):
            self.assertEqual(list(of_run), [20, 40, 60])
            self.assertAlmostEqual(of_run[60], (golden[50] + golden[60]) / 2, delta=TOLERANCE)

    def test_a_complete_run_continues_with_more_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            first, text = run(2, "--checkpoints", folder, steps=20)
            self.assertIn("Training is complete after step 20. "
                          f"The checkpoint is in {folder}/step-00000020.\n", text)
            self.assertNotIn("Stopped", text)
            again, text = run(2, "--checkpoints", folder, steps=20)
            self.assertEqual(again, first)
            self.assertIn(f"Training is complete already, after step 20 in {folder}/step-00000020. "
                          "To train longer, increase --steps, which is 20\n", text)
            curve, text = run(3, "--checkpoints", folder, steps=40)
        self.assertIn(f"Training continues after step 20 in {folder}/step-00000020\n", text)
        self.assertEqual(list(curve), [10, 20, 30, 40])
        self.assertLess(curve[40], curve[20])

    def test_a_run_takes_exactly_its_steps_also_around_the_end_of_an_epoch(self):
        with tempfile.TemporaryDirectory() as folder:
            for steps in (1, 2, 49, 50, 51):
                curve, text = run(2, "--checkpoints", folder, steps=steps, report_every=1)
                self.assertEqual(list(curve), list(range(1, steps + 1)))
                self.assertIn(f"Training is complete after step {steps}. ", text)
                again, text = run(1, "--checkpoints", folder, steps=steps, report_every=1)
                self.assertEqual(again, curve)
                self.assertIn(f"Training is complete already, after step {steps} in ", text)

    def test_a_run_that_was_stopped_continues_with_more_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = train(2, "--checkpoints", folder)
            shutil.rmtree(pathlib.Path(folder, "step-00000060"))
            curve, text = run(2, "--checkpoints", folder, steps=80)
        self.assertIn(f"Training continues after step 50 in {folder}/step-00000050\n", text)
        self.assertEqual(list(curve), [10, 20, 30, 40, 50, 60, 70, 80])
        self.assertEqual({step: curve[step] for step in list(whole)[:5]},
                         {step: whole[step] for step in list(whole)[:5]})


class Options(unittest.TestCase):
    def test_wrong_options_are_refused(self):
        for option, value, text in (("--steps", "0", "--steps: Value 0 not in range 1 to 2147483647"),
                                    ("--checkpoints", "", "--checkpoints: is empty"),
                                    ("--width", "385", "--width: is not a multiple of --heads")):
            done = subprocess.run([GPT, option, value], stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (2, text))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
