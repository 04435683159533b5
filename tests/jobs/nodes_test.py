"""The documents of gcloud on this machine, without containers: pythonModule runs on the hosts. RANK and WORLD_SIZE count
nodes, and `peal run` inside makes one world of all nodes.

    nodes_test.py PEAL FIRST    # FIRST: a program that makes a group
"""
import json
import pathlib
import re
import subprocess
import sys

import jobs
from jobs import JobTest, role, shell

FIRST = pathlib.Path(sys.argv[2]).resolve()
SHOW = """import json, os, sys
names = "RANK WORLD_SIZE MASTER_ADDR MASTER_PORT LOCAL_RANK LOCAL_WORLD_SIZE PEAL_ROLE TF_CONFIG CLUSTER_SPEC".split()
print(json.dumps({"arguments": sys.argv[1:], **{name: os.environ.get(name) for name in names}}), flush=True)
"""
WORLD = f"""import subprocess, sys
sys.exit(subprocess.run([{str(jobs.PEAL)!r}, "run", "-n", "2", {str(FIRST)!r}]).returncode)
"""
MACHINE = "n1-standard-4"


class Managed(JobTest):
    def setUp(self):
        super().setUp()
        self.path("show.py").write_text(SHOW)
        self.path("world.py").write_text(WORLD)

    def assert_ended_well(self, run):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.status("job")["state"], "succeeded")

    @staticmethod
    def shown(run):
        """By node: what the module has printed. The end of the master may end a worker before its output."""
        return {line.split("] ", 1)[0][1:]: json.loads(line.split("] ", 1)[-1]) for line in run.stdout.splitlines()}

    def training_input(self, module, workers, **fields):
        return {"trainingInput": {"scaleTier": "CUSTOM", "masterType": MACHINE, "pythonModule": module,
                                  **({"workerType": MACHINE, "workerCount": workers} if workers else {}), **fields}}

    def test_a_module_of_the_current_folder_gets_its_arguments_in_order_and_counts_nodes(self):
        # The master waits until all nodes have printed, because its end ends the others.
        self.path("show.py").write_text(SHOW + f"""import pathlib, time
here = pathlib.Path({str(self.folder)!r})
(here / ("node" + os.environ["RANK"])).touch()
while os.environ["RANK"] == "0" and len(list(here.glob("node*"))) < 3: time.sleep(0.02)
""")
        run = self.stream(self.training_input("show", 2, args=["--epochs", "5"], jobDir="/out", region="r", runtimeVersion="2.1"),
                          "--", "--lr", "0.1")
        self.assert_ended_well(run)
        self.assertIn("peal: not used here: runtimeVersion, region", run.stderr)
        shown = self.shown(run)
        self.assertEqual(sorted(shown), ["master-0", "worker-0", "worker-1"])
        self.assertEqual({name: (node["RANK"], node["WORLD_SIZE"], node["PEAL_ROLE"]) for name, node in shown.items()},
                         {"master-0": ("0", "3", "master"), "worker-0": ("1", "3", "worker"), "worker-1": ("2", "3", "worker")})
        self.assertEqual(len({(node["MASTER_ADDR"], node["MASTER_PORT"]) for node in shown.values()}), 1)
        for node in shown.values():
            self.assertEqual(node["arguments"], ["--epochs", "5", "--lr", "0.1", "--job-dir", "/out"])
            self.assertIsNone(node["LOCAL_RANK"])
        config = json.loads(shown["worker-1"]["TF_CONFIG"])
        self.assertEqual((config["task"]["type"], config["task"]["index"], config["environment"]), ("worker", 1, "cloud"))
        self.assertEqual({name: len(nodes) for name, nodes in config["cluster"].items()}, {"master": 1, "worker": 2})
        self.assertEqual(json.loads(shown["master-0"]["CLUSTER_SPEC"])["job"]["workerCount"], 2)

    def test_peal_run_inside_makes_one_world(self):
        run = self.stream(self.training_input("world", 2))
        self.assert_ended_well(run)
        self.assertIn("[master-0] [0] rank 0 has 18\n", run.stdout)
        self.assertIn("[master-0] [1] rank 1 has 18\n", run.stdout)
        self.assertNotRegex(run.stdout, "has (?!18)|warning")

    def test_one_node_is_a_world_of_its_own(self):
        run = self.stream(self.training_input("world", 0))
        self.assert_ended_well(run)
        self.assertEqual(len(re.findall(r"rank [01] has 6", run.stdout)), 2, run.stdout)

    def test_gclouds_flags_and_a_file_in_json(self):
        path = self.path("config.json")
        path.write_text(json.dumps(self.training_input("show", 0)))
        run = self.peal("submit", "mnist_1", "--config", path, "--module-name", "show", "--to", "local", "--stream-logs",
                        "--", "--epochs", "7")
        self.assertEqual((run.returncode, json.loads(run.stdout)["arguments"]), (0, ["--epochs", "7"]), run.stderr)
        self.assertRegex(run.stderr, r"peal: submitted mnist-1-\w{6}; see it")

    def test_the_document_gives_its_time_limit(self):
        self.path("forever.py").write_text(f"import time\ntime.sleep({jobs.LONG})\n")
        run = self.stream(self.training_input("forever", 1, scheduling={"maxRunningTime": "1s"}))
        self.assertEqual(run.returncode, 124, run.stderr)
        self.assertEqual(self.status("job")["state"], "cancelled")

    def test_the_printed_form_is_the_same_job(self):
        printed = self.peal("submit", self.write(self.training_input("world", 1)), "--print")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        run = self.stream(printed.stdout)
        self.assert_ended_well(run)
        self.assertIn("[master-0] [0] rank 0 has 12\n", run.stdout)


