"""`peal submit --to slurm`, status, logs and cancel: a real cluster in namespaces (tests/engines), with three nodes.

    runner_test.py PEAL STOPPING    # STOPPING: the example program
"""
import datetime
import os
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "jobs"), str(TESTS / "engines")]
import jobs
import slurm_cluster
from capabilities import shows
from jobs import LONG, PATIENCE, JobTest, role, shell, wait_until
from slurm_cluster import SlurmCluster

STOPPING = pathlib.Path(sys.argv[2]).resolve()
SLURM = ("--to", "slurm")
PREEMPTION = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
# Jobs of the partition `main` preempt those of these two.
PREEMPTED = ("requeued PriorityTier=0 GraceTime=2 PreemptMode=REQUEUE", "cancelled PriorityTier=0 GraceTime=2 PreemptMode=CANCEL")
NOTICES_SOON = {"SlurmdTimeout": "3", "MessageTimeout": "3"}  # that a node is lost
# In place of srun: the first call starts a program that never answers, instead of an agent.
SLOW_SRUN = f"""#!/bin/sh
PATH=${{PATH#*:}}
[ -e "$0.began" ] && exec srun "$@"
exec srun --nodes=1 --ntasks=1 --overlap --mem=0 sh -c 'touch "$1"; exec sleep {LONG}' sh "$0.began"
"""


class SlurmJobTest(JobTest):
    prefix = "it's 50%j $HOME "  # which a shell and Slurm would read otherwise
    cluster = None

    def submit_nodes(self, script, nodes=2, **fields):
        """The id of a job with one role."""
        return self.submit({**fields, "roles": [shell(script, nodes=nodes)]}, to=SLURM)

    def number(self, job):
        return self.record(job, "submitted.json")["engine_id"]

    def of_slurm(self, *command):
        run = self.cluster.run(command)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def await_engine_state(self, job, state):
        wait_until(lambda: self.status(job)["engine_state"] == state, f"seen by Slurm: {state}")

    def shorten_the_wait(self, job):
        """Slurm lets a requeued job wait for two minutes after the end of its last process, because the nodes refuse
        the job within the second of that end. Shortens the wait to two seconds."""
        shown = self.of_slurm("scontrol", "show", "job", "--oneliner", self.number(job))
        eligible = datetime.datetime.fromisoformat(re.search(r"EligibleTime=(\S+)", shown)[1])
        if eligible > datetime.datetime.now() + datetime.timedelta(seconds=60):
            self.cluster.run(["scontrol", "update", f"JobId={self.number(job)}", "StartTime=now+2"])

    def await_state_after_requeue(self, job, state, patience=PATIENCE):
        def is_there():
            self.shorten_the_wait(job)
            return self.status(job)["state"] == state
        wait_until(is_there, state, patience)


