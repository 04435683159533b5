"""`peal submit --to mpi` and `peal run --launcher mpi`: the launcher starts an agent by mpirun. On this machine, by Open MPI and by MPICH.

    mpi_test.py PEAL FIRST    # FIRST: a program that makes a group
"""
import json
import os
import pathlib
import shutil
import socket
import sys

import jobs
from jobs import LONG, NASTY, JobTest, role, shell, wait_until

FIRST = pathlib.Path(sys.argv[2]).resolve()
HERE = socket.gethostname()
TO_MPI = ("--to", "mpi", "-H", f"{HERE}:4")
SHOW = "import json, os, sys; print(json.dumps({n: os.environ.get(n) for n in sys.argv[1:]}))"


class Mpirun:
    """`program`: of this MPI."""
    program = None

    def setUp(self):
        super().setUp()
        if not shutil.which(self.program):
            self.skipTest(f"{self.program} is not installed")
        # peal calls `mpirun`, as users do.
        script = self.folder / "bin/mpirun"
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nexec {self.program} "$@"\n')
        script.chmod(0o755)
        self.environment.update({"PATH": f"{script.parent}:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})

    def test_ranks_make_a_group_and_the_job_ends_with_its_exit_code(self):
        run = self.stream({"roles": [role(FIRST, nodes=2, ranks_per_node=2)]}, to=TO_MPI)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()),
                         [f"[w-{rank // 2}:{rank}] rank {rank} has 12" for rank in range(4)])
        run = self.stream({"roles": [shell("[ $RANK != 1 ] || exit 9; sleep 100000", nodes=2)]}, to=TO_MPI)
        self.assertEqual(run.returncode, 9, run.stderr)
        self.assertIn(f"rank 1 (w 1 on {HERE}) ended with exit code 9", run.stderr)
        self.assert_no_process()

    def test_peal_run_starts_its_agents_by_mpirun(self):
        run = self.peal("run", "-n", 4, "--launcher", "mpi", "-H", f"{HERE}:4", FIRST)
        self.assertEqual((run.returncode, sorted(run.stdout.splitlines())),
                         (0, [f"[{HERE}:{rank}] rank {rank} has 12" for rank in range(4)]), run.stderr)
        self.assert_no_process()

    def test_values_arrive_byte_for_byte_and_are_in_no_command_line(self):
        job = self.submit({"env": {**NASTY, "TOKEN": "a-hidden-value"}, "roles": [
            role(sys.executable, "-c", f"{SHOW}; sys.stdout.flush(); import time; time.sleep({LONG})", *NASTY)]}, to=TO_MPI)
        wait_until(lambda: self.logs(job).endswith("\n"), "shown")
        self.assertEqual(json.loads(self.logs(job)), NASTY)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.assertNotIn(b"a-hidden-value", path.read_bytes())
            except OSError:
                continue
        self.cancel(job)
        self.end_of(job)

    def test_a_cancelled_job_leaves_no_process(self):
        job = self.submit({"roles": [shell(f"echo ready; setsid sleep {LONG} & sleep {LONG}", nodes=2)]}, to=TO_MPI)
        wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
        self.cancel(job)
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("cancelled", 143))
        self.assert_no_process()

    def test_files_are_refused(self):
        self.path("f").touch()
        run = self.stream({"files": [{"from": "f", "to": "g"}], "roles": [shell("true")]}, to=TO_MPI)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--to mpi copies no files", run.stderr)


class OpenMpi(Mpirun, JobTest):
    program = "mpirun.openmpi"


class Mpich(Mpirun, JobTest):
    program = "mpirun.mpich"


if __name__ == "__main__":
    jobs.main()
