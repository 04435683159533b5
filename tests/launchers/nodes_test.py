"""Jobs whose nodes are started by other launchers: each process of the launcher is a `peal run -n 2`.

Called by ctest with `peal`, a program whose ranks print "met as rank R of N", and the name of a launcher. The
name "managed" stands for the variables of a managed service, which this test sets itself. srun runs in the
cluster of tests/engines/slurm_cluster.py. If the launcher is not installed, the test ends with SKIPPED.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys

from launchers_test import PATIENCE, ROOT, find, skip

PYTHON = ROOT / ".venv/bin/python"
DDP = pathlib.Path(__file__).with_name("ddp.py")

LAUNCHERS = {
    "mpirun.openmpi": ["--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated", "-n", "2"],
    "mpirun.mpich": ["-n", "2"],
    "srun": ["-N", "1", "-n", "2", "--overcommit"],
    "torchrun": ["--standalone", "--nproc-per-node=2", "--no-python"],
}


def expect(actual, expected, output):
    if sorted(actual) != sorted(expected):
        sys.exit(f"expected {sorted(expected)}, but found {sorted(actual)} in:\n{output}")


def met_ranks(output):
    return re.findall(r"met as (rank \d of \d)", output)


def run_by_launcher(peal, rank_program, launcher):
    program = find(launcher)
    if program is None:
        skip(f"{launcher} is not installed")
    run = subprocess.run([program, *LAUNCHERS[launcher], peal, "run", "-n", "2", rank_program, "meet"],
                         timeout=PATIENCE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode != 0:
        sys.exit(f"{launcher} ended with {run.returncode}:\n{run.stdout}")
    # A rank of torchrun that calls `peal run` starts a job of its own.
    expected = ["rank 0 of 2", "rank 1 of 2"] * 2 if launcher == "torchrun" else [f"rank {r} of 4" for r in range(4)]
    expect(met_ranks(run.stdout), expected, run.stdout)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run_nodes(command):
    """The output of two nodes, which start `command` with the variables of a managed service."""
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    nodes = [subprocess.Popen(command, env={**os.environ, **place, "RANK": str(node)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for node in range(2)]
    outputs = [node.communicate(timeout=PATIENCE)[0] for node in nodes]
    output = "".join(outputs)
    if any(node.returncode != 0 for node in nodes):
        sys.exit(f"the nodes ended with {[node.returncode for node in nodes]}:\n{output}")
    return output


def run_by_managed_service(peal, rank_program):
    output = run_nodes([rank_program, "meet"])
    expect(met_ranks(output), ["rank 0 of 2", "rank 1 of 2"], output)
    output = run_nodes([peal, "run", "-n", "2", rank_program, "meet"])
    expect(met_ranks(output), [f"rank {r} of 4" for r in range(4)], output)
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        print("without torch, DistributedDataParallel is not tested")
        return
    sums = re.compile(r"rank \d of \d: .*")
    output = run_nodes([PYTHON, DDP])
    expect(sums.findall(output), [f"rank {r} of 2: 4.0" for r in range(2)], output)
    output = run_nodes([peal, "run", "-n", "2", str(PYTHON), str(DDP)])
    expect(sums.findall(output), [f"rank {r} of 4: 12.0" for r in range(4)], output)


if __name__ == "__main__":
    if sys.argv[3] == "managed":
        run_by_managed_service(*sys.argv[1:3])
    else:
        run_by_launcher(*sys.argv[1:])
