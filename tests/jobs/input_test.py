"""Mistakes of users: each has one error that says what to do, a usage exit code, and starts nothing; and what is shown
of jobs that ended long ago or whose records are damaged.

    input_test.py PEAL
"""
import datetime
import json
import time

import jobs
from jobs import PATIENCE, JobTest, role, shell

USAGE = 2
GOOD = {"roles": [role("true")]}
DAY = 86_400_000  # milliseconds
IMAGE = "masterConfig: {imageUri: i}"

WRONG_FILES = {
    "an unknown field": ("roles:\n- name: w\n  comand: x\n", r"job.yaml:3:3: .*comand.*did you mean command\?"),
    "a wrong type": ("roles:\n- name: w\n  nodes: two\n  command: x\n", r'job.yaml:3:10: .*"two" is not a whole number'),
    "a list in place of a text": ("name: [a]\nroles: [{name: w, command: x}]\n", r"job.yaml:1:7: name: "),
    "a tab": ("roles:\n\t- name: w\n", r"job.yaml:2:1: .*tab; indent YAML by spaces"),
    "a duplicate key": ("name: a\nname: b\nroles: [{name: w, command: x}]\n", r'job.yaml:2:1: .*"name".*remove one'),
    "no command": ("roles: [{name: w}]\n", r"needs a command, as in command: \[python3, train.py\]"),
    "a truth as a command": ("roles: [{name: w, command: true}]\n", r'quote it: "true"'),
    "an own RANK": ("roles: [{name: w, command: x, env: {RANK: 3}}]\n", r"RANK"),
    "a success_role that does not exist": ("roles: [{name: w, command: x}]\nsuccess_role: q\n", r'no role "q", only w'),
    "a text only": ("train.py\n", r"fields with values, as in name: mnist"),
    "nothing": ("", r"job.yaml"),
    "workers in a tier without workers": (
        f"trainingInput: {{scaleTier: BASIC, workerCount: 2, {IMAGE}}}\n", r"write scaleTier: CUSTOM, or remove"),
    "a custom tier without a type": (f"trainingInput: {{scaleTier: CUSTOM, {IMAGE}}}\n", r"masterType"),
    "workers without a type": (
        f"trainingInput: {{scaleTier: CUSTOM, masterType: n1-standard-4, workerCount: 2, {IMAGE}}}\n", r"workerType"),
    "a worker type without workers": (
        f"trainingInput: {{scaleTier: CUSTOM, masterType: n1-standard-4, workerType: n1-standard-4, {IMAGE}}}\n",
        r"workerCount"),
    "no worker of a worker type": (
        "trainingInput: {scaleTier: CUSTOM, masterType: n1-standard-4, workerType: n1-standard-4, workerCount: 0, "
        f"{IMAGE}}}\n", r"workerCount: with workerType, it is at least 1: .*remove workerType"),
    "no image": ("trainingInput: {scaleTier: BASIC}\n", r"image is missing: write masterConfig: .*or pythonModule"),
    "an image and a module": (f"trainingInput: {{scaleTier: BASIC, {IMAGE}, pythonModule: m}}\n", r"pythonModule"),
    "parameter servers": (
        "trainingInput: {scaleTier: CUSTOM, masterType: n1-standard-4, parameterServerType: n1-standard-4, "
        f"parameterServerCount: 1, {IMAGE}}}\n", r"parameter server"),
}

WRONG_OPTIONS = {
    "no runner": ((), r"--to: local, ssh"),
    "an unknown runner": (("--to", "lokal"), r"did you mean local\?"),
    "an abbreviated runner": (("--to", "k8s"), r"did you mean kubernetes\?"),
    "a second job": (("other.yaml", "--to", "local"), r"other.yaml: peal submit takes one job; .* come after --"),
    "-H twice": (("--to", "ssh", "-H", "a", "-H", "b:x"), r'"b:x": the number of slots'),
    "ssh without hosts": (("--to", "ssh"), r"-H host1,host2 or --hostfile FILE"),
    "ssh with an empty list of hosts": (("--to", "ssh", "-H", ""), r"-H host1,host2 or --hostfile FILE"),
    "ssh with a hostfile that is missing": (("--to", "ssh", "--hostfile", "none"), r"--hostfile none: .*No such file"),
    "ssh with slots that are no number": (("--to", "ssh", "-H", "a:x"), r'"a:x": the number of slots'),
    "this machine with hosts": (("--to", "local", "-H", "a,b"), r"takes no hosts.*--to ssh"),
    "this machine with a hostfile": (("--to", "local", "--hostfile", "hosts"), r"takes no hosts.*--to ssh"),
    "this machine with a path of peal": (("--to", "local", "--peal-path", "/opt/peal"), r"--peal-path.*--to ssh and mpi"),
    "a printed script of Slurm with a path of peal": (
        ("--to", "slurm", "--print", "--peal-path", "/opt/peal"), r"--peal-path.*--to ssh and mpi"),
    "this machine with a TrainJob": (("--to", "local", "--train-job"), r"--train-job.*--to kubernetes"),
    "ssh with a TrainJob": (("--to", "ssh", "-H", "a", "--train-job"), r"--train-job.*--to kubernetes"),
    "an unknown option": (("--to", "local", "--stream-log"), r"did you mean --stream-logs\?"),
}


