"""Tests of jobs through mpirun only. Tests of all runners: runners_test.py.

    mpi_test.py PEAL
"""
import pathlib

import jobs
import runners


class Mpirun:
    def test_each_mpirun_has_a_folder_of_its_own_for_temporary_files(self):
        """If several mpiruns of Open MPI start together in one folder, some may fail."""
        script = self.path("bin/mpirun")
        script.write_text(f'#!/bin/sh\nls -d "$OMPI_MCA_orte_local_tmpdir_base" >> {self.path("folders")}\n'
                          f'exec {self.program} "$@"\n')
        run = self.stream({"roles": [self.role("true", nodes=2)]}, to=("--to", "mpi", "-H", "node1,node2"))
        self.assertEqual(run.returncode, 0, run.stderr)
        folders = self.path("folders").read_text().splitlines()
        self.assertEqual(len(set(folders)), 2, folders)
        self.assertEqual([folder for folder in folders if pathlib.Path(folder).exists()], [])

    def test_a_host_that_does_not_exist_is_named(self):
        run = self.stream({"start_timeout": "5s", "roles": [self.role("true", nodes=2)]},
                          to=("--to", "mpi", "-H", "node1,no-such-host"))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, "1 of 2 hosts cannot be used: no-such-host: ")
        self.assert_no_process()


class OpenMpi(Mpirun, runners.OpenMpi):
    pass


class Mpich(Mpirun, runners.Mpich):
    pass


if __name__ == "__main__":
    jobs.main()
