"""Jobs in Kubernetes: the runner of peal and the real kubectl, against a stand-in for the API server.

    kubernetes_test.py TOOL PEAL [EXAMPLE] [unittest's arguments]

TOOL is peal_kubernetes_tool, PEAL the program peal, EXAMPLE a program of peal whose ranks meet. Ends with SKIPPED without kubectl, or if
this machine allows no namespaces.
"""
import base64
import json
import pathlib
import re
import subprocess
import sys
import time
import unittest

from stand_in import PATIENCE, SECRET, StandIn, find, may_make_networks, one_role, wait_for

SKIPPED = 77  # the exit code that ctest reads as skipped

NASTY = {
    "SPACES": "  two  spaces at both ends  ",
    "QUOTES": "it's \"quoted\"",
    "HOME_NAME": "$HOME ${HOME} $(HOME) $$(HOME) $$ `id`",
    "REFERENCE": "$(RANK) and $(SPACES)",
    "BACKSLASH": "a\\b\\n\\",
    "COMMA": "a,b=c,d",
    "NEWLINE": "first\nsecond\r\nthird\n",
    "SLURM": "64(x2)",
    "JSON": json.dumps({"a": [1, {"b": "c\"d"}], "e": None}),
    "SEMICOLON": "a; echo b & echo c | cat > d",
    "EMPTY": "",
    "LARGE": "0123456789" * 10240,
    "name.with.dots": "dots, $HOME and \"quotes\"",
    "UNICODE": "Größe 🔔 \u2028 \x7f \t",
    "PERCENT": "%s %n {} {{}}",
    "GLOB": "* ? [a] ~ !",
}
# Prints what the process has received, as one line.
SHOW = ("import json, os, sys; "
        "print(json.dumps({'environment': dict(os.environ), 'arguments': sys.argv[1:]}))")
ARGUMENTS = ["a b", "", "$(RANK)", "$$x", "it's", "\"", "x\ny", "--flag=$HOME"]


def two_roles(workers, command, **more):
    return {"name": "job", **more, "roles": [
        {"name": "master", "image": "any", "command": command},
        {"name": "worker", "nodes": workers, "image": "any", "command": command}]}


class Cluster(unittest.TestCase):
    tool = None
    peal = None
    example = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = StandIn(cls.tool)
        cls.addClassCleanup(cls.cluster.stop)

    def lines(self, name, *flags):
        """The lines of the log by node."""
        lines = {}
        for line in self.cluster.run("logs", name, *flags).splitlines():
            found = re.fullmatch(r"\[([^\]]*)\] (.*)", line)
            self.assertIsNotNone(found, line)
            lines.setdefault(found[1], []).append(found[2])
        return lines


