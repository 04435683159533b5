"""What the processes of a job in Kubernetes get: variables, arguments and the secret, also in a TrainJob.

    values_test.py TOOL PEAL    # see cluster.py
"""
import base64
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import cluster
from cluster import Cluster, two_roles
from nasty_values import NASTY
from secret_places import CommandLines, assert_unseen
from stand_in import PATIENCE, SECRET, one_role, wait_for

# Prints what the process has received, as one line.
SHOW_ALL = ("import json, os, sys; "
        "print(json.dumps({'environment': dict(os.environ), 'arguments': sys.argv[1:]}))")
ARGUMENTS = ["a b", "", "$(RANK)", "$$x", "it's", "\"", "x\ny", "--flag=$HOME"]


class WhatTheProcessesGet(Cluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        job = two_roles(2, ["python3", "-c", SHOW_ALL], env=NASTY)
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


class Secrets(Cluster):
    def test_the_secret_is_only_in_the_secret_object_and_in_the_processes(self):
        cluster = self.cluster
        path = cluster.folder / "quiet.json"
        go = cluster.folder / "go"
        path.write_text(json.dumps(two_roles(2, ["sh", "-c", f"echo begin; until [ -e {go} ]; do sleep 0.1; done"])))
        with CommandLines() as lines:
            texts = {"start": cluster.run("start", str(path), "quiet")}
            cluster.wait_for_state("quiet", "running")
            follower = cluster.begin("logs", "quiet", "--follow")
            texts["status"] = cluster.run("status", "quiet")
            for kind in ("jobs", "pods", "services", "events", "secrets"):
                texts[kind] = cluster.kubectl("get", kind, "-o", "yaml")
            go.touch()
            texts["logs"] = follower.communicate(timeout=PATIENCE)[0]
        self.assertIn(base64.b64encode(SECRET.encode()).decode(), texts.pop("secrets"))
        assert_unseen(self, [SECRET.encode()], lines, ["create\0--filename=-", "logs\0quiet"], [cluster.folder], texts)


class TrainJobs(Cluster):
    def test_a_train_job_runs_with_the_variables_of_peal(self):
        job = one_role("python3", "-c", SHOW_ALL, nodes=2, env=NASTY)
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


if __name__ == "__main__":
    cluster.main()