class Own(JobTest):
    def test_peal_run_inside_makes_one_world(self):
        run = [str(word) for word in (jobs.PEAL, "run", "-n", 2, FIRST)]
        for command in run, ["env", "A=1", *run], ["sh", "-c", f"cd /; {' '.join(run)}"]:
            with self.subTest(command=command):
                run_of_job = self.stream({"roles": [role(*command, nodes=2)]})
                self.assertEqual(run_of_job.returncode, 0, run_of_job.stderr)
                self.assertEqual(sorted(re.findall(r"\[w-(\d)\] \[(\d)\] rank (\d) has 12", run_of_job.stdout)),
                                 [("0", "0", "0"), ("0", "1", "1"), ("1", "2", "2"), ("1", "3", "3")])
                self.assertNotIn("warning", run_of_job.stdout)

    def test_several_ranks_on_each_node_make_one_world(self):
        run = self.stream({"roles": [role(FIRST, nodes=2, ranks_per_node=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"rank \d has 12", run.stdout)), 4, run.stdout)

    def test_peal_run_in_a_rank_of_a_node_with_several_ranks_is_a_job_of_its_own(self):
        run = self.stream({"roles": [role(jobs.PEAL, "run", "-n", 2, FIRST, ranks_per_node=2)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"rank [01] has 6", run.stdout)), 4, run.stdout)

    def test_a_failed_rank_inside_ends_all_nodes_with_its_code(self):
        run = self.stream({"grace": "2s", "roles": [
            role(jobs.PEAL, "run", "-n", 2, "sh", "-c", f"[ $RANK != 3 ] || exit 7; sleep {jobs.LONG}", nodes=2)]})
        self.assertEqual(run.returncode, 7, run.stderr)
        self.assert_no_process()

    def test_a_cancelled_job_ends_the_ranks_inside(self):
        job = self.submit({"grace": "5s", "roles": [
            role(jobs.PEAL, "run", "-n", 2, "sh", "-c", f"echo ready; sleep {jobs.LONG}", nodes=2)]})
        jobs.wait_until(lambda: self.logs(job).count("ready") == 4, "ready")
        self.cancel(job)
        self.assertEqual(self.end_of(job)["state"], "cancelled")
        self.assert_no_process()


if __name__ == "__main__":
    jobs.main()
