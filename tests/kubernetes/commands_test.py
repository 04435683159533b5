"""The program peal, as users call it for jobs in Kubernetes.

    commands_test.py TOOL PEAL    # see cluster.py
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import cluster
from capabilities import shows
from cluster import Cluster, two_roles
from objects import now
from stand_in import PATIENCE, find, one_role, wait_for


class Commands(Cluster):
    runner = "kubernetes"
    refuses = {"elastic": "the Kubernetes runner starts a fixed number: give one number"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.environment["PEAL_JOBS_DIR"] = str(cls.cluster.folder / "jobs")

    def peal_says(self, *words, code=0, environment=None):
        done = subprocess.run([self.peal, *words], env={**self.cluster.environment, **(environment or {})},
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stdout + done.stderr

    def submit(self, job, *flags, code=0):
        path = self.cluster.folder / "submitted.json"
        path.write_text(json.dumps(job))
        return self.peal_says("submit", str(path), "--to", "kubernetes", *flags, code=code).strip()

    def jobs(self):
        return [job["id"] for job in json.loads(self.peal_says("jobs", "--json"))]

    def status(self, job):
        return json.loads(self.peal_says("status", "--json", job))

    def objects(self, job):
        return self.cluster.kubectl("get", "jobs,pods,services,secrets", "-l", f"peal.job={job}", "-o", "name")

    def test_a_job_is_known_to_other_machines_by_its_id(self):
        job = self.submit(two_roles(1, ["sh", "-c", "echo rank $RANK; exec sleep 1000"]))
        def peal(command, *words, code=0):
            return self.peal_says(command, job, "--to", "kubernetes", *words, code=code,
                                  environment={"PEAL_JOBS_DIR": str(self.cluster.folder / "elsewhere")})
        status = wait_for("it does not run", lambda: (
            lambda now: now if now["state"] == "running" else None)(json.loads(peal("status", "--json"))))
        self.assertEqual([node["role"] for node in status["nodes"]], ["master", "worker"])
        self.assertIsNone(status["submitted_at"])
        self.assertNotIn("submitted", peal("status"))
        wait_for("no output", lambda: peal("logs").splitlines() == ["[master-0] rank 0", "[worker-0] rank 1"])
        self.assertEqual(peal("cancel"), f"{job} is being cancelled\n")
        wait_for("objects remain", lambda: not self.objects(job))
        self.assertIn(f'no job "{job}" exists', peal("status", code=2))
        self.assertIn("only kubernetes finds a job that was submitted elsewhere",
                      self.peal_says("status", job, "--to", "ssh", code=2))
        wait_for("the records do not know the end", lambda: self.status(job)["state"] != "running")

    def test_a_job_is_submitted_watched_and_remembered(self):
        job = self.submit(two_roles(1, ["sh", "-c", "echo rank $RANK; sleep 1"]))
        self.assertRegex(job, r"^job-[a-z0-9]{6}$")
        lines = sorted(self.peal_says("logs", "-f", job).splitlines())
        self.assertEqual(lines, ["[master-0] rank 0", "[worker-0] rank 1"])
        status = wait_for("it has not ended", lambda: (
            lambda now: now if now["state"] == "succeeded" else None)(self.status(job)))
        self.assertEqual(status["exit_code"], 0)
        self.assertEqual(self.peal_says("cancel", job),
                         f"{job} has ended already: succeeded; its objects are being removed from the cluster\n")
        wait_for("objects remain", lambda: not self.objects(job))
        self.assertEqual(self.peal_says("cancel", job), f"{job} has ended already: succeeded\n")
        self.assertEqual(self.status(job), status)  # the cluster has forgotten it
        self.assertRegex(self.peal_says("jobs"), f"{job} +succeeded \\(Complete\\) +kubernetes")

    def test_a_job_that_fails_ends_the_streaming_with_its_exit_code(self):
        text = self.submit(one_role("sh", "-c", "seq 30; exit 9"), "--stream-logs", code=9)
        self.assertIn("30\n", text)
        job = re.search("peal: (job-[a-z0-9]*) failed: master-0 ended with exit code 9", text)[1]
        self.assertEqual(self.status(job)["last_lines"], [str(number) for number in range(11, 31)])

    def test_a_job_has_ended_when_its_last_node_has_ended_and_not_when_its_status_is_asked(self):
        job = self.submit(one_role("sh", "-c", "exit 9"))
        condition = wait_for("it has not failed", lambda: [
            each for each in json.loads(self.cluster.kubectl("get", "job", f"{job}-master", "-o", "json"))
            ["status"].get("conditions", []) if each["type"] == "Failed"])[0]
        ended = condition["lastTransitionTime"]
        wait_for("the same second", lambda: now() > ended)
        self.assertEqual(self.status(job)["ended_at"], ended)
        listed = {each["id"]: each for each in json.loads(self.peal_says("jobs", "--json"))}
        self.assertEqual(listed[job]["ended_at"], ended)

    def test_the_status_tells_no_running_node_after_the_end(self):
        job = two_roles(1, ["sh", "-c", "exit 0"], success_role="master")
        job["roles"][1]["command"] = ["sleep", "60"]
        job = self.submit(job)
        status = wait_for("it has not ended", lambda: (
            lambda now: now if now["state"] == "succeeded" else None)(self.status(job)))
        self.assertEqual([node["state"] for node in status["nodes"]], ["succeeded", "cancelled"])

    def begin_to_submit(self, job):
        """Starts a submission whose kubectl creates the objects, but ends only after the file `go` exists. Returns
        the process, the id of the job, and `go`, as soon as the job is in the cluster."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.folder))
        go = folder / "go"
        script = folder / "kubectl"
        script.write_text(f"#!/bin/sh\n'{find('kubectl')}' \"$@\"\ncode=$?\n"
                          f"[ \"$1\" = create ] && until [ -e '{go}' -o ! -e '{folder}' ]; do sleep 0.05; done\nexit $code\n")
        script.chmod(0o755)
        path = folder / "job.json"
        path.write_text(json.dumps({**job, "name": "slow"}))
        jobs = folder / "jobs"
        submission = subprocess.Popen(
            [self.peal, "submit", str(path), "--to", "kubernetes"], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**self.cluster.environment, "PEAL_JOBS_DIR": str(jobs),
                 "PATH": f'{folder}:{self.cluster.environment["PATH"]}'})
        self.addCleanup(submission.stdout.close)
        self.addCleanup(go.touch)
        self.addCleanup(submission.kill)
        wait_for("not submitted", lambda: jobs.exists() and list(jobs.glob("slow-*")))
        [found] = jobs.glob("slow-*")
        wait_for("not in the cluster", lambda: self.objects(found.name))
        return submission, found.name, go

    def test_a_job_whose_submission_was_killed_is_known_by_the_cluster(self):
        submission, job, go = self.begin_to_submit(one_role("sleep", "1000"))
        jobs = {"PEAL_JOBS_DIR": str(go.parent / "jobs")}

        def state(command):
            shown = json.loads(self.peal_says(*command, "--json", environment=jobs))
            return (shown[0] if isinstance(shown, list) else shown)["state"]
        self.assertEqual((state(["status", job]), state(["jobs"])), ("queued", "queued"))  # it is being submitted
        submission.kill()
        submission.wait()
        self.assertEqual((state(["status", job]), state(["jobs"])), ("unknown", "unknown"))  # only its Service exists
        self.assertIn("peal submit was killed during the start; no job", self.peal_says("status", job, environment=jobs))
        self.cluster.kubectl("delete", "services", "-l", f"peal.job={job}")
        self.cluster.start(job, one_role("sleep", "1000"))  # as if kubectl had created the rest
        wait_for("the cluster does not know it", lambda: state(["status", job]) == state(["jobs"]) == "running")
        self.assertEqual(self.peal_says("cancel", job, environment=jobs), f"{job} is being cancelled\n")
        wait_for("objects remain", lambda: not self.objects(job))
        self.assertEqual((state(["status", job]), state(["jobs"])), ("cancelled", "cancelled"))

    def test_a_job_that_is_cancelled_during_its_start_does_not_run(self):
        submission, job, go = self.begin_to_submit(one_role("sleep", "1000"))
        self.assertEqual(self.peal_says("cancel", job, environment={"PEAL_JOBS_DIR": str(go.parent / "jobs")}),
                         f"{job} is being cancelled\n")
        go.touch()
        self.assertEqual((submission.communicate(timeout=PATIENCE)[0], submission.returncode), (job + "\n", 0))
        wait_for("objects remain", lambda: not self.objects(job))

    def test_a_job_is_cancelled_by_the_beginning_of_its_id(self):
        job = self.submit(one_role("sleep", "60"))
        self.assertEqual(self.peal_says("cancel", job[:8]), f"{job} is being cancelled\n")
        wait_for("objects remain", lambda: not self.objects(job))
        self.assertEqual(self.peal_says("cancel", job), f"{job} has ended already: cancelled\n")
        status = self.status(job)
        self.assertEqual((status["state"], status["cause"], status["exit_code"]), ("cancelled", "cancelled", 143))

    @shows("images")
    def test_print_shows_the_manifests_that_are_submitted_without_a_secret(self):
        job = one_role("sleep", "60")
        printed = self.submit(job, "--print")
        self.assertIn("(hidden)", printed)
        self.assertIn('"image": "any"', printed)
        identifier = self.submit(job)
        found = json.loads(self.cluster.kubectl("get", "jobs,services,secrets", "-l", f"peal.job={identifier}", "-o", "json"))
        submitted = {(one["kind"], one["metadata"]["name"]): one for one in found["items"]}
        shown = json.loads("[" + printed.replace("job-000000", identifier).replace("\n}\n{", "\n},{") + "]")
        self.assertEqual({(one["kind"], one["metadata"]["name"]) for one in shown}, set(submitted))
        for one in shown:
            if one["kind"] == "Secret":
                one["data"] = {name: unittest.mock.ANY for name in one.pop("stringData")}
            self.assert_contains(submitted[one["kind"], one["metadata"]["name"]], one, one["kind"])
        self.peal_says("cancel", identifier)

    def assert_contains(self, whole, part, place):
        """The cluster adds fields to an object, such as its status."""
        if isinstance(part, dict):
            for key, value in part.items():
                self.assertIn(key, whole, place)
                self.assert_contains(whole[key], value, f"{place}.{key}")
        elif isinstance(part, list) and isinstance(whole, list):
            self.assertEqual(len(whole), len(part), place)
            for index, (one, other) in enumerate(zip(whole, part)):
                self.assert_contains(one, other, f"{place}[{index}]")
        else:
            self.assertEqual(whole, part, place)

    @shows("elastic")
    def test_a_range_of_nodes_is_refused(self):
        self.assertIn(self.refuses["elastic"], self.submit(one_role("true", nodes="1:2"), code=2))

    def test_a_job_that_the_cluster_refuses_leaves_nothing(self):
        path = self.cluster.folder / "submitted.json"
        path.write_text(json.dumps(one_role("true")))
        before = self.jobs()
        text = self.peal_says("submit", str(path), "--to", "kubernetes", code=1,
                              environment={"KUBECONFIG": "/nowhere/config"})
        self.assertIn("kubectl reaches no cluster", text)
        self.assertEqual(self.jobs(), before)


if __name__ == "__main__":
    cluster.main()
