"""The programs in examples/python print the expected output on peal. Training programs print the same
losses as on gloo."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from needs import numpy_wanted, torch_wanted
from programs import (EXAMPLES, PATIENCE, example, lines_of, losses_of, output_of, output_on_gloo, peal_run,
                      reserved_port, script_on_ranks)

MNIST = os.environ.get("PEAL_TEST_MNIST", "")


class ArraysTest(unittest.TestCase):
    def test_arrays_are_summed_without_torch(self) -> None:
        self.assertIn("results by rank: [[6.0, 60.0], [6.0, 60.0], [6.0, 60.0]]",
                      output_of(*example("arrays.py"), "--spawn", "3"))


@torch_wanted
class BasicsTest(unittest.TestCase):
    def test_processes_of_torch_multiprocessing_meet_by_every_init_method(self) -> None:
        with tempfile.TemporaryDirectory() as folder, reserved_port() as port, \
                reserved_port() as master_port:
            for place in ("env://", f"tcp://127.0.0.1:{port}", f"file://{folder}/meet"):
                with self.subTest(place=place):
                    text = output_of(*example("first_group.py"), "--ranks", "3", "--init-method",
                                     place, MASTER_PORT=master_port)
                    self.assertEqual(lines_of(text),
                                     [f"rank {r} of 3: the sum of the ones is 3" for r in range(3)])

    def test_a_number_is_sent_blocking_and_asynchronously(self) -> None:
        self.assertEqual(lines_of(peal_run(2, *example("point_to_point.py"))),
                         lines_of("blocking: rank 0 has 1.0\nblocking: rank 1 has 1.0\n"
                                  "non_blocking: rank 0 has 1.0\nnon_blocking: rank 1 has 1.0\n"))

    def test_every_collective_gives_the_right_values(self) -> None:
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                text = script_on_ranks(ranks, EXAMPLES / "collectives.py")
                self.assertEqual(lines_of(text), sorted(expected_of_collectives(ranks)))

    def test_a_ring_by_hand_sums(self) -> None:
        self.assertEqual(
            lines_of(script_on_ranks(3, EXAMPLES / "ring_all_reduce.py")),
            [f"rank {r} has {[3.0 * i + 3 for i in range(5)]}" for r in range(3)])


def expected_of_collectives(n: int) -> list[str]:
    every = range(n)
    values = {
        "broadcast from the last rank": [[n - 1, 10 * (n - 1)]] * n,
        "reduce to rank 0": [[n * (n + 1) // 2, 10 * n * (n + 1) // 2]],
        "scatter from rank 0": [[100 + r] for r in every],
        "gather to rank 0": [[100 + r for r in every]],
        "all_reduce by SUM": [[n * (n + 1) // 2, 10 * n * (n + 1) // 2]] * n,
        "all_reduce by PRODUCT": [[math.factorial(n), 10 ** n * math.factorial(n)]] * n,
        "all_reduce by MAX": [[n, 10 * n]] * n,
        "all_reduce by MIN": [[1, 10]] * n,
        "all_reduce without waiting": [[n * (n + 1) // 2]] * n,
        "reduce_scatter of a list": [[5 * n * (n - 1) + n * r] for r in every],
        "reduce_scatter of a tensor": [[5 * n * (n - 1) + n * r] for r in every],
        "all_gather to a list": [[100 + r for r in every]] * n,
        "all_gather to a tensor": [[100 + r for r in every]] * n,
        "all_to_all of a tensor": [[10 * other + r for other in every] for r in every],
        "all_to_all of a list": [[10 * other + r for other in every] for r in every],
        "all_reduce of ranks 0 and 1": [[3], [3]] + [[r + 1] for r in range(2, n)],
    }
    return [f"{what}: rank {rank} has {' '.join(map(str, has))}"
            for what, by_rank in values.items() for rank, has in enumerate(by_rank)]


@torch_wanted
class TrainingTest(unittest.TestCase):
    def trains_as_on_gloo(self, ranks: int, script: str, *arguments: str) -> None:
        """The losses equal those on gloo, and the last loss is smaller than the first."""
        ours, theirs = (losses_of(script_on_ranks(ranks, EXAMPLES / script, *arguments,
                                                  "--backend", backend))
                        for backend in ("peal", "gloo"))
        self.compare(ranks, ours, theirs)

    def compare(self, ranks: int, ours: dict[str, float], theirs: dict[str, float]) -> None:
        self.assertGreater(len(ours), 0)
        self.assertEqual(sorted(ours), sorted(theirs))
        for where, loss in theirs.items():
            self.assertLessEqual(abs(ours[where] - loss), 1e-6 * abs(loss), where)
        own = [loss for where, loss in ours.items() if where.startswith(f"rank {ranks - 1},")]
        self.assertLess(own[-1], own[0])

    def test_averaging_gradients_by_hand(self) -> None:
        self.trains_as_on_gloo(4, "train_by_hand.py", "--epochs", "2")

    @unittest.skipUnless(MNIST, "PEAL_TEST_MNIST does not name a folder with the files of MNIST")
    def test_averaging_gradients_by_hand_on_mnist(self) -> None:
        self.trains_as_on_gloo(2, "train_by_hand.py", "--epochs", "2", "--data", MNIST)

    def test_an_optimizer_that_averages(self) -> None:
        self.trains_as_on_gloo(2, "train_optimizer.py", "--epochs", "2")

    def test_ddp_with_a_trainer(self) -> None:
        with reserved_port() as port:
            ours, theirs = (losses_of(output(*example("train_ddp.py"), "--epochs", "1",
                                             "--backend", backend, MASTER_PORT=port))
                            for backend, output in (("peal", output_of), ("gloo", output_on_gloo)))
        self.compare(2, ours, theirs)

    def test_the_script_of_a_managed_cluster(self) -> None:
        self.trains_as_on_gloo(2, "train_cluster.py")

    def test_horovods_optimizer_trains_as_one_process(self) -> None:
        script = EXAMPLES / "horovod_mnist.py"
        alone, together = (losses_of(script_on_ranks(ranks, script, "--epochs", "2", "--batch", str(96 // ranks)))
                           for ranks in (1, 2))
        for epoch in range(2):
            loss = alone[f"rank 0, epoch {epoch}"]
            for rank in range(2):
                self.assertLessEqual(abs(together[f"rank {rank}, epoch {epoch}"] - loss), 1e-6 * loss)
        self.assertLess(alone["rank 0, epoch 1"], alone["rank 0, epoch 0"])

    def test_the_benchmark_of_horovods_optimizer(self) -> None:
        for options in ((), ("--fp16-allreduce",), ("--use-adasum",)):
            text = script_on_ranks(2, EXAMPLES / "horovod_benchmark.py", "--batch-size", "2",
                                   "--num-warmup-batches", "1", "--num-iters", "1", *options)
            self.assertRegex(text, r"^[\d.]+ images/s on each rank, [\d.]+ on 2 ranks\n$")

    def test_fully_sharded_training(self) -> None:
        self.trains_as_on_gloo(3, "train_fsdp.py")

    def test_tensor_parallelism(self) -> None:
        self.trains_as_on_gloo(2, "tensor_parallel.py")

    @numpy_wanted  # torch needs it to send objects
    def test_a_pipeline_of_two_stages(self) -> None:
        self.trains_as_on_gloo(2, "pipeline.py")


def ended_after_some_steps(*command: str) -> tuple[str, int]:
    """The output of `peal run` and its exit code, after a SIGTERM at step 3."""
    run = subprocess.Popen([sys.executable, "-m", "peal", "run", "--no-prefix", "--grace", "60",
                            "-n", "2", *command], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, start_new_session=True)
    assert run.stdout is not None
    too_late = threading.Timer(PATIENCE, run.kill)
    too_late.start()
    try:
        seen = ""
        for line in run.stdout:
            seen += line
            if line.startswith("rank 1, step 3"):
                run.send_signal(signal.SIGTERM)
        return seen, run.wait()
    finally:
        too_late.cancel()
        run.kill()
        run.wait()
        run.stdout.close()


@torch_wanted
class CheckpointTest(unittest.TestCase):
    def test_ranks_save_at_sigterm_and_the_next_run_continues(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = [*example("train_until_sigterm.py"), "--checkpoint", f"{folder}/checkpoint"]
            text, code = ended_after_some_steps(*command)
            self.assertEqual(code, 0, text)
            saved = re.findall(r"saved after step (\d+)", text)
            self.assertEqual(len(saved), 1, text)
            step = int(saved[0])
            self.assertGreaterEqual(step, 3)
            self.assertNotIn("killed by signal", text)  # torch's text about the loader's workers
            again = peal_run(2, *command, "--steps", str(step + 2))
            for rank in range(2):
                self.assertIn(f"rank {rank} continues after step {step}", again)
                self.assertIn(f"rank {rank}, step {step + 2}: ", again)
            self.assertIn(f"saved after step {step + 2}", again)

    @numpy_wanted  # torch needs it to send objects
    def test_three_ranks_load_a_checkpoint_that_two_ranks_save(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = EXAMPLES / "sharded_checkpoint.py"
            saved = lines_of(script_on_ranks(2, script, "save", folder))
            loaded = lines_of(script_on_ranks(3, script, "load", folder))
        weights = re.findall(r"rank 0: save, weights of (\d+\.\d{9}) in all", "\n".join(saved))
        self.assertEqual(len(weights), 1, saved)
        self.assertGreater(float(weights[0]), 0)
        for r in range(2):
            self.assertIn(f"rank {r}: save, weights of {weights[0]} in all", saved)
        for r in range(3):
            self.assertIn(f"rank {r}: load, weights of {weights[0]} in all", loaded)


if __name__ == "__main__":
    unittest.main()