class WhatTheProcessesGet(Cluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        job = two_roles(2, ["python3", "-c", SHOW], env=NASTY)
        for role in job["roles"]:
            role["args"] = ARGUMENTS
        job["roles"][1]["env"] = {"OF_THE_ROLE": "$(A),b", "SPACES": " another  value "}
        job.update(form="training_input", document='{"scaleTier": "CUSTOM", "price": "$(RANK) $$"}')
        cls.cluster.start("nasty", job)
        cls.cluster.wait_for_state("nasty", "succeeded")
        cls.processes = {}
        for line in cls.cluster.run("logs", "nasty").splitlines():
            name, _, text = line.partition("] ")
            cls.processes[name[1:]] = json.loads(text)

    def test_values_of_the_environment_arrive_byte_for_byte(self):
        self.assertEqual(set(self.processes), {"master-0", "worker-0", "worker-1"})
        for name, process in self.processes.items():
            expected = dict(NASTY)
            if name.startswith("worker"):
                expected.update({"OF_THE_ROLE": "$(A),b", "SPACES": " another  value "})
            for variable, value in expected.items():
                with self.subTest(node=name, variable=variable):
                    self.assertEqual(process["environment"].get(variable), value)

    def test_arguments_arrive_byte_for_byte(self):
        for name, process in self.processes.items():
            self.assertEqual(process["arguments"], ARGUMENTS, name)

    def test_each_node_knows_its_place(self):
        place = {"master-0": (0, 0), "worker-0": (1, 0), "worker-1": (2, 1)}
        for name, (rank, index) in place.items():
            environment = self.processes[name]["environment"]
            expected = {"RANK": str(rank), "GROUP_RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "nasty-master-0.nasty", "MASTER_PORT": "29500",
                        "PEAL_JOB": "nasty", "PEAL_ROLE": name.split("-")[0], "PEAL_ROLE_RANK": str(index),
                        "PEAL_SECRET": SECRET, "PYTHONUNBUFFERED": "1"}
            self.assertEqual({key: environment.get(key) for key in expected}, expected)
            # A `peal run` in the container would take these for those of one of its own ranks.
            self.assertEqual(set(environment) & {"LOCAL_RANK", "HOROVOD_LOCAL_RANK"}, set())
            self.assertFalse([key for key in environment if key.startswith("PEAL_ENV_")])

    def test_each_node_of_a_managed_job_gets_the_variables_of_tensorflow(self):
        hosts = {"master": ["nasty-master-0.nasty:2222"],
                 "worker": ["nasty-worker-0.nasty:2222", "nasty-worker-1.nasty:2222"]}
        for name, process in self.processes.items():
            role, index = name.split("-")
            for variable in ("TF_CONFIG", "CLUSTER_SPEC"):
                task = {"type": role, "index": int(index)}
                self.assertEqual(json.loads(process["environment"][variable]), {
                    "cluster": hosts, "environment": "cloud",
                    "task": {**task, "cloud": ""} if variable == "TF_CONFIG" else task,
                    "job": {"scaleTier": "CUSTOM", "price": "$(RANK) $$"}})


def command_lines_with(text):
    """The command lines of all processes that contain the text, and how many were read."""
    found, read = [], 0
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue  # it has ended
        read += 1
        if text in line:
            found.append(line)
    return found, read


class Secrets(Cluster):
    def test_the_secret_is_only_in_the_secret_object_and_in_the_processes(self):
        cluster = self.cluster
        path = cluster.folder / "quiet.json"
        path.write_text(json.dumps(two_roles(2, ["sh", "-c", "echo begin; sleep 3"])))
        starting = cluster.begin("start", str(path), "quiet")
        saw_kubectl = False
        while starting.poll() is None:
            self.assertEqual(command_lines_with(SECRET.encode())[0], [])
            saw_kubectl = saw_kubectl or bool(command_lines_with(b"create\0--filename=-")[0])
        self.assertTrue(saw_kubectl)
        self.assertNotIn(SECRET, starting.communicate()[0])
        cluster.wait_for_state("quiet", "running")
        follower = cluster.begin("logs", "quiet", "--follow")
        end = time.monotonic() + 2
        while time.monotonic() < end:
            found, read = command_lines_with(SECRET.encode())
            self.assertEqual(found, [])
            self.assertGreater(read, 3)
            self.assertNotIn(SECRET, cluster.run("status", "quiet"))
        for kind in ("jobs", "pods", "services", "events"):
            self.assertNotIn(SECRET, cluster.kubectl("get", kind, "-o", "yaml"), kind)
        self.assertNotIn(SECRET, cluster.kubectl("get", "secrets", "-o", "yaml"))  # base64
        self.assertIn(base64.b64encode(SECRET.encode()).decode(), cluster.kubectl("get", "secrets", "-o", "yaml"))
        self.assertNotIn(SECRET, follower.communicate(timeout=PATIENCE)[0])
        for path in cluster.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(SECRET.encode(), path.read_bytes(), path)


class Lives(Cluster):
    def test_ranks_of_two_nodes_meet_by_the_names_of_their_pods(self):
        if self.example is None:
            self.skipTest("no example was given")
        job = two_roles(1, [self.example])
        self.cluster.start("meet", job)
        status = self.cluster.wait_for_state("meet", "succeeded", "failed")
        self.assertEqual(status["state"], "succeeded", self.cluster.run("logs", "meet"))
        self.assertEqual(status["exit_code"], 0)
        self.assertEqual([node["state"] for node in status["nodes"]], ["succeeded", "succeeded"])

    def test_several_ranks_of_each_node_are_one_world(self):
        """Started by peal for the job, or by the command of a managed job."""
        show = "echo rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE"
        job = {"name": "job", "env": {"PATH": f'{pathlib.Path(self.peal).parent}:/usr/bin:/bin'}, "roles": [
            {"name": "node", "nodes": 2, "ranks_per_node": 2, "image": "any", "command": ["sh", "-c", show]}]}
        expected = [f"rank {rank} of 4, local {rank % 2} of 2" for rank in range(4)]
        own = two_roles(1, [self.peal, "run", "-n", "2", "--", "sh", "-c", show], form="training_input",
                        document="{}")
        for name, described in (("ranks", job), ("nodes", own)):
            with self.subTest(name):
                self.cluster.start(name, described)
                status = self.cluster.wait_for_state(name, "succeeded", "failed")
                self.assertEqual(status["state"], "succeeded", self.cluster.run("logs", name))
                shown = sorted(re.findall(r"rank .* of 2", self.cluster.run("logs", name)))
                self.assertEqual(shown, expected)
        self.assertEqual(self.lines("ranks", "--rank", "3"), {"node-1": [f"[3] {expected[3]}"]})

    def test_references_in_worker_pools_are_replaced(self):
        show = [{"name": "GREETING", "value": "hello $(MISSING)"},
                {"name": "SHOW", "value": "$(GREETING), node $(RANK) of $(WORLD_SIZE) for $$(RANK) or $5"}]
        pool = {"machineSpec": {"machineType": "e2-standard-2"}, "containerSpec": {
            "imageUri": "any", "command": ["sh", "-c", 'printf "%s\\n" "$SHOW" "$1" "$CLUSTER_SPEC"', "sh"],
            "args": ["$(GREETING)/$(PEAL_ROLE_RANK)"], "env": show}}
        job = {"displayName": "pools", "jobSpec": {"workerPoolSpecs": [pool]}}
        self.cluster.start("pools", job)
        self.cluster.wait_for_state("pools", "succeeded")
        lines = self.lines("pools")["workerpool0-0"]
        self.assertEqual(lines[:2], ["hello $(MISSING), node 0 of 1 for $(RANK) or $5", "hello $(MISSING)/0"])
        self.assertEqual(json.loads(lines[2])["task"], {"type": "workerpool0", "index": 0})

    def test_the_first_failure_is_named_with_its_exit_code(self):
        job = two_roles(2, ["sleep", "30"])
        job["roles"][1]["command"] = ["sh", "-c", "test $RANK = 1 || exec sleep 30; echo bad; exit 3"]
        self.cluster.start("fails", job)
        status = self.cluster.wait_for_state("fails", "failed")
        self.assertEqual(status["exit_code"], 3)
        self.assertEqual(status["first_failure"], "worker-0 ended with exit code 3 on stand-in")
        self.assertEqual(status["engine_state"], "PodFailurePolicy")
        self.assertEqual(self.lines("fails", "--rank", "1"), {"worker-0": ["bad"]})
        # The other roles would run on: the status ends them.
        status = wait_for("the master still runs", lambda: (
            lambda now: now if now["nodes"][0]["state"] == "cancelled" else None)(self.cluster.status("fails")))
        self.assertEqual(status["state"], "failed")

    def test_a_signal_is_named(self):
        self.cluster.start("signal", one_role("sh", "-c", "kill -SEGV $$"))
        status = self.cluster.wait_for_state("signal", "failed")
        self.assertEqual(status["exit_code"], 139)
        self.assertIn("master-0 ended by SIGSEGV (exit code 139)", status["first_failure"])

    def test_out_of_memory_is_named_with_the_limit(self):
        self.cluster.start("memory", one_role(
            "python3", "-c", "import time; x = b'x' * 300_000_000; time.sleep(30)",
            resources={"memory": "100M"}))
        status = self.cluster.wait_for_state("memory", "failed")
        self.assertEqual(status["exit_code"], 137)
        self.assertEqual(status["nodes"][0]["engine_state"], "OOMKilled")
        self.assertEqual(status["first_failure"],
                         "master-0 ran out of memory: its limit is 100Mi (OOMKilled) on stand-in")

    def test_a_command_that_does_not_exist_ends_the_job_even_with_restarts(self):
        self.cluster.start("typo", one_role("no-such-program", restarts=5))
        status = self.cluster.wait_for_state("typo", "failed")
        self.assertEqual(status["nodes"][0]["attempt"], 0)
        self.assertIn("StartError", status["first_failure"])
        self.assertIn("No such file", status["first_failure"])

    def test_a_managed_job_whose_images_have_entrypoints_runs(self):
        job = {"trainingInput": {
            "scaleTier": "CUSTOM", "masterType": "n1-standard-4", "workerType": "n1-standard-4", "workerCount": 2,
            "masterConfig": {"imageUri": "with-entrypoint"}}}  # also of the workers
        self.cluster.start("entrypoint", job)
        status = self.cluster.wait_for_state("entrypoint", "succeeded")
        self.assertEqual([(node["role"], node["index"]) for node in status["nodes"]],
                         [("master", 0), ("worker", 0), ("worker", 1)])
        self.assertEqual(self.lines("entrypoint", "--follow"), {
            name: [f"the entrypoint of {rank} in 3"]
            for rank, name in enumerate(["master-0", "worker-0", "worker-1"])})

    def test_a_job_waits_for_an_image_that_cannot_be_pulled_and_says_so(self):
        job = two_roles(1, ["sleep", "30"])
        job["roles"][1]["image"] = "registry.example/no-such-image:1"
        self.cluster.start("image", job)
        status = wait_for("no reason", lambda: (
            lambda now: now if now["engine_state"] == "ImagePullBackOff" else None)(
                self.cluster.status("image")))
        self.assertEqual(status["state"], "preparing")
        self.assertIn("1 of 2 nodes run; worker-0 waits (ImagePullBackOff: Back-off pulling image "
                      '"registry.example/no-such-image:1")', status["reason"])
        self.assertEqual(status["nodes"][1]["state"], "preparing")
        self.assertEqual(self.cluster.run("cancel", "image"), "cancelled\n")

    def test_a_job_waits_for_cores_and_says_so(self):
        self.cluster.start("wide", one_role("true", resources={"cpus": 64}))
        status = wait_for("no reason", lambda: (
            lambda now: now if now["engine_state"] == "Unschedulable" else None)(self.cluster.status("wide")))
        self.assertEqual(status["state"], "queued")
        self.assertIn("Insufficient cpu", status["reason"])
        refused = self.cluster.run("logs", "wide", "--rank", "0", code=1)
        self.assertIn("not started yet", refused)
        self.assertEqual(self.cluster.run("cancel", "wide"), "cancelled\n")

    def test_max_run_time_cancels_the_job(self):
        self.cluster.start("long", one_role("sleep", "60", max_run_time="1s"))
        status = self.cluster.wait_for_state("long", "cancelled")
        self.assertIn("max_run_time", status["reason"])
        self.assertEqual(status["engine_state"], "DeadlineExceeded")

    def test_the_role_that_decides_ends_the_others(self):
        job = two_roles(1, ["sh", "-c", "exit 0"], success_role="master")
        job["roles"][1]["command"] = ["sleep", "60"]
        self.cluster.start("decides", job)
        status = self.cluster.wait_for_state("decides", "succeeded")
        self.assertEqual(status["exit_code"], 0)
        status = wait_for("the worker still runs", lambda: (
            lambda now: now if now["nodes"][1]["state"] == "cancelled" else None)(
                self.cluster.status("decides")))
        self.assertEqual(status["nodes"][1]["reason"], "ended because the job has its result")

    def test_restarted_nodes_have_a_log_for_each_attempt(self):
        mark = self.cluster.folder / "mark"
        command = f"echo attempt; test -e {mark} && exit 0; touch {mark}; echo first; exit 1"
        self.cluster.start("again", one_role("sh", "-c", command, restarts=2))
        status = self.cluster.wait_for_state("again", "succeeded")
        self.assertEqual(status["nodes"][0]["attempt"], 1)
        self.assertEqual(self.lines("again"), {"master-0": ["attempt"]})
        self.assertEqual(self.lines("again", "--attempt", "0"), {"master-0": ["attempt", "first"]})
        self.assertIn("was started 2 times",
                      self.cluster.run("logs", "again", "--rank", "0", "--attempt", "2", code=1))

    def test_restarts_end_at_their_limit(self):
        self.cluster.start("limit", one_role("sh", "-c", "exit 7", restarts=1))
        status = self.cluster.wait_for_state("limit", "failed")
        self.assertEqual(status["engine_state"], "BackoffLimitExceeded")
        self.assertEqual((status["exit_code"], status["nodes"][0]["attempt"]), (7, 1))


class Logs(Cluster):
    def test_logs_are_followed_to_the_end_of_the_job(self):
        self.cluster.start("follow", two_roles(2, ["sh", "-c", "for i in 1 2 3; do echo $RANK $i; sleep 1; done"]))
        follower = self.cluster.begin("logs", "follow", "--follow")
        first = follower.stdout.readline()
        self.assertNotEqual(self.cluster.status("follow")["state"], "succeeded")  # while the job runs
        # communicate() would lose lines that readline() has read ahead.
        lines = sorted(line.strip() for line in [first, *follower.stdout])
        follower.wait(PATIENCE)
        self.assertEqual(follower.returncode, 0)
        self.assertEqual(lines, [f"[{name}] {rank} {i}" for rank, name in
                                 enumerate(["master-0", "worker-0", "worker-1"]) for i in (1, 2, 3)])

    def test_logs_of_one_rank_are_followed(self):
        self.cluster.start("one", two_roles(2, ["sh", "-c", "sleep 1; echo $RANK"]))
        self.assertEqual(self.lines("one", "--follow", "--rank", "2"), {"worker-1": ["2"]})

    def test_later_attempts_are_followed(self):
        mark = self.cluster.folder / "later"
        command = f"echo attempt; test -e {mark} && exit 0; touch {mark}; sleep 1; exit 1"
        self.cluster.start("later", one_role("sh", "-c", command, restarts=1))
        self.assertEqual(self.lines("later", "--follow"), {"master-0": ["attempt", "attempt"]})

    def test_long_lines_stay_whole(self):
        program = "for i in range(20): print(str(i % 10) * 50_000)"
        self.cluster.start("lines", two_roles(1, ["python3", "-c", program]))
        for text in self.lines("lines", "--follow").values():
            self.assertEqual(text, [str(i % 10) * 50_000 for i in range(20)])

    def test_following_ends_when_the_job_is_cancelled(self):
        self.cluster.start("stopped", one_role("sh", "-c", "echo begin; exec sleep 60"))
        follower = self.cluster.begin("logs", "stopped", "--follow")
        self.assertEqual(follower.stdout.readline(), "[master-0] begin\n")
        self.cluster.run("cancel", "stopped")
        self.assertEqual(follower.communicate(timeout=PATIENCE)[0], "")
        self.assertEqual(follower.returncode, 0)

    def test_unknown_ranks_are_refused(self):
        self.cluster.start("few", two_roles(1, ["true"]))
        self.assertIn("its ranks are 0 to 1", self.cluster.run("logs", "few", "--rank", "2", code=1))


class Cancelling(Cluster):
    def test_cancel_ends_the_processes_with_grace_and_removes_all_objects(self):
        done = self.cluster.folder / "done"
        command = f"trap 'sleep 1; touch {done}; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
        self.cluster.start("graceful", one_role("sh", "-c", command, grace="20s"))
        wait_for("not ready", lambda: "ready" in self.cluster.run("logs", "graceful"))
        self.assertEqual(self.cluster.run("cancel", "graceful"), "cancelled\n")
        self.assertEqual(self.cluster.status("graceful")["state"], "cancelling")
        self.assertEqual(self.cluster.run("cancel", "graceful"), "cancelled\n")  # it still ends
        wait_for("objects remain", lambda: not self.cluster.kubectl(
            "get", "jobs,pods,services,secrets", "-l", "peal.job=graceful", "-o", "name"))
        self.assertTrue(done.exists())
        self.assertEqual(self.cluster.run("cancel", "graceful"), "nothing to cancel\n")

    def test_unknown_jobs(self):
        self.assertEqual(self.cluster.run("cancel", "never-was"), "nothing to cancel\n")
        for action in ("status", "logs"):
            refused = self.cluster.run(action, "never-was", code=1)
            self.assertIn('no job "never-was" exists in the namespace of kubectl', refused)

    def test_an_id_is_used_once(self):
        self.cluster.start("twice", one_role("sleep", "30"))
        path = str(self.cluster.folder / "twice.json")
        self.assertIn('has a job "twice" already', self.cluster.run("start", path, "twice", code=1))
        self.assertNotEqual(self.cluster.status("twice")["nodes"], [])  # the first job is unharmed
        self.cluster.run("cancel", "twice")

    def test_ids_that_are_no_names_work(self):
        name = "My_Job/2026 (first)"
        self.cluster.start("id", one_role("echo", "hello"))
        path = str(self.cluster.folder / "id.json")
        self.cluster.run("start", path, name)
        status = self.cluster.wait_for_state(name, "succeeded")
        self.assertEqual(status["id"], name)
        self.assertEqual(self.lines(name), {"master-0": ["hello"]})
        self.assertEqual(self.cluster.run("cancel", name), "cancelled\n")


class Refusals(Cluster):
    def setUp(self):
        self.path = str(self.cluster.folder / "refused.json")
        pathlib.Path(self.path).write_text(json.dumps(one_role("true")), encoding="utf-8")

    def test_a_missing_kubectl_is_named(self):
        text = self.cluster.run("start", self.path, "a", environment={"PATH": "/nowhere"}, code=1)
        self.assertIn('the program "kubectl" was not found: install kubectl', text)

    def test_an_unreachable_cluster_is_named(self):
        config = (self.cluster.folder / "kubeconfig").read_text()
        other = self.cluster.folder / "unreachable"
        other.write_text(re.sub(r"127.0.0.1:\d+", "127.0.0.1:1", config))
        for words in (("start", self.path, "a"), ("status", "a"), ("cancel", "a"), ("logs", "a")):
            text = self.cluster.run(*words, environment={"KUBECONFIG": str(other)}, code=1)
            self.assertIn("kubectl reaches no cluster", text)

    def test_without_a_configuration_nothing_falls_back_to_this_machine(self):
        text = self.cluster.run("start", self.path, "a", environment={"KUBECONFIG": "/nowhere/config"}, code=1)
        self.assertIn("kubectl reaches no cluster", text)

    def test_a_lack_of_permission_is_named(self):
        text = self.cluster.run("start", self.path, "a", "--namespace", "forbidden", code=1)
        self.assertIn("the cluster does not permit it", text)
        self.assertIn("create, get, list, patch and delete", text)

    def test_a_job_that_was_started_in_part_is_removed(self):
        self.cluster.start("whole", one_role("sleep", "30"))
        self.cluster.kubectl("delete", "service", "whole")  # so that only the other objects exist
        path = str(self.cluster.folder / "whole.json")
        self.assertIn("already exists", self.cluster.run("start", path, "whole", code=1))
        wait_for("objects remain", lambda: not self.cluster.kubectl(
            "get", "jobs,services,secrets", "-l", "peal.job=whole", "-o", "name"))


class TrainJobs(Cluster):
    def test_a_train_job_runs_with_the_variables_of_peal(self):
        job = one_role("python3", "-c", SHOW, nodes=2, env=NASTY)
        self.cluster.start("train", job, "--train-job")
        status = self.cluster.wait_for_state("train", "succeeded")
        self.assertEqual(len(status["nodes"]), 2)
        for index in range(2):
            text = self.lines("train", "--rank", str(index))[f"node-{index}"][0]
            environment = json.loads(text)["environment"]
            expected = {**NASTY, "RANK": str(index), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "PEAL_JOB": "train",
                        "MASTER_ADDR": "train-node-0-0.train", "PEAL_SECRET": SECRET}
            self.assertEqual({key: environment.get(key) for key in expected}, expected)
        self.assertEqual(self.cluster.run("cancel", "train"), "cancelled\n")
        wait_for("objects remain", lambda: not self.cluster.kubectl(
            "get", "trainjobs,jobs,pods,services,secrets", "-o", "name"))
        self.assertEqual(self.cluster.run("cancel", "train"), "nothing to cancel\n")


class Commands(Cluster):
    """The program peal, as users call it."""

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

    def test_a_job_is_submitted_watched_and_remembered(self):
        job = self.submit(two_roles(1, ["sh", "-c", "echo rank $RANK; sleep 1"]))
        self.assertRegex(job, r"^job-[a-z0-9]{6}$")
        lines = sorted(self.peal_says("logs", "-f", job).splitlines())
        self.assertEqual(lines, ["[master-0] rank 0", "[worker-0] rank 1"])
        status = wait_for("it has not ended", lambda: (
            lambda now: now if now["state"] == "succeeded" else None)(self.status(job)))
        self.assertEqual(status["exit_code"], 0)
        self.cluster.kubectl("delete", "jobs,services,secrets", "-l", f"peal.job={job}")
        self.assertEqual(self.status(job), status)  # the cluster has forgotten it
        self.assertRegex(self.peal_says("jobs"), f"{job} +succeeded \\(Complete\\) +kubernetes")

    def test_a_job_that_fails_ends_the_streaming_with_its_exit_code(self):
        text = self.submit(one_role("sh", "-c", "echo bad; exit 9"), "--stream-logs", code=9)
        self.assertIn("bad\n", text)
        self.assertRegex(text, "peal: job-[a-z0-9]* failed: master-0 ended with exit code 9")

    def test_a_job_is_cancelled_by_the_beginning_of_its_id(self):
        job = self.submit(one_role("sleep", "60"))
        self.assertEqual(self.peal_says("cancel", job[:8]), f"{job} is being cancelled\n")
        wait_for("objects remain", lambda: not self.cluster.kubectl(
            "get", "jobs,pods,services,secrets", "-l", f"peal.job={job}", "-o", "name"))
        self.assertEqual(self.peal_says("cancel", job), f"{job} has ended already: cancelled\n")
        self.assertEqual(self.status(job)["state"], "cancelled")

    def test_print_shows_the_manifests_that_are_submitted_without_a_secret(self):
        job = one_role("sleep", "60")
        printed = self.submit(job, "--print")
        self.assertIn("(hidden)", printed)
        identifier = self.submit(job)
        names = self.cluster.kubectl("get", "jobs,services,secrets", "-l", f"peal.job={identifier}", "-o", "name")
        for name in names.split():
            self.assertIn(name.split("/")[1].replace(identifier, "job-000000"), printed)
        self.peal_says("cancel", identifier)

    def test_a_job_that_the_cluster_refuses_leaves_nothing(self):
        path = self.cluster.folder / "submitted.json"
        path.write_text(json.dumps(one_role("true")))
        before = self.jobs()
        text = self.peal_says("submit", str(path), "--to", "kubernetes", code=1,
                              environment={"KUBECONFIG": "/nowhere/config"})
        self.assertIn("kubectl reaches no cluster", text)
        self.assertEqual(self.jobs(), before)


def main():
    if not find("kubectl"):
        print("SKIPPED: kubectl is not installed; scripts/bootstrap installs it")
        sys.exit(SKIPPED)
    if not may_make_networks():
        print("SKIPPED: this machine allows no namespaces, so that pods could have no names")
        sys.exit(SKIPPED)
    Cluster.tool, Cluster.peal = sys.argv[1:3]
    rest = sys.argv[3:]
    if rest and pathlib.Path(rest[0]).exists():
        Cluster.example = rest.pop(0)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
