"""The cluster of slurm_cluster.py: jobs run on its nodes, nodes die, and nothing remains of it.

Called by ctest.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import process_list
import slurm_cluster
import world
from slurm_cluster import SlurmCluster

HERE = pathlib.Path(__file__).resolve().parent
SLEEP = "86400"
IMPATIENT = {"SlurmdTimeout": "3", "MessageTimeout": "3"}  # in seconds: Slurm notices a dead node in about 15

# A test process with a cluster and a running job.
VICTIM = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import slurm_cluster, slurm_cluster_test

cluster = slurm_cluster.SlurmCluster()
job = cluster.popen(["srun", "-N3", "sleep", {SLEEP!r}])
slurm_cluster_test.wait_for_tasks(cluster, cluster.launcher, 3)

print(cluster.folder, *(one.pid for one in cluster.all_processes(cluster.launcher)), flush=True)
sys.stdin.read()
"""


def tasks(cluster, host):
    return [one for one in cluster.processes(host) if one.command[1:] == (SLEEP,)]


def wait_for_tasks(cluster, host, number):
    return world.wait_until(lambda: len(found := tasks(cluster, host)) == number and found,
                            f"running: {number} tasks on {host}")


def is_alive(pid):
    process = process_list.read(pid)
    return process is not None and process.state != "Z"


class ClusterTest(unittest.TestCase):
    def start_cluster(self, *arguments, **options):
        self.cluster = SlurmCluster(*arguments, **options)
        self.addCleanup(self.cluster.stop)
        self.host = self.cluster.launcher

    def start_job(self, *arguments):
        job = self.cluster.popen(["srun", *arguments, "sleep", SLEEP], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def wait_for_state(self, node, state):
        world.wait_until(lambda: self.cluster.states().get(node, "").startswith(state), f"{state}: {node}")


class OneHost(ClusterTest):
    """The nodes are on one host."""

    def test_a_job_runs_on_all_nodes_which_have_the_same_host_name(self):
        self.start_cluster()
        run = self.cluster.run(["srun", "-N3", "sh", "-c", "echo $(hostname) $SLURMD_NODENAME $SLURM_NODEID"])
        self.assertEqual(sorted(run.stdout.splitlines()),
                         ["launcher node1 0", "launcher node2 1", "launcher node3 2"])

    def test_a_batch_job_runs_and_its_end_is_known_to_scontrol_but_not_to_sacct(self):
        self.start_cluster()
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "job.sh")
            script.write_text(f"#!/bin/sh\necho $SLURM_JOB_NUM_NODES nodes > {folder}/output\nexit 5\n")
            run = self.cluster.run(["sbatch", "--parsable", "--wait", "-N2", "-o", "/dev/null", script])
            self.assertEqual(run.returncode, 5, run.stdout)
            self.assertEqual(pathlib.Path(folder, "output").read_text(), "2 nodes\n")
            shown = self.cluster.run(["scontrol", "show", "job", run.stdout.split()[0]]).stdout
            self.assertIn("ExitCode=5:0", shown)
            self.assertIn("accounting storage is disabled", self.cluster.run(["sacct"]).stdout)

    def test_after_the_death_of_slurmd_its_task_lives_on_and_the_node_is_down_until_the_restart(self):
        self.start_cluster(settings=IMPATIENT)
        self.start_job("-N1", "-w", "node2")
        task, = wait_for_tasks(self.cluster, self.host, 1)
        self.cluster.kill_slurmd("node2")
        self.wait_for_state("node2", "down")
        self.assertTrue(is_alive(task.pid))
        self.cluster.restart("node2")
        self.cluster.wait_until_idle(["node2"])

    def test_a_drained_node_gets_no_job_until_it_is_resumed(self):
        self.start_cluster()
        self.cluster.drain("node1")
        immediate = ["srun", "--immediate=1", "-w", "node1", "true"]
        self.assertNotEqual(self.cluster.run(immediate).returncode, 0)
        self.cluster.resume("node1")
        self.cluster.wait_until_idle(["node1"])
        self.assertEqual(self.cluster.run(["srun", "-w", "node1", "true"]).returncode, 0)

    def test_a_task_lives_on_when_the_controller_dies_and_the_controller_knows_it_after_the_restart(self):
        self.start_cluster()
        self.start_job("-N1")
        task, = wait_for_tasks(self.cluster, self.host, 1)
        self.cluster.kill_controller()
        self.cluster.restart_controller()
        jobs = world.wait_until(lambda: self.cluster.run(["squeue", "-h", "-o", "%T"]).stdout, "known: the job")
        self.assertEqual(jobs, "RUNNING\n")
        self.assertTrue(is_alive(task.pid))

    def test_nothing_remains_after_stop_while_a_job_runs(self):
        self.start_cluster()
        self.start_job("-N3")
        wait_for_tasks(self.cluster, self.host, 3)
        pids = [one.pid for one in self.cluster.all_processes(self.host)]
        self.assertGreaterEqual(len(pids), 12)  # the daemons, srun, 3 tasks, and slurmstepd of each
        self.cluster.stop()
        self.assertFalse(any(map(is_alive, pids)))
        self.assertFalse(self.cluster.folder.exists())


