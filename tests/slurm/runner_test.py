"""`peal submit --to slurm`, status, logs and cancel: a real cluster in namespaces (tests/engines), with three nodes.

    runner_test.py PEAL
"""
import datetime
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import slurm_cluster
from slurm_cluster import SlurmCluster

PEAL = pathlib.Path(sys.argv[1]).resolve()
LONG = 100_000  # seconds: a rank that ends only because it is ended
PATIENCE = 90  # seconds
# Values that shells, Slurm and other engines change.
NASTY = {"SPACES": "  a  b ", "QUOTES": """'"'"'""", "HOME_REFERENCE": "$HOME `id` $(id)", "BACKSLASH": "a\\nb\\",
         "COMMA": "a,b,c", "NEWLINE": "a\nb\n", "COUNT": "64(x2)", "JSON": '{"a": [1, "b c"]}', "SEMICOLON": "a;b&c|d",
         "EMPTY": "", "LONG": "x" * 100_000, "WITH.DOT": "dot", "UTF8": "ä€"}


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE} s: not {what}")
        time.sleep(0.1)
    return result


class Runner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = SlurmCluster(3)
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        # A name that a shell and Slurm would read otherwise.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="it's 50%j $HOME "))
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.cluster.wait_until_idle)

    def peal(self, *arguments):
        run = self.cluster.popen([PEAL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={"PEAL_JOBS_DIR": str(self.folder / "jobs")})
        out, err = run.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(arguments, run.returncode, out, err)

    def submit(self, command, **fields):
        """The id of a job with two nodes."""
        nodes = fields.pop("nodes", 2)
        job = {"name": "mnist", "roles": [{"name": "worker", "nodes": nodes, "command": ["sh", "-c", command]}], **fields}
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        run = self.peal("submit", path, "--to", "slurm")
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.strip()

    def status(self, job):
        run = self.peal("status", job, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def await_state(self, job, *states):
        return wait_until(lambda: (status := self.status(job))["state"] in states and status, f"{states}: {self.status(job)}")

    def number(self, job):
        return json.loads((self.folder / "jobs" / job / "submitted.json").read_text())["engine_id"]

    def has_succeeded_without_the_wait(self, job):
        """Slurm lets a requeued job wait for two minutes after the end of its last process, because the nodes refuse
        it in the second of that end. Makes it two seconds."""
        shown = self.cluster.run(["scontrol", "show", "job", "--oneliner", self.number(job)]).stdout
        eligible = datetime.datetime.fromisoformat(re.search(r"EligibleTime=(\S+)", shown)[1])
        if eligible > datetime.datetime.now() + datetime.timedelta(seconds=60):
            self.cluster.run(["scontrol", "update", f"JobId={self.number(job)}", "StartTime=now+2"])
        return self.status(job)["state"] == "succeeded"

    def test_a_job_runs_on_its_nodes_and_leaves_its_logs(self):
        job = self.submit("echo $SLURMD_NODENAME $RANK/$WORLD_SIZE")
        status = self.await_state(job, "succeeded")
        self.assertEqual(status["exit_code"], 0)
        wait_until(lambda: self.status(job)["engine_state"] == "COMPLETED", "seen by Slurm")
        logs = self.peal("logs", job).stdout
        self.assertIn("node1 0/2", logs)
        self.assertIn("node2 1/2", logs)

    def test_the_first_failure_is_the_result_of_the_program(self):
        job = self.submit("[ $RANK = 0 ] || exit 9; sleep 100000")
        status = self.await_state(job, "failed")
        self.assertEqual(status["exit_code"], 9)
        wait_until(lambda: self.status(job)["engine_state"] == "FAILED", "seen by Slurm")
        self.assertRegex(status["first_failure"], r"rank 1 \(worker 1 on node2\) ended with exit code 9")

    def test_a_job_that_waits_has_a_reason_and_can_be_cancelled(self):
        job = self.submit("true", engine_options={"slurm": ["--hold"]})
        status = self.status(job)
        self.assertEqual((status["state"], status["engine_state"]), ("queued", "PENDING"))
        self.assertIn("JobHeldUser", status["reason"])
        self.assertEqual(self.peal("cancel", job).returncode, 0)
        self.await_state(job, "cancelled")
        wait_until(lambda: self.status(job)["engine_state"] == "CANCELLED", "seen by Slurm")
        self.assertEqual(self.peal("cancel", job).returncode, 0)

    def test_a_cancelled_job_gives_its_ranks_their_grace(self):
        job = self.submit(f"trap 'echo rank $RANK ends; exit 0' TERM; echo ready; sleep {LONG} & wait")
        self.await_state(job, "running")
        wait_until(lambda: self.peal("logs", job).stdout.count("ready") == 2, "ready")
        self.assertEqual(self.peal("cancel", job).returncode, 0)
        status = self.await_state(job, "cancelled")
        self.assertIn("cancelled it", status["reason"])
        self.assertEqual(self.peal("logs", job).stdout.count("ends"), 2)

    def test_roles_with_other_resources_run_in_their_own_components(self):
        path = self.folder / "job.json"
        path.write_text(json.dumps({"name": "two", "roles": [
            {"name": "master", "nodes": 1, "command": ["sh", "-c", "echo $PEAL_ROLE $SLURMD_NODENAME $RANK"]},
            {"name": "worker", "nodes": 2, "resources": {"cpus": 2},
             "command": ["sh", "-c", "echo $PEAL_ROLE $SLURMD_NODENAME $RANK"]}]}))
        run = self.peal("submit", path, "--to", "slurm")
        job = run.stdout.strip()
        status = self.await_state(job, "succeeded", "failed")
        self.assertEqual(status["state"], "succeeded", status)
        logs = self.peal("logs", job).stdout
        self.assertRegex(logs, r"master node\d 0")
        self.assertRegex(logs, r"worker node\d 1")
        self.assertRegex(logs, r"worker node\d 2")

    def test_a_requeued_job_continues_its_attempts(self):
        job = self.submit(f"echo attempt $PEAL_ATTEMPT; [ $PEAL_ATTEMPT = 1 ] || sleep {LONG}")
        self.await_state(job, "running")
        wait_until(lambda: "attempt 0" in self.peal("logs", job).stdout, "started")
        self.assertEqual(self.cluster.run(["scontrol", "requeue", self.number(job)]).returncode, 0)
        self.await_state(job, "queued")
        wait_until(lambda: self.has_succeeded_without_the_wait(job), "succeeded")
        self.assertIn("attempt 1", self.peal("logs", job).stdout)
        self.assertIn("attempt 0", self.peal("logs", job, "--attempt", "0").stdout)

    def test_values_arrive_byte_for_byte_and_are_in_no_command_line(self):
        show = "import json, os, sys; print(json.dumps({n: os.environ.get(n) for n in sys.argv[1:]}))"
        path = self.folder / "job.json"
        path.write_text(json.dumps({"name": "values", "env": {**NASTY, "TOKEN": "a-hidden-value"}, "roles": [{
            "name": "w", "command": [sys.executable, "-c", f"{show}; sys.stdout.flush(); import time; time.sleep({LONG})",
                                     *NASTY]}]}))
        job = self.peal("submit", path, "--to", "slurm").stdout.strip()
        wait_until(lambda: self.peal("logs", job).stdout.endswith("\n"), "shown")
        self.assertEqual(json.loads(self.peal("logs", job).stdout), NASTY)
        for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.assertNotIn(b"a-hidden-value", line.read_bytes())
            except OSError:
                continue
        self.peal("cancel", job)
        self.await_state(job, "cancelled")

    def test_a_script_shows_no_value_of_the_job(self):
        job = self.submit("true", env={"TOKEN": "hidden-value"}, engine_options={"slurm": ["--hold"]})
        script = self.cluster.run(["scontrol", "write", "batch_script", self.number(job), "-"], stdout=subprocess.PIPE).stdout
        shown = self.cluster.run(["scontrol", "show", "job", self.number(job)], stdout=subprocess.PIPE).stdout
        self.assertNotIn("hidden-value", f"{script}{shown}")
        self.peal("cancel", job)

    def test_slurm_says_why_a_job_is_refused(self):
        path = self.folder / "job.json"
        path.write_text(json.dumps({"name": "x", "roles": [{"name": "w", "command": ["true"]}],
                                    "engine_options": {"slurm": ["--partition=nope"]}}))
        run = self.peal("submit", path, "--to", "slurm")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("Invalid partition name specified (see `sinfo`", run.stderr)
        self.assertEqual(list((self.folder / "jobs").iterdir()), [])


if __name__ == "__main__":
    if slurm_cluster.why_not():
        print(slurm_cluster.why_not())
        sys.exit(slurm_cluster.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
