"""What runners can do, as tests show it. docs/runners_table.py makes the table of docs/guide/runners.md from this.

A class of tests names its `runner`, and a test what it shows:

    class Slurm(EachRunner, JobTest):
        runner = "slurm"
        refuses = {"files": "copies no files"}    # the sentence; the test looks for it in the error

        @shows("restarts", "logs of an attempt")
        def test_a_failed_job_starts_again(self): ...
"""

RUNNERS = {  # by the names that tests use: as they are shown
    "local": "local", "ssh": "ssh", "slurm": "slurm", "openmpi": "mpi (Open MPI)", "mpich": "mpi (MPICH)",
    "kubernetes": "kubernetes", "container": "container"}

CAPABILITIES = (
    "submit and status", "a group of ranks on several nodes", "logs of one rank", "logs while the job runs",
    "logs of an attempt", "cancel a job that waits", "cancel a running job", "exit code of the first failure",
    "values byte for byte", "secret unseen", "files", "images", "time limit", "restarts", "requeue", "elastic",
    "roles with their own command", "MNIST learns the same", "print")

# Where a question has no meaning: {capability: {runner: why}}.
WITHOUT_MEANING = {
    "requeue": dict.fromkeys(("local", "ssh", "openmpi", "mpich", "kubernetes", "container"),
                             "only Slurm takes a whole job back into its queue"),
    "elastic": dict.fromkeys(("openmpi", "mpich"), "`peal run` starts elastic jobs, and does not use mpirun"),
    "files": {"container": "containers see folders of the host (`--container-option=--volume=...`)"},
    **dict.fromkeys(("submit and status", "logs of one rank", "logs while the job runs", "logs of an attempt",
                     "cancel a job that waits", "roles with their own command", "print"),
                    {"container": "`peal run` starts no submitted job"}),
}


def shows(*capabilities):
    unknown = set(capabilities) - set(CAPABILITIES)
    assert not unknown, f"not in CAPABILITIES: {unknown}"

    def mark(test):
        test.shows = capabilities
        return test
    return mark
