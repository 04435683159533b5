"""Jobs through mpirun, of Open MPI or of MPICH."""
import os
import shutil
import socket

PROGRAMS = ("mpirun.openmpi", "mpirun.mpich")
HERE = socket.gethostname()
TO_MPI = ("--to", "mpi", "-H", f"{HERE}:4")


def use_mpirun(test, program):
    """Gives the commands of a JobTest this mpirun under the name that users and peal call. Its temporary files are in
    the folder `tmp` of the test."""
    if not shutil.which(program):
        test.skipTest(f"{program} is not installed")
    folder = test.path(f"bin-{program}")
    folder.mkdir()
    script = folder / "mpirun"
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    test.path("tmp").mkdir(exist_ok=True)
    test.environment.update({"TMPDIR": str(test.path("tmp")), "PATH": f"{folder}:{os.environ['PATH']}",
                             "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
