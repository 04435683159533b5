"""`peal run` in an allocation of Slurm: a real cluster in namespaces (tests/engines), with three nodes.

    slurm_test.py PEAL FIRST    # the program peal, and a program that makes a group
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import slurm_cluster
from slurm_cluster import SlurmCluster

PEAL, FIRST = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
LONG = 100_000  # seconds: a rank that ends only because it is ended


def wait_until(condition, what):
    end = time.monotonic() + 60
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after 60 s: not {what}")
        time.sleep(0.05)
    return result


class TestOfACluster(unittest.TestCase):
    def run_in(self, wanted, *arguments):
        """`peal run` in an allocation: salloc passes on its output and its exit code."""
        run = self.cluster.run(["salloc", "--quiet", *wanted, PEAL, "run", *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.cluster.wait_until_idle()
        return run


class OneMachine(TestOfACluster):
    """All nodes have the same host name, as with several slurmd on one machine."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = SlurmCluster(3)
        cls.addClassCleanup(cls.cluster.stop)

    def test_ranks_are_on_the_nodes_as_the_tasks_were_asked_for(self):
        run = self.run_in(["--nodes=3", "--ntasks=4"], "sh", "-c",
                          "echo $SLURMD_NODENAME $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [
            "[node1:0] node1 0/4 0/2 0", "[node1:1] node1 1/4 1/2 0", "[node2:2] node2 2/4 0/1 1",
            "[node3:3] node3 3/4 0/1 2"])

    def test_ranks_of_all_nodes_make_a_group(self):
        run = self.run_in(["--nodes=3", "--ntasks=6"], FIRST)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"rank \d has 18", run.stdout)), 6, run.stdout)

    def test_a_batch_script_gets_the_exit_code_of_the_first_failure(self):
        script = self.cluster.folder / "job.sh"
        script.write_text(f"#!/bin/sh\nexec {PEAL} run -n 3 sh -c '[ $RANK != 2 ] || exit 9; sleep {LONG}'\n")
        output = self.cluster.folder / "job.out"
        run = self.cluster.run(["sbatch", "--wait", "--nodes=3", f"--output={output}", script], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        self.assertEqual(run.returncode, 9, run.stdout)
        self.assertRegex(output.read_text(), r"peal: rank 2 on node3 \(pid \d+\) ended with exit code 9")
        self.cluster.wait_until_idle()

    def test_without_a_number_of_tasks_the_number_of_ranks_must_be_given(self):
        run = self.run_in(["--nodes=2"], "true")
        self.assertEqual(run.returncode, 2)
        self.assertIn("how many ranks on the 2 nodes of this job of Slurm? Use -n", run.stderr)

    def test_too_many_ranks_and_hosts_of_another_job_are_refused(self):
        run = self.run_in(["--nodes=2", "--ntasks=2"], "-n", "64", "true")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"64 ranks do not fit: the nodes of this job of Slurm have room for \d+; give sbatch")
        run = self.run_in(["--nodelist=node1,node2", "--nodes=2", "--ntasks=2"], "--launcher", "slurm", "-H", "node1,node3", "true")
        self.assertEqual(run.returncode, 2)
        self.assertIn("node3 is not a node of this job of Slurm, which has node1, node2; --launcher ssh", run.stderr)

    def test_ranks_do_not_have_the_variables_of_the_agents_task(self):
        run = self.run_in(["--nodes=2", "--ntasks=2"], "--no-prefix", "env")
        names = {line.split("=")[0] for line in run.stdout.splitlines()}
        self.assertTrue({"SLURM_JOB_ID", "SLURMD_NODENAME"} <= names, run.stderr)
        self.assertFalse({"SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"} & names)

    def test_the_components_of_a_heterogeneous_job_are_one_world(self):
        run = self.run_in(["--nodes=1", "--ntasks=1", ":", "--nodes=2", "--ntasks=2"], FIRST)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"rank \d has 9", run.stdout)), 3, run.stdout)

    def test_an_option_of_ssh_is_not_passed_to_srun(self):
        run = self.run_in(["--nodes=2", "--ntasks=2"], "-p", "2222", "true")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--ssh-port is an option of ssh, and srun starts these ranks: leave it out, or give --launcher "
                      "ssh", run.stderr)

    def test_a_launcher_that_the_user_names_starts_the_agents_on_the_nodes(self):
        # An ssh that only shows its arguments.
        ssh = self.cluster.folder / "users-bin/ssh"
        ssh.parent.mkdir()
        ssh.write_text("#!/bin/sh\necho \"ssh $*\" >&2\n")
        ssh.chmod(0o755)
        run = self.cluster.run(["salloc", "--quiet", "--nodes=2", "--ntasks=2", "env", f"PATH={ssh.parent}:{os.environ['PATH']}",
                                PEAL, "run", "--launcher", "ssh", "-p", "2222", "true"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.cluster.wait_until_idle()
        self.assertEqual(run.returncode, 1)
        for node in ("node1", "node2"):
            self.assertRegex(run.stderr, rf"  {node}: .*ssh .*-p 2222 -- {node} ")

    def test_hosts_of_the_user_go_before_the_allocation(self):
        run = self.run_in(["--nodes=2", "--ntasks=2"], "-n", "2", "-H", "localhost:2", "sh", "-c", "echo $LOCAL_WORLD_SIZE")
        self.assertEqual(sorted(run.stdout.splitlines()), ["[0] 2", "[1] 2"], run.stderr)

    def test_a_cancelled_job_leaves_no_process(self):
        job = self.cluster.popen(["salloc", "--quiet", "--nodes=3", "--ntasks=3", PEAL, "run", "sh", "-c",
                                  f"setsid sleep {LONG} & echo ready $SLURM_JOB_ID; sleep {LONG}"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        number = [job.stdout.readline().split()[-1] for _ in range(3)][0]
        self.cluster.run(["scancel", number])
        job.communicate(timeout=60)
        self.cluster.wait_until_idle()
        wait_until(lambda: not self.sleepers(), "without ranks")

    def sleepers(self):
        return [one for one in self.cluster.processes(self.cluster.launcher) if one.command[:2] == ("sleep", str(LONG))]


class OwnHosts(TestOfACluster):
    """Each node is a host of its own, which can be lost."""

    def setUp(self):
        self.cluster = SlurmCluster(3, own_hosts=True)
        self.addCleanup(self.cluster.stop)

    def start(self, *arguments):
        run = self.cluster.popen(["salloc", "--quiet", "--no-kill", "--nodes=3", "--ntasks=6", PEAL, "run", *arguments],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def test_a_job_goes_on_inside_its_allocation_after_a_node_is_lost(self):
        run = self.start("-n", "4", "--max-restarts", "1", "sh", "-c",
                         f"echo $SLURMD_NODENAME $PEAL_ATTEMPT $RANK; [ $PEAL_ATTEMPT = 1 ] || sleep {LONG}")
        for _ in range(4):
            self.assertRegex(run.stdout.readline(), r" 0 \d$")
        begin = time.monotonic()
        self.cluster.cut("node2")
        out, err = run.stdout.read(), run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 0, err)
        self.assertRegex(err, r"host node2 was lost with ranks 2 and 3 after .* no sign of life for [\d.]+ s")
        self.assertEqual(sorted(out.splitlines()), ["[node1:0] node1 1 0", "[node1:1] node1 1 1",
                                                    "[node3:2] node3 1 2", "[node3:3] node3 1 3"])
        print(f"recovered in {time.monotonic() - begin:.1f} s")

    def test_the_ranks_of_a_shell_of_salloc_are_on_its_only_node(self):
        run = self.run_in(["--nodes=1", "--ntasks=2", "--nodelist=node3"], "sh", "-c", "hostname")
        self.assertEqual(sorted(run.stdout.splitlines()), ["[node3:0] node3", "[node3:1] node3"], run.stderr)

    def test_an_agent_that_is_killed_is_a_lost_host(self):
        run = self.start("-n", "4", "sh", "-c", f"echo ready; sleep {LONG}")
        for _ in range(4):
            run.stdout.readline()
        agent = next(one for one in self.cluster.processes("node2") if one.command[-1] == "agent")
        os.kill(agent.pid, signal.SIGKILL)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 137, err)
        self.assertIn("host node2 was lost with ranks 2 and 3", err)


if __name__ == "__main__":
    if slurm_cluster.why_not():
        print(slurm_cluster.why_not())
        sys.exit(slurm_cluster.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