class Input(JobTest):
    def assert_refused(self, says, *arguments):
        run = self.peal(*arguments)
        self.assertEqual((run.returncode, run.stdout), (USAGE, ""), run.stderr)
        self.assertRegex(run.stderr, rf"\Apeal: [^\n]*(?:{says})")
        lines = [line for line in run.stderr.splitlines() if not line.startswith("See peal ")]
        self.assertEqual(len(lines), 1, run.stderr)
        self.assertFalse(self.jobs.exists(), "a refused job leaves no folder")
        self.assertEqual(self.processes(), [])

    def test_wrong_files(self):
        for what, (text, says) in WRONG_FILES.items():
            with self.subTest(what):
                self.assert_refused(says, "submit", self.write(text), "--to", "local")

    def test_wrong_options(self):
        self.path("hosts").write_text("a\n")
        for what, (options, says) in WRONG_OPTIONS.items():
            with self.subTest(what):
                self.assert_refused(says, "submit", self.write(GOOD), *options)

    def test_a_file_that_is_missing(self):
        self.assert_refused("none.yaml: there is no such file", "submit", "none.yaml", "--to", "local")

    def test_a_folder_that_does_not_exist(self):
        self.assert_refused("directory: there is no folder /no/such/folder on this machine", "submit",
                            self.write({**GOOD, "directory": "/no/such/folder"}), "--to", "local")

    def test_no_file(self):
        self.assert_refused("no job given: name its file", "submit", "--to", "local")

    def test_too_few_hosts(self):
        job = self.write({"roles": [role("true", nodes=3)]})
        self.assert_refused(r"needs 3 nodes .*room for 2; add hosts or slots", "submit", job, "--to", "ssh", "-H", "a,b")

    def test_a_folder_for_jobs_that_is_not_absolute(self):
        self.environment["PEAL_JOBS_DIR"] = "jobs"
        self.assert_refused("PEAL_JOBS_DIR=jobs is not an absolute path", "submit", self.write(GOOD), "--to", "local")

    def test_a_job_that_is_not_known(self):
        for arguments in (["status", "x"], ["logs", "x"], ["logs", "-f", "x"], ["cancel", "x"], ["status", ""]):
            with self.subTest(arguments):
                self.assert_refused("there is no job|is empty", *arguments)

    def test_commands_without_a_job(self):
        for command in ("status", "logs", "cancel"):
            with self.subTest(command):
                self.assert_refused("JOB is required; peal jobs lists the ids", command)


class Failures(JobTest):
    """Mistakes that only the hosts can notice."""

    def test_the_logs_of_a_job_that_could_not_start_say_why(self):
        job = self.submit({"roles": [role("./no-such-program")]})
        self.end_of(job)
        run = self.peal("logs", job)
        self.assertEqual((run.returncode, run.stdout), (0, ""))
        self.assertRegex(run.stderr, rf"\Apeal: {job} failed: [^\n]*no-such-program[^\n]*\n\Z")
        job = self.submit({"roles": [shell("echo no data; exit 1")]})
        self.end_of(job)
        run = self.peal("logs", job)
        self.assertEqual((run.stdout, run.stderr), ("no data\n", ""))

    def assert_fails(self, job, code, says):
        run = self.stream(job)
        self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
        self.assertRegex(run.stderr, rf"failed: {says}\n\Z")
        self.assertNotIn("\\x", run.stderr)
        self.assert_no_process()

    def test_a_command_that_does_not_exist(self):
        self.assert_fails({"roles": [role("no-such-program")]}, 127,
                          '.*localhost: cannot run "no-such-program": command not found[^\n]*')

    def test_a_file_that_cannot_be_executed(self):
        self.assert_fails({"roles": [role("/etc/passwd")]}, 126, ".*localhost: cannot run \"/etc/passwd\"[^\n]*")

    def test_what_was_found_out_is_in_the_status(self):
        run = self.stream({"roles": [role("no-such-program")]})
        self.assertEqual(run.returncode, 127, run.stderr)
        status = self.status("job")
        self.assertEqual((status["state"], status["exit_code"]), ("failed", 127))
        self.assertIn("command not found", status["first_failure"])
        self.assertEqual([node["reason"] for node in status["nodes"]], ["it did not start"])
        logs = self.peal("logs", "-f", "job")
        self.assertEqual((logs.returncode, logs.stdout, logs.stderr),
                         (0, "", f"peal: {status['id']} failed: {status['first_failure']}\n"))
        self.assertRegex(self.peal("status", "job").stdout, r"(?m)^failure +[^\n]*command not found")


