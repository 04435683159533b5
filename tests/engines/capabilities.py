"""What each runner supports, as tests show it. docs/runners_table.py makes docs/guide/runners.md from this.

A class of tests names its `runner`, and each test names the capabilities that it shows:

    class Slurm(EachRunner, JobTest):
        runner = "slurm"
        refuses = {"files": "copies no files"}    # the test looks for this text in the error

        @shows("restarts", "logs of an attempt")
        def test_a_failed_job_starts_again(self): ...
"""

RUNNERS = {  # the name in tests: the name in the table
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
                             "only Slurm puts a whole job back into its queue"),
    "files": {"container": "mount a folder of the host instead (`--container-option=--volume=...`)"},
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
