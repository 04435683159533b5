"""How a job has ended, as users see it: the cause, the rank that failed first with its last lines, and equal errors of
several ranks.

    ends_test.py PEAL
"""
import os
import pathlib
import sys

import jobs
from jobs import LONG, JobTest, role, shell, wait_until

LIMIT = 64 << 20  # bytes of memory
MEMORY = pathlib.Path("/sys/fs/cgroup/memory")  # cgroups of version 1
RAISE = """
import os
def step(number):
    raise ValueError(f"rank {os.environ['RANK']}: the loss is not finite in step {number}")
step(17)
"""


class Cause(JobTest):
    def test_a_job_that_ends_well_has_none(self):
        status = self.end_of(self.submit({"roles": [role("true")]}))
        self.assertEqual((status["cause"], status["failed_rank"], status["last_lines"]), (None, None, []))

    def test_failures_of_the_program_differ_from_those_of_the_launcher(self):
        for cause, fields in (("program", {"roles": [shell("exit 7")]}),
                              ("signal", {"roles": [shell("kill -SEGV $$")]}),
                              ("signal", {"roles": [shell("kill -KILL $$")]}),
                              ("not_started", {"roles": [role("/no/such/program")]}),
                              ("time_limit", {"max_run_time": "1s", "roles": [role("sleep", LONG)]})):
            with self.subTest(cause):
                status = self.end_of(self.submit(fields))
                self.assertEqual(status["cause"], cause, status)

    def test_a_job_whose_engine_is_not_on_this_machine_is_refused_and_leaves_nothing(self):
        self.path("empty").mkdir()
        for runner, program in (("mpi", "mpirun"), ("ssh", "ssh")):
            run = self.peal("submit", self.write({"roles": [role("true", nodes=2)]}), "--to", runner, "-H", "a,b",
                            env={"PATH": str(self.path("empty"))})
            self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
            self.assertEqual(run.stderr.count(f"there is no {program} on this machine"), 1, run.stderr)
            self.assertEqual(list(self.jobs.iterdir()), [])

    def test_a_cancelled_job_and_a_killed_launcher(self):
        job = self.submit({"roles": [role("sleep", LONG)]})
        self.cancel(job)
        self.assertEqual(self.end_of(job)["cause"], "cancelled")
        job = self.submit({"roles": [role("sleep", LONG)]})
        self.await_state(job, "running")
        os.kill(self.launcher_of(job), 9)
        self.assertEqual(self.end_of(job)["cause"], "engine")

    def test_a_rank_that_the_kernel_kills_for_its_memory(self):
        group = MEMORY / f"peal-ends-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        except OSError as problem:
            self.skipTest(f"no memory cgroup of version 1 can be made: {problem}")
        self.addCleanup(wait_until, lambda: remove(group), "an empty cgroup")
        path = self.write({"roles": [shell("[ $RANK = 1 ] && exec tail /dev/zero; sleep 100", nodes=2)]})
        run = self.peal("-c", f"echo $$ > {group}/cgroup.procs; exec '{jobs.PEAL}' submit '{path}' --to local",
                        program="sh")
        self.assertEqual(run.returncode, 0, run.stderr)
        status = self.end_of(run.stdout.strip())
        self.assertEqual((status["cause"], status["failed_rank"]), ("out_of_memory", 1))
        self.assertIn("was killed by SIGKILL: out of memory (limit 64.0 MiB of its cgroup)", status["first_failure"])


def remove(group):
    try:
        group.rmdir()
    except OSError:
        return False
    return True


class FirstFailure(JobTest):
    def test_the_status_shows_the_last_lines_of_the_rank_that_failed_first(self):
        job = self.submit({"grace": "1s", "roles": [
            shell("for i in $(seq 99); do echo line $i of $RANK; done; [ $RANK = 1 ] && exit 3; sleep 100", nodes=3)]})
        status = self.end_of(job)
        last = [f"line {number} of 1" for number in range(80, 100)]
        self.assertEqual((status["failed_rank"], status["exit_code"]), (1, 3))
        self.assertEqual(status["last_lines"], last)
        text = self.peal("status", job).stdout
        self.assertIn("\nthe last lines of rank 1:\n" + "".join(f"  | {line}\n" for line in last)
                      + f"\nfor all of them: peal logs {job} --rank 1\n", text)
        self.assertRegex(text, r"(?m)^cause +program$")
        self.assertEqual(len(self.logs(job, "--rank", "1").splitlines()), 99)

    def test_control_characters_of_a_rank_do_not_reach_the_terminal(self):
        job = self.submit({"roles": [shell(r"printf 'bad \033[2J bell\a\n'; exit 3")]})
        self.end_of(job)
        text = self.peal("status", job).stdout
        self.assertIn("bad ", text)
        self.assertFalse(set(text) & set("\033\a"), text)


class Errors(JobTest):
    def test_the_same_traceback_of_all_ranks_is_shown_once(self):
        run = self.peal("run", "-n", "3", sys.executable, "-c", RAISE)
        report = run.stderr[run.stderr.index("peal: "):]
        self.assertRegex(report, r"(?m)^peal: ranks 0 to 2 ended with the same error; the last lines of rank \d:$")
        self.assertEqual(report.count("Traceback"), 1, report)

    def test_another_traceback_is_shown_beside_it(self):
        other = RAISE.replace("step(17)", "step(17) if int(os.environ['RANK']) < 2 else {}['layer']")
        report = self.peal("run", "-n", "3", sys.executable, "-c", other).stderr
        report = report[report.index("peal: "):]
        self.assertRegex(report, r"(?m)^peal: ranks 0 and 1 ended with (the same|this) error")
        self.assertEqual((report.count("Traceback"), report.count("KeyError: 'layer'")), (2, 1), report)


if __name__ == "__main__":
    jobs.main()