class OwnHosts(ClusterTest):
    """Each node is a host of its own."""

    def test_the_nodes_have_their_own_names_and_files(self):
        self.start_cluster(2, own_hosts=True, own_files=True)
        script = "hostname; touch /tmp/of-node-$SLURM_NODEID; ls /tmp/of-node*"
        run = self.cluster.run(["srun", "-N2", "sh", "-c", script])
        self.assertEqual(sorted(run.stdout.split()), ["/tmp/of-node-0", "/tmp/of-node-1", "node1", "node2"])

    def test_a_node_that_is_cut_is_down_until_it_is_restored(self):
        self.start_cluster(2, own_hosts=True, settings=IMPATIENT)
        self.cluster.cut("node2")
        self.wait_for_state("node2", "down")
        self.assertEqual(self.cluster.run(["srun", "-w", "node1", "hostname"]).stdout, "node1\n")
        self.cluster.restore("node2")
        self.cluster.wait_until_idle()

    def test_the_tasks_of_a_killed_host_die_with_it_and_a_restored_host_serves_again(self):
        self.start_cluster(2, own_hosts=True)
        job = self.start_job("-N2")
        task, = wait_for_tasks(self.cluster, "node2", 1)
        self.cluster.kill_all("node2")
        self.assertFalse(is_alive(task.pid))
        job.kill()  # Slurm does not notice that the node started again in time, and would wait for its task
        self.cluster.restore("node2")
        self.cluster.wait_until_idle()
        self.assertEqual(self.cluster.run(["srun", "-w", "node2", "hostname"]).stdout, "node2\n")


class Ends(unittest.TestCase):
    def test_nothing_remains_after_sigkill_of_the_test_while_a_job_runs(self):
        with subprocess.Popen([sys.executable, "-B", "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as victim:
            folder, *pids = victim.stdout.readline().split()
            self.assertGreaterEqual(len(pids), 12)
            victim.kill()
        world.wait_until(lambda: not any(is_alive(int(pid)) for pid in pids), f"dead: {pids}")
        world.wait_until(lambda: not pathlib.Path(folder).exists(), f"removed: {folder}")

    def test_a_command_runs_in_a_cluster_and_its_exit_code_is_passed_on(self):
        run = subprocess.run([sys.executable, "-B", HERE / "slurm_cluster.py", "--nodes=1", "--",
                              "srun", "sh", "-c", "hostname; exit 7"], stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.DEVNULL, timeout=world.PATIENCE)
        self.assertEqual(run.stdout, "launcher\n")
        self.assertEqual(run.returncode, 7)


if __name__ == "__main__":
    if reason := slurm_cluster.why_not():
        print("SKIPPED:", reason)
        sys.exit(slurm_cluster.SKIPPED)
    unittest.main()
