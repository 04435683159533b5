"""Tests of jobs through mpirun only. Tests of all runners: runners_test.py.

    mpi_test.py PEAL
"""
import pathlib

import jobs
import runners
from ssh_hosts import Fault, Host, SshHosts


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
        self.assert_refused("no-such-host", "the name has no address; check its spelling")

    def test_a_host_that_refuses_the_key_is_named(self):
        self.hosts = SshHosts([Host("node1"), Host("node2", fault=Fault.REFUSED_KEY)], programs=[jobs.PEAL.parent])
        self.addCleanup(self.hosts.stop)
        self.assert_refused("node2", "it accepts no key of yours")

    def assert_refused(self, host, why):
        """Long before start_timeout: mpirun of MPICH 4.0 waits forever for such a host."""
        run = self.stream({"start_timeout": "10h", "roles": [self.role("true", nodes=2)]},
                          to=("--to", "mpi", "-H", f"node1,{host}"))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, f"1 of 2 hosts cannot be used: {host}: {why}")
        self.assert_no_process()


class OpenMpi(Mpirun, runners.OpenMpi):
    pass


class Mpich(Mpirun, runners.Mpich):
    pass


if __name__ == "__main__":
    jobs.main()
