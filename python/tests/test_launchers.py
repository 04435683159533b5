"""Each installed launcher starts ranks, with torch scripts and with groups of the package peal. Ranks
read their rank and size from the environment."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

from needs import torch_wanted
from programs import EXAMPLES, example, lines_of, losses_of, output_of, peal_run

SUMS = {1: "[1.0, 10.0]", 2: "[3.0, 30.0]", 3: "[6.0, 60.0]"}
SLURM_CLUSTER = Path(__file__).resolve().parents[2] / "tests/engines/slurm_cluster.py"
CPP_EXAMPLE = Path(os.environ.get("PEAL_CPP_EXAMPLES", ""), "first")

# Rank 0 serves torch's store, each time a new store at the same address. In every second round the
# ranks disagree.
MEET_AND_LEAVE = """
import os
import torch
import torch.distributed as dist

def sockets():
    return sum(os.readlink(one.path).startswith("socket:") for one in os.scandir("/proc/self/fd"))

before = sockets()
failed = 0
for k in range(8):
    dist.init_process_group("peal")
    rank = dist.get_rank()
    try:
        data = torch.ones(4 + rank * (k % 2))
        dist.all_reduce(data)
        assert data.tolist() == [dist.get_world_size()] * 4
        dist.destroy_process_group()
    except dist.DistBackendError:
        failed += 1
        dist.destroy_process_group()
print(f"rank {rank} left, {failed} times after an error, with {sockets() - before} sockets")
"""


def arrays(ranks: int) -> list[str]:
    """The output of examples/python/arrays.py."""
    everyone = ", ".join(f"rank {r}" for r in range(ranks))
    return [f"rank {r} of {ranks}: sum {SUMS[ranks]}, left of it is {(r - 1) % ranks}, "
            f"all are {everyone}" for r in range(ranks)]


def torchrun(*command: str | Path) -> str:
    """The output of two ranks, each from its own file. Under torchrun, Python writes a line and its
    end separately, so lines of ranks on one stdout could mix."""
    with tempfile.TemporaryDirectory() as folder:
        output_of(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                  "2", "--redirects", "1", "--log-dir", folder, *command)
        return "".join(file.read_text() for file in sorted(Path(folder).rglob("stdout.log")))


def installed(program: str) -> Callable[[Any], Any]:
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


def why_no_cluster() -> str:
    """Why this machine cannot have the cluster of SLURM_CLUSTER; empty if it can."""
    if not SLURM_CLUSTER.is_file():
        return f"{SLURM_CLUSTER} does not exist"
    sys.path.insert(0, str(SLURM_CLUSTER.parent))
    try:
        return str(importlib.import_module("slurm_cluster").why_not() or "")
    finally:
        sys.path.pop(0)


class LaunchersTest(unittest.TestCase):
    def check_training(self, text: str) -> None:
        losses = losses_of(text)
        self.assertEqual({where.split(",")[0] for where in losses}, {"rank 0", "rank 1"})
        self.assertLess(losses["rank 0, step 30"], losses["rank 0, step 0"])

    def test_peal_run_starts_arrays(self) -> None:
        self.assertEqual(lines_of(peal_run(3, *example("arrays.py"))), arrays(3))

    def test_peal_run_starts_a_script_by_its_name_in_this_python(self) -> None:
        self.assertEqual(lines_of(peal_run(3, example("arrays.py")[1])), arrays(3))

    def test_horovodrun_starts_a_script_in_this_python(self) -> None:
        horovodrun = Path(sys.executable).with_name("horovodrun")
        text = output_of(horovodrun, "-np", "3", "python3", example("arrays.py")[1])
        expected = [f"[{rank}]<stdout>:{line}" for rank, line in enumerate(arrays(3))]
        self.assertEqual(lines_of(text), expected)

    @torch_wanted
    def test_peal_run_starts_a_script_of_torch(self) -> None:
        self.check_training(peal_run(2, *example("train_cluster.py")))

    @torch_wanted
    def test_ranks_that_leave_can_meet_again_at_once(self) -> None:
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                text = peal_run(ranks, sys.executable, "-c", MEET_AND_LEAVE)
                self.assertEqual(lines_of(text), [
                    f"rank {r} left, 4 times after an error, with 0 sockets" for r in range(ranks)])

    @torch_wanted
    def test_torchrun_starts_arrays(self) -> None:
        self.assertEqual(lines_of(torchrun(EXAMPLES / "arrays.py")), arrays(2))

    @torch_wanted
    def test_torchrun_starts_a_script_of_torch(self) -> None:
        self.check_training(torchrun(EXAMPLES / "train_cluster.py"))

    def test_one_rank_needs_no_launcher(self) -> None:
        self.assertEqual(lines_of(output_of(*example("arrays.py"))), arrays(1))

    @installed("mpirun.openmpi")
    def test_mpirun_of_open_mpi_starts_arrays(self) -> None:
        text = output_of("mpirun.openmpi", "--oversubscribe", "-n", "3", *example("arrays.py"),
                         OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.assertEqual(lines_of(text), arrays(3))

    @installed("mpirun.mpich")
    def test_mpirun_of_mpich_starts_arrays(self) -> None:
        self.assertEqual(lines_of(output_of("mpirun.mpich", "-n", "3", *example("arrays.py"))),
                         arrays(3))

    @unittest.skipIf(why_no_cluster(), why_no_cluster())
    def test_srun_starts_arrays(self) -> None:
        self.assertEqual(
            lines_of(output_of("python3", "-B", SLURM_CLUSTER, "--nodes", "1", "--", "srun",
                               "--overcommit", "-n", "3", *example("arrays.py"))), arrays(3))

    @torch_wanted
    @unittest.skipUnless(CPP_EXAMPLE.is_file(),
                         "PEAL_CPP_EXAMPLES does not name a folder of programs")
    def test_torchrun_starts_a_program_in_cpp(self) -> None:
        self.assertEqual(lines_of(torchrun("--no-python", CPP_EXAMPLE)),
                         ["rank 0 has 6", "rank 1 has 6"])


if __name__ == "__main__":
    unittest.main()