class Runner(SlurmJobTest):
    runner = "slurm"

    @classmethod
    def setUpClass(cls):
        cls.hosts = cls.cluster = SlurmCluster(3, settings=PREEMPTION, partitions=PREEMPTED)
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        self.addCleanup(self.cluster.wait_until_idle)
        super().setUp()

    def test_a_job_runs_on_its_nodes_and_leaves_its_logs(self):
        job = self.submit_nodes("echo $SLURMD_NODENAME $RANK/$WORLD_SIZE")
        status = self.await_state(job, "succeeded")
        self.assertEqual(status["exit_code"], 0)
        self.await_engine_state(job, "COMPLETED")
        self.assertEqual(sorted(self.logs(job).splitlines()), ["[w-0] node1 0/2", "[w-1] node2 1/2"])
        self.assertEqual(self.logs(job, "--rank", 1), "[w-1] node2 1/2\n")

    def test_the_first_failure_is_the_result_of_the_program(self):
        job = self.submit_nodes("[ $RANK = 0 ] || exit 9; sleep 100000")
        status = self.await_state(job, "failed")
        self.assertEqual(status["exit_code"], 9)
        self.await_engine_state(job, "FAILED")
        self.assertRegex(status["first_failure"], r"rank 1 \(w 1 on node2\) ended with exit code 9")

    def test_a_job_that_waits_has_a_reason_and_can_be_cancelled(self):
        job = self.submit_nodes("true", engine_options={"slurm": ["--hold"]})
        status = self.status(job)
        self.assertEqual((status["state"], status["engine_state"]), ("queued", "PENDING"))
        self.assertIn("JobHeldUser", status["reason"])
        self.cancel(job)
        self.await_state(job, "cancelled")
        self.await_engine_state(job, "CANCELLED")
        self.cancel(job)

    def test_a_cancelled_job_gives_its_ranks_their_grace(self):
        job = self.submit_nodes(f"trap 'echo rank $RANK ends; exit 0' TERM; echo ready; sleep {LONG} & wait")
        self.await_state(job, "running")
        wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
        self.cancel(job)
        status = self.await_state(job, "cancelled")
        self.assertIn("cancelled it", status["reason"])
        self.assertEqual(self.logs(job).count("ends"), 2)
        self.assert_no_process()
        self.await_engine_state(job, "FAILED")  # for Slurm, because the launcher ends with 143
        self.assertNotIn("FAILED", self.peal("status", job).stdout)

    def test_a_job_that_scancel_ends_is_cancelled_on_all_its_nodes(self):
        job = self.submit_nodes(f"echo ready; exec sleep {LONG}")
        wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
        self.of_slurm("scancel", self.number(job))
        wait_until(lambda: (self.jobs / job / "end.json").exists(), "recorded by the launcher: the end")
        self.assertIn("exit_code", self.record(job, "end.json"))  # `peal status` knows no exit code of such a job
        self.await_engine_state(job, "CANCELLED")
        status = self.status(job)
        self.assertEqual([status["state"], *(node["state"] for node in status["nodes"])], ["cancelled"] * 3, status)
        self.assertNotIn("failed", self.peal("status", job).stdout.lower())

    def test_roles_with_other_resources_run_in_their_own_components(self):
        show = "echo $PEAL_ROLE $SLURMD_NODENAME $RANK"
        job = self.submit({"roles": [shell(show, name="master"),
                                     shell(show, name="worker", nodes=2, resources={"cpus": 2})]}, to=SLURM)
        status = self.end_of(job)
        self.assertEqual(status["state"], "succeeded", status)
        logs = self.logs(job)
        for line in (r"master node\d 0", r"worker node\d 1", r"worker node\d 2"):
            self.assertRegex(logs, line)

    @shows("requeue")
    def test_a_requeued_job_continues_its_attempts_and_has_no_more_restarts_than_before(self):
        job = self.submit_nodes(f"echo attempt $PEAL_ATTEMPT; [ $PEAL_ATTEMPT = 1 ] && sleep {LONG}; exit 7",
                                restarts={"most": 1, "first_pause": "100ms"})
        wait_until(lambda: "attempt 1" in self.logs(job), "started again")
        self.of_slurm("scontrol", "requeue", self.number(job))
        self.await_state(job, "queued")
        self.await_state_after_requeue(job, "failed")
        end = self.record(job, "end.json")
        self.assertEqual((end["exit_code"], end["attempts"]), (7, 3), self.status(job))
        self.assertIn("attempt 2", self.logs(job))
        self.assertIn("attempt 0", self.logs(job, "--attempt", "0"))

    def assert_same_step(self, text):
        steps = re.findall(r"rank \d ends after step (\d+)", text)
        self.assertEqual((len(steps), len(set(steps))), (2, 1), text)

    def submit_stopping(self, **fields):
        return self.submit_nodes('exec "$STOPPING" "$FILE"', env={"STOPPING": str(STOPPING), "FILE": str(self.path("checkpoint"))},
                                 **fields)

    def test_ranks_are_asked_to_stop_before_the_time_limit(self):
        job = self.submit_stopping(max_run_time="10h", warn_before="9h59m59s")
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("succeeded", 0), status)
        self.assertIn("ended after the warning before its time limit", status["reason"])
        self.assert_same_step(self.logs(job))

    def test_a_limit_that_only_slurm_knows_counts(self):
        script = self.path("script.sh")
        script.write_text('#!/bin/sh\nexec "$PEAL" run -n 2 --warn-before 599 "$STOPPING" "$FILE"\n')
        out = self.path("out")
        run = self.cluster.run(["sbatch", "--wait", "--nodes=2", "--ntasks-per-node=1", "--time=10",
                                f"--output={out}".replace("%", "%%"), script],
                               env={"PEAL": str(jobs.PEAL), "STOPPING": str(STOPPING), "FILE": str(self.path("checkpoint"))})
        self.assertEqual(run.returncode, 0, out.read_text())
        self.assertIn("after the warning before the time limit", out.read_text())
        self.assert_same_step(out.read_text())

    def test_ranks_save_when_slurm_signals_the_nodes_as_at_a_preemption(self):
        job = self.submit_stopping(grace="60s")
        wait_until(lambda: self.logs(job).count("step 3") == 2, "training")
        self.of_slurm("scancel", "--signal=TERM", self.number(job))
        status = self.end_of(job)
        self.assertEqual(status["state"], "succeeded", status)
        self.assert_same_step(self.logs(job))

    def submit_connecting(self, **fields):
        """A job whose launcher waits for the answer of its host. If Slurm starts the job again, the host answers."""
        srun = self.path("srun")
        srun.write_text(SLOW_SRUN)
        srun.chmod(0o755)
        job = self.submit({**fields, "roles": [shell("echo trained", nodes=1)]}, to=SLURM,
                          env={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.await_file("srun.began")
        return job

    def test_a_preempted_job_saves_and_waits_for_slurm_which_decides_whether_it_starts_again(self):
        partition = {name: {"engine_options": {"slurm": [f"--partition={name}"]}} for name in ("requeued", "cancelled")}
        continues = 'exec "$STOPPING" "$FILE" $(($(cut -d " " -f 1 "$FILE") + 2))'
        requeued = self.submit_nodes(f'[ -e "$FILE" ] && {continues}; exec "$STOPPING" "$FILE"', grace="60s",
                                     env={"STOPPING": str(STOPPING), "FILE": str(self.path("checkpoint"))},
                                     **partition["requeued"])
        cancelled = self.submit_nodes(f"echo step 3; exec sleep {LONG}", nodes=1, restarts=3, **partition["cancelled"])
        for job, ranks in (requeued, 2), (cancelled, 1):
            wait_until(lambda: self.logs(job).count("step 3") == ranks, "training")
        out = self.path("out")
        script = self.path("script.sh")
        script.write_text(f'#!/bin/sh\nexec "$PEAL" run --launcher slurm --np 1:1 sh -c "echo step 3; exec sleep {LONG}"\n')
        self.of_slurm("env", f"PEAL={jobs.PEAL}", "sbatch", "--partition=cancelled", "--nodes=1", "--ntasks=1",
                      f"--output={out}".replace("%", "%%"), script)
        wait_until(lambda: out.exists() and "step 3" in out.read_text(), "training: the elastic job")
        connecting = self.submit_connecting(**partition["requeued"])
        seen = self.path("seen")  # until then the preempted jobs stay in the queue
        preemptor = self.cluster.popen(["srun", "--quiet", "--nodes=3", "--exclusive", "sh", "-c",
                                        'until [ -e "$0" ]; do sleep 0.1; done', seen])
        status = self.await_state(cancelled, "failed")
        self.assertEqual((status["engine_state"], status["cause"]), ("PREEMPTED", "preempted"), status)
        for job in requeued, connecting:
            self.await_state(job, "queued")
        self.assertRegex(self.peal("status", requeued).stdout, "(?m)^attempt 0 +failed: Slurm has preempted the job")
        seen.touch()
        self.assertEqual(preemptor.wait(), 0)
        for job in requeued, connecting:
            self.await_state_after_requeue(job, "succeeded")
        self.assertIn("trained", self.logs(connecting))
        self.assertIn("Slurm has preempted the job", self.status(requeued)["failed_attempt"]["failure"])
        for job in requeued, cancelled, connecting:
            self.assertIn("Slurm preempts the job", (self.jobs / job / "launcher.log").read_text())
        self.assertIn("Slurm preempts the job", out.read_text())
        before, after = (re.findall(r"ends after step (\d+)", self.logs(requeued, "--attempt", number)) for number in "01")
        self.assertEqual((len(before), len(set(before)), len(after), len(set(after))), (2, 1, 2, 1))
        self.assertEqual(int(after[0]), int(before[0]) + 2)
        self.assertNotIn("restart", (self.jobs / cancelled / "launcher.log").read_text())

    def test_logs_that_follow_a_waiting_job_say_why_the_job_waits(self):
        job = self.submit_nodes("true", nodes=9)
        with self.path("said").open("w") as said:
            run = self.start("logs", "-f", job, stderr=said)
        says = ("peal: the job waits; Slurm's reason: PartitionConfig; the job does not fit and will not start: "
                "cancel it, and submit it with other resources\n")
        wait_until(lambda: says in self.path("said").read_text(), lambda: f"said: {says}{self.path('said').read_text()}")
        self.cancel(job)
        self.assertEqual(run.communicate(timeout=PATIENCE)[0], "")

    def test_slurm_says_why_a_job_is_refused(self):
        run = self.peal("submit", self.write({"roles": [role("true")], "engine_options": {"slurm": ["--partition=nope"]}}),
                        *SLURM)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("Invalid partition name specified (see `sinfo`", run.stderr)
        self.assertEqual(list(self.jobs.iterdir()), [])


class LostNodes(SlurmJobTest):
    """Each node is a host of its own, which can be lost. The launcher runs on node1."""

    def setUp(self):
        self.hosts = self.cluster = SlurmCluster(3, own_hosts=True, settings=NOTICES_SOON)
        self.addCleanup(self.cluster.stop)
        super().setUp()

    def submit_with_gates(self, nodes, **fields):
        """A job with a gate for each attempt: gate-0, gate-1, ... The first two attempts fail at their gates."""
        return self.submit_nodes('echo "attempt $PEAL_ATTEMPT on $SLURMD_NODENAME"; '
                                 'until [ -e "$GATE$PEAL_ATTEMPT" ]; do sleep 0.05; done; exit $((PEAL_ATTEMPT < 2))',
                                 nodes, env={"GATE": str(self.path("gate-"))}, grace="1s", **fields)

    def await_attempt(self, job, number, *nodes):
        """Until the attempt runs on these nodes."""
        lines = [f"[w-{index}] attempt {number} on {node}" for index, node in enumerate(nodes)]
        wait_until(lambda: sorted(self.logs(job).splitlines()) == lines, lambda: f"the logs {lines}: {self.logs(job)}")
        self.assertEqual([node["host"] for node in self.await_state(job, "running")["nodes"]], list(nodes))

    def assert_lost(self, status, attempt):
        self.assertEqual(status["failed_attempt"]["attempt"], attempt)
        self.assertRegex(status["failed_attempt"]["failure"], r"^rank 1 \(w 1 on node2\) was lost: ")

    def nodes_of_slurm(self, job):
        return re.search(r" NodeList=(\S+)", self.of_slurm("scontrol", "show", "job", "--oneliner", self.number(job)))[1]

    def test_a_job_goes_on_inside_its_allocation_after_a_node_is_lost(self):
        job = self.submit_with_gates("2:3", restarts=2)
        self.await_attempt(job, 0, "node1", "node2", "node3")
        self.cluster.cut("node2")
        self.await_attempt(job, 1, "node1", "node3")
        status = self.status(job)
        self.assert_lost(status, attempt=0)
        self.assertEqual(status["engine_state"], "RUNNING")
        wait_until(lambda: self.nodes_of_slurm(job) == "node[1,3]", "noticed by Slurm: the loss of node2")
        self.open_gate("gate-1")
        self.await_attempt(job, 2, "node1", "node3")
        self.assertEqual(self.status(job)["failed_attempt"]["attempt"], 1)
        self.open_gate("gate-2")
        self.assertEqual(self.end_of(job)["exit_code"], 0)
        self.await_engine_state(job, "COMPLETED")
        self.assertRegex(self.peal("status", job).stdout, r"(?m)^restarts +2$")
        self.assertEqual(self.logs(job, "--attempt", 0, "--rank", 1), "[w-1] attempt 0 on node2\n")
        self.assert_no_process()

    def test_a_job_that_needs_the_lost_node_waits_for_it_and_ends_with_its_name(self):
        job = self.submit_with_gates(3, restarts=2, start_timeout="20s")
        self.await_attempt(job, 0, "node1", "node2", "node3")
        self.cluster.kill_all("node2")
        waits = "the job waits for hosts: there is room for 2 ranks, and it needs 3: node2: "
        status = wait_until(lambda: (seen := self.status(job))["reason"].startswith(waits) and seen, "waiting for node2")
        self.assertEqual(status["state"], "preparing")
        self.assert_lost(status, attempt=0)
        status = wait_until(lambda: (seen := self.status(job))["state"] == "failed" and seen, "failed", patience=3 * PATIENCE)
        self.assertEqual((status["cause"], status["exit_code"]), ("host_lost", 137), status)
        self.assertRegex(status["first_failure"], r"^rank 1 \(w 1 on node2\) was lost: ")
        self.assertIn("the job ends: there is room for 2 ranks, and the job needs 3, for 20 s: node2: ", status["reason"])
        self.assertEqual(len(self.logs(job, "--attempt", 0).splitlines()), 3)
        self.assert_no_process()

    def test_a_job_that_loses_the_node_of_its_launcher_starts_again(self):
        job = self.submit_with_gates(2, restarts=2)
        self.await_attempt(job, 0, "node1", "node2")
        self.cluster.cut("node1")
        self.cluster.kill_all("node1")  # the node has no power
        self.open_gate("gate-1")
        self.open_gate("gate-2")
        self.await_state_after_requeue(job, "succeeded", patience=3 * PATIENCE)
        self.assertEqual(self.record(job, "end.json")["requeues"], 1)
        self.assertEqual(sorted(self.logs(job).splitlines()), ["[w-0] attempt 2 on node2", "[w-1] attempt 2 on node3"])
        self.assert_no_process()

    def test_a_job_that_may_not_start_again_says_that_it_has_lost_its_launcher_and_can_be_cancelled(self):
        job = self.submit_with_gates(2, restarts=2, engine_options={"slurm": ["--no-requeue"]})
        self.await_attempt(job, 0, "node1", "node2")
        self.cluster.kill_all("node1")
        status = self.await_state(job, "unknown")
        self.assertEqual(status["reason"], "Slurm has lost node1, on which the launcher ran, and keeps the other nodes for the job. "
                                           f"Slurm does not start the job again (--no-requeue): free the nodes with `peal cancel {job}`")
        self.assert_no_process()  # the agent on node2 has ended its rank
        self.cancel(job)
        self.await_engine_state(job, "CANCELLED")
        self.assertEqual(self.status(job)["state"], "cancelled")


if __name__ == "__main__":
    jobs.main(slurm_cluster.why_not())
