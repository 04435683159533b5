"""Ranks under other launchers: two ranks meet with each launcher that peal understands.

Called by ctest with an example and the name or the path of a launcher; for srun, in the cluster of
tests/engines/slurm_cluster.py. If the launcher is not installed, the test ends with SKIPPED.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 300  # seconds
SKIPPED = 77  # the exit code that ctest reads as skipped

LAUNCHERS = {
    "torchrun": ["--standalone", "--nproc-per-node=2", "--no-python"],
    # "isolated": on this machine only, without ssh, which may be missing.
    "mpirun.openmpi": ["--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated", "-n", "2"],
    "mpirun.mpich": ["-n", "2"],
    "srun": ["-n", "2", "--overcommit"],
    "horovodrun": ["-np", "2", "-H", "localhost:1,127.0.0.1:1"],
}


def skip(why):
    print("SKIPPED:", why)
    sys.exit(SKIPPED)


def find(launcher):
    """On the path, or in the folder where scripts/bootstrap installs LibTorch."""
    return shutil.which(launcher) or shutil.which(launcher, path=ROOT / ".venv/bin")


def main(example, launcher):
    program = find(launcher)
    if program is None:
        skip(f"{launcher} is not installed")
    run = subprocess.run([program, *LAUNCHERS[pathlib.Path(launcher).name], example], timeout=PATIENCE, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(run.stdout)
    # Two ranks that did not meet would both be rank 0.
    ranks = re.findall(r"Rank (\d) has data 1\.", run.stdout)
    if run.returncode != 0 or sorted(ranks) != ["0", "1"]:
        sys.exit(f"{launcher} ended with {run.returncode}; ranks that met: {ranks}")


if __name__ == "__main__":
    main(*sys.argv[1:])