class Records(JobTest):
    def edit(self, job, name, **fields):
        record = self.record(job, name)
        (self.jobs / job / name).write_text(json.dumps({**record, **fields}))

    def ended(self, days_ago):
        job = self.submit({"roles": [shell("echo output")]})
        self.end_of(job)
        then = int(time.time() * 1000) - days_ago * DAY
        self.edit(job, "end.json", ended_at=then)
        self.edit(job, "submitted.json", submitted_at=then - 1000)
        return job

    def test_a_job_that_ended_last_week_is_known_until_it_is_removed(self):
        old, new = self.ended(days_ago=7), self.ended(days_ago=1)
        then = time.time() - 7 * 86_400
        status = self.status(old)
        ended_at = datetime.datetime.fromisoformat(status["ended_at"].replace("Z", "+00:00")).timestamp()
        self.assertEqual(status["state"], "succeeded")
        self.assertAlmostEqual(ended_at, then, delta=PATIENCE)
        day = time.strftime("%Y-%m-%d", time.localtime(ended_at))
        self.assertRegex(self.peal("status", old).stdout, rf"(?m)^ended +{day} \d\d:\d\d:\d\d$")
        self.assertEqual(self.logs(old), "output\n")
        self.assertEqual([job["id"] for job in json.loads(self.peal("jobs", "--json").stdout)], [new, old])
        self.assertEqual(self.cancel(old), f"{old} has ended already: succeeded\n")
        removed = self.peal("jobs", "--remove-after", "3d")
        self.assertEqual((removed.returncode, removed.stdout), (0, f"removed {old}\n"))
        self.assertEqual([path.name for path in self.jobs.iterdir()], [new])
        self.assertEqual(self.peal("status", old).returncode, USAGE)

    def test_a_running_job_is_never_removed(self):
        job = self.submit({"roles": [shell(self.at_gate())]})
        self.await_state(job, "running")
        self.assertEqual(self.peal("jobs", "--remove-after", "0s").stdout, "")
        self.open_gate()
        self.assertEqual(self.end_of(job)["state"], "succeeded")

    def test_a_damaged_record_is_named_and_other_jobs_are_listed(self):
        good, bad = self.ended(days_ago=1), self.ended(days_ago=2)
        (self.jobs / bad / "end.json").write_text('{"state": "succ')
        run = self.peal("status", bad)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, r"end\.json is damaged: .*remove its folder")
        listed = {job["id"]: job for job in json.loads(self.peal("jobs", "--json").stdout)}
        self.assertEqual(listed[good]["state"], "succeeded")
        self.assertIn("end.json is damaged", listed[bad]["damage"])
        self.assertEqual(self.peal("jobs").returncode, 0)

    def test_a_long_reason_is_cut_in_the_list_and_whole_in_json(self):
        job = self.ended(days_ago=1)
        self.edit(job, "end.json", state="failed", first_failure="ü" * 200)
        line = self.peal("jobs").stdout.splitlines()[1]
        self.assertRegex(line, rf"^{job} +failed +local .* ü+\.\.\.$")
        self.assertLessEqual(len(line.encode()), 160)
        self.assertGreater(len(line.encode()), 155)
        self.assertEqual(json.loads(self.peal("jobs", "--json").stdout)[0]["first_failure"], "ü" * 200)

    def test_a_state_of_a_later_peal_is_shown_as_it_is(self):
        job = self.ended(days_ago=1)
        self.edit(job, "end.json", state="paused")
        self.assertRegex(self.peal("status", job).stdout, r"(?m)^state +unknown \(paused\)$")

    def test_two_jobs_with_one_beginning_need_more_of_the_id(self):
        self.ended(days_ago=1), self.ended(days_ago=1)
        run = self.peal("status", "job")
        self.assertEqual(run.returncode, USAGE)
        self.assertRegex(run.stderr, r'2 jobs begin with "job": job-\w+, job-\w+; type more of the id')

    def test_an_id_that_is_nearly_right_gets_the_nearest(self):
        job = self.ended(days_ago=1)
        run = self.peal("status", job[:-1] + "0")
        self.assertEqual(run.returncode, USAGE)
        self.assertIn(f"did you mean {job}?", run.stderr)

    def test_no_jobs(self):
        run = self.peal("jobs")
        self.assertEqual((run.returncode, run.stdout), (0, f"no jobs in {self.jobs}\n"))
        self.assertEqual(json.loads(self.peal("jobs", "--json").stdout), [])

    def test_wrong_ranks_attempts_and_times(self):
        job = self.ended(days_ago=1)
        for arguments, says in ((["logs", job, "--rank", "1"], "has no rank 1, only rank 0"),
                                (["logs", job, "--rank", "-1"], "it takes a number from 0"),
                                (["logs", job, "--rank", "x"], "it takes a number from 0"),
                                (["logs", job, "--attempt", "1"], "no logs of attempt 1; its last attempt is 0"),
                                (["logs", "-f", job, "--attempt", "1"], "no logs of attempt 1; its last attempt is 0"),
                                (["jobs", "--remove-after", "week"], "it takes a time such as 7d or 12h")):
            with self.subTest(arguments):
                run = self.peal(*arguments)
                self.assertEqual((run.returncode, run.stdout), (USAGE, ""))
                self.assertIn(says, run.stderr)


if __name__ == "__main__":
    jobs.main()
