"""`peal submit --to mpi`: the launcher starts an agent by mpirun. On this machine, by Open MPI and by MPICH.

    mpi_test.py PEAL FIRST    # FIRST: a program that makes a group
"""
import json
import pathlib
import sys

import jobs
from jobs import LONG, JobTest, role, shell, wait_until
from mpirun import HERE, TO_MPI, use_mpirun
from nasty_values import NASTY, SHOW
from secret_places import CommandLines, assert_unseen

FIRST = pathlib.Path(sys.argv[2]).resolve()


class Mpirun:
    """`program`: of this MPI."""
    program = None

    def setUp(self):
        super().setUp()
        use_mpirun(self, self.program)

    def test_ranks_make_a_group_and_the_job_ends_with_its_exit_code(self):
        run = self.stream({"roles": [role(FIRST, nodes=2, ranks_per_node=2)]}, to=TO_MPI)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()),
                         [f"[w-{rank // 2}:{rank}] rank {rank} has 12" for rank in range(4)])
        run = self.stream({"roles": [shell("[ $RANK != 1 ] || exit 9; sleep 100000", nodes=2)]}, to=TO_MPI)
        self.assertEqual(run.returncode, 9, run.stderr)
        self.assertIn(f"rank 1 (w 1 on {HERE}) ended with exit code 9", run.stderr)
        self.assert_no_process()

    def test_values_arrive_byte_for_byte(self):
        run = self.stream({"env": NASTY, "roles": [role(sys.executable, "-c", SHOW, *NASTY)]}, to=TO_MPI)
        self.assertEqual(json.loads(run.stdout), NASTY, run.stderr)

    def test_the_secret_and_values_are_where_nobody_else_can_read_them(self):
        with CommandLines() as lines:
            job = self.submit({"env": {"TOKEN": "a-value-of-the-job"},
                               "roles": [shell(f"echo ready; {self.at_gate()}", nodes=2)]}, to=TO_MPI)
            wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
            secrets = self.secrets()
        self.assertEqual(len(secrets), 1)
        # mpirun keeps its files in tmp.
        assert_unseen(self, secrets, lines, [self.program, "agent"], [self.jobs, self.path("tmp")], {"logs": self.logs(job)},
                      private=[b"a-value-of-the-job"])
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "succeeded")

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
