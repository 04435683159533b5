"""The life of jobs in Kubernetes, their logs and their mistakes: the runner of peal and the real kubectl, against a
stand-in for the API server.

    kubernetes_test.py TOOL PEAL [EXAMPLE]    # see cluster.py
"""
import json
import pathlib
import re

import cluster
from cluster import Cluster, two_roles
from stand_in import PATIENCE, one_role, wait_for


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
        job = two_roles(2, ["sleep", "86400"])
        job["roles"][1]["command"] = ["sh", "-c", "test $RANK = 1 || exec sleep 86400; echo bad; exit 3"]
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
            "python3", "-c", "import time; x = b'x' * 300_000_000; time.sleep(86400)",
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

    def test_restarts_end_at_the_limit_of_a_node(self):
        """With a limit for all nodes together, node 0 would start up to three times."""
        command = 'if [ "$RANK" = 0 ]; then exit 7; fi; exec sleep 1000'
        self.cluster.start("limit", one_role("sh", "-c", command, restarts=1, nodes=3))
        status = self.cluster.wait_for_state("limit", "failed")
        self.assertEqual(status["engine_state"], "MaxFailedIndexesExceeded")
        self.assertEqual((status["exit_code"], status["nodes"][0]["attempt"]), (7, 1))
        self.assertEqual([node["attempt"] for node in status["nodes"]], [1, 0, 0])


class Logs(Cluster):
    def test_logs_are_followed_to_the_end_of_the_job(self):
        go = self.cluster.folder / "go"
        command = f"echo $RANK 1; until [ -e {go} ]; do sleep 0.1; done; echo $RANK 2; sleep 1; echo $RANK 3"
        self.cluster.start("follow", two_roles(2, ["sh", "-c", command]))
        follower = self.cluster.begin("logs", "follow", "--follow")
        first = follower.stdout.readline()
        self.assertNotEqual(self.cluster.status("follow")["state"], "succeeded")  # while the job runs
        go.touch()
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
        self.cluster.start("stopped", one_role("sh", "-c", "echo begin; exec sleep 86400"))
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
        go, done = self.cluster.folder / "go", self.cluster.folder / "done"
        command = (f"trap 'until [ -e {go} ]; do sleep 0.1; done; touch {done}; exit 0' TERM; echo ready; "
                   "while :; do sleep 0.1; done")
        self.cluster.start("graceful", one_role("sh", "-c", command, grace="60s"))
        wait_for("not ready", lambda: "ready" in self.cluster.run("logs", "graceful"))
        self.assertEqual(self.cluster.run("cancel", "graceful"), "cancelled\n")
        self.assertEqual(self.cluster.status("graceful")["state"], "cancelling")
        self.assertEqual(self.cluster.run("cancel", "graceful"), "cancelled\n")  # it still ends
        go.touch()
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


if __name__ == "__main__":
    cluster.main()
