"""Submitted jobs whose roles run in real containers of podman: on this machine, over ssh, in Slurm, and by mpirun.

    jobs_test.py PEAL FIRST    # the program peal, and a program that makes a group
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
for folder in "engines", "jobs":
    sys.path.insert(0, str(HERE.parent / folder))
import images
import jobs
import slurm_cluster
import ssh_hosts
import world
from capabilities import shows
from images import IMAGE, OTHER_IMAGE, Containers
from jobs import LONG, JobTest, role, shell, wait_until
from nasty_values import NASTY, SHOW
from secret_places import CommandLines, assert_unseen

FIRST = pathlib.Path(sys.argv[2]).resolve()
PYTHON = world.ROOT / ".venv/bin/python"  # which containers can see
NODE = HERE / "managed_node.py"
TO_SSH = "--to", "ssh", "-H", "node1,node2"
GIB = 1 << 30


class ContainerJobs(JobTest):
    @classmethod
    def setUpClass(cls):
        cls.hosts = cls.make_hosts(containers=Containers(programs=[jobs.PEAL.parent, FIRST.parent]))
        cls.addClassCleanup(cls.hosts.stop)

    @staticmethod
    def make_hosts(containers):
        return ssh_hosts.SshHosts(2, programs=[jobs.PEAL.parent], containers=containers)

    def tearDown(self):
        self.assert_no_process()
        self.assert_no_container()

    def podman(self, *arguments, host=world.LAUNCHER):
        run = self.hosts.run(["podman", *arguments], host)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def containers(self, host):
        return self.podman("ps", "--all", "--format={{.Names}}", host=host).split()

    def assert_no_container(self):
        for host in self.hosts.names:
            wait_until(lambda: not self.containers(host), f"removed: the containers on {host}")

    def inspect(self, host=world.LAUNCHER):
        """The containers of the host, by rank."""
        found = json.loads(self.podman("inspect", *self.containers(host), host=host))
        return {int(one["Config"]["Labels"]["peal.rank"]): one for one in found}

    def volume(self):
        return {"engine_options": {"container": [f"--volume={self.folder}:{self.folder}"]}}

    def newest(self):
        return json.loads(self.peal("jobs", "--json").stdout)[0]["id"]

    def start_long(self, *options, to=("--to", "local"), **fields):
        """A job of two nodes that ignore requests to end."""
        script = f"trap '' TERM; echo ready; sleep {LONG} & while :; do sleep 1; done"
        job = self.submit({"grace": "300ms", **fields, "roles": [shell(script, image=IMAGE, nodes=2)]}, *options, to=to)
        wait_until(lambda: self.logs(job).count("ready") == 2, "ready")
        return job


class Managed(ContainerJobs):
    """The job of the managed service's guide: a master and two workers."""
    runner = "local"

    @classmethod
    def setUpClass(cls):
        if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
            raise unittest.SkipTest(f"{PYTHON} has no torch; scripts/bootstrap installs it there if there is no other")
        super().setUpClass()

    def document(self, master_type, worker_type, worker_image=None, go=""):
        """The file as users wrote it for the service. The workers run until the end of the master ends the job."""
        command = f"{PYTHON} {NODE} {go}"
        worker = {"containerCommand": ["sh", "-c", f"{command}; exec sleep {LONG}"]}
        if worker_image:
            worker["imageUri"] = worker_image
        return json.dumps({"trainingInput": {
            "scaleTier": "CUSTOM", "masterType": master_type, "workerType": worker_type, "workerCount": "2",
            "masterConfig": {"imageUri": IMAGE, "containerCommand": ["sh", "-c", command]}, "workerConfig": worker}})

    def seen(self, job):
        """The first output of each node, by its label."""
        found = {}
        for line in self.logs(job).splitlines():
            label, text = line.split(" ", 1)
            if text.startswith("{"):
                found[label] = json.loads(text)
        return found

    def assert_trained(self, job):
        weights = re.findall(r"^\[(.*)\] weights (.*)$", self.logs(job), re.MULTILINE)
        self.assertEqual(sorted(label for label, _ in weights), ["master-0", "worker-0", "worker-1"])
        self.assertEqual(len({values for _, values in weights}), 1, weights)

    @shows("images")
    def test_the_job_trains_and_its_nodes_have_the_variables_and_the_image_of_the_master(self):
        job = self.submit(self.document("n1-standard-1", "n1-standard-1"))
        status = self.end_of(job)
        self.assertEqual((status["state"], status["exit_code"]), ("succeeded", 0), self.logs(job))
        self.assert_trained(job)
        seen = self.seen(job)
        nodes = ["[master-0]", "[worker-0]", "[worker-1]"]
        self.assertEqual([seen[node]["RANK"] for node in nodes], ["0", "1", "2"])
        self.assertEqual({(one["WORLD_SIZE"], one["PEAL_TEST_IMAGE"]) for one in seen.values()}, {("3", IMAGE)})
        self.assertEqual(len({(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in seen.values()}), 1)
        self.assertEqual({one["LOCAL_RANK"] for one in seen.values()}, {None})
        for node in nodes:
            spec = json.loads(seen[node]["CLUSTER_SPEC"])
            self.assertEqual(len(spec["cluster"]["worker"]), 2)
            kind, index = node.strip("[]").split("-")
            self.assertEqual((spec["task"]["type"], spec["task"]["index"]), (kind, int(index)))
            self.assertEqual(json.loads(seen[node]["TF_CONFIG"])["cluster"], spec["cluster"])

    def test_machine_types_are_limits_and_the_workers_may_have_their_own_image(self):
        go = self.path("go")
        document = self.document("n1-standard-96", "n1-standard-1", worker_image=OTHER_IMAGE, go=go)
        # The managed form has no field for volumes, so the job goes through peal's own form.
        printed = self.peal("submit", self.write(document), "--print")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        volume = f"engine_options: {{container: ['--volume={self.folder}:{self.folder}']}}\n"
        run = self.peal("submit", self.write(printed.stdout + volume, "own"), "--to", "local")
        self.assertIn("CPUs, and a node of the role master asks for 96: their containers have no limit of CPUs", run.stderr)
        job = run.stdout.strip()
        wait_until(lambda: len(self.seen(job)) == 3, "seen: all nodes")
        limits = {rank: one["HostConfig"] for rank, one in self.inspect().items()}
        self.assertEqual([limits[rank]["Memory"] for rank in range(3)],
                         [360 * GIB, 3.75 * GIB, 3.75 * GIB])
        self.assertEqual([limits[rank]["NanoCpus"] for rank in range(3)], [0, 10**9, 10**9])
        seen = self.seen(job)
        self.assertEqual((seen["[master-0]"]["PEAL_TEST_IMAGE"], seen["[worker-1]"]["PEAL_TEST_IMAGE"]),
                         (IMAGE, OTHER_IMAGE))
        self.assertEqual(seen["[worker-0]"]["shm"], 1.875 * GIB)
        text = self.peal("status", job).stdout
        self.assertIn(f"image      {IMAGE} (master)\nimage      {OTHER_IMAGE} (worker)\n", text)
        self.assertEqual(json.loads(self.peal("status", job, "--json").stdout)["images"],
                         {"master": IMAGE, "worker": OTHER_IMAGE})
        go.touch()
        self.assertEqual(self.end_of(job)["state"], "succeeded")
        self.assert_trained(job)

    def test_a_failed_master_gives_its_exit_code(self):
        document = {"trainingInput": {"masterConfig": {"imageUri": IMAGE, "containerCommand": ["sh", "-c", "exit 3"]}}}
        run = self.stream(document)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertEqual(self.status("job")["cause"], "program")


class Runs(ContainerJobs):
    runner = "ssh"

    @shows("images")
    def test_ranks_on_several_hosts_run_in_containers_there_and_make_a_group(self):
        run = self.stream({"roles": [role(FIRST, image=IMAGE, nodes=2, ranks_per_node=2)]},
                          to=("--to", "ssh", "-H", "node1:2,node2:2"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"rank \d has 12", run.stdout)), 4, run.stdout)

    def test_a_role_without_an_image_runs_beside_one_with_an_image(self):
        script = "echo $RANK/$WORLD_SIZE ${PEAL_TEST_IMAGE:-none}"
        run = self.stream({"roles": [shell(script, name="a", image=OTHER_IMAGE), shell(script, name="b")]})
        self.assertEqual(sorted(run.stdout.splitlines()), [f"[a-0] 0/2 {OTHER_IMAGE}", "[b-0] 1/2 none"], run.stderr)

    def test_values_arrive_byte_for_byte(self):
        run = self.stream({"env": NASTY, "roles": [role("python3", "-c", SHOW, *NASTY, image=IMAGE)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), NASTY)

    def test_the_command_starts_in_the_directory_of_the_image_or_of_the_job(self):
        for directory, expected in ("", "/"), ("/var", "/var"):
            run = self.stream({"directory": directory, "roles": [role("pwd", image=IMAGE)]}, to=TO_SSH)
            self.assertEqual((run.returncode, run.stdout), (0, f"{expected}\n"), run.stderr)

    def test_the_secret_is_in_no_command_line_and_in_no_variable_of_a_container(self):
        script = "cat $PEAL_SECRET_FILE; echo; exec sleep " + str(LONG)
        with CommandLines() as lines:
            job = self.submit({"roles": [shell(script, image=IMAGE)]})
            secret = wait_until(lambda: self.logs(job).strip(), "printed: the secret").encode()
            shown = json.dumps(self.inspect())
            for log in self.jobs.glob(f"{job}/attempt-*/*.out"):  # the rank has printed its secret
                log.unlink()
            self.cancel(job)
            self.end_of(job)
        assert_unseen(self, [secret], lines, ["container-rank"], folders=[self.jobs], texts={"inspect": shown})

    def test_each_attempt_has_containers_of_its_own(self):
        script = f"touch {self.folder}/$PEAL_ATTEMPT-$(cat /proc/sys/kernel/random/uuid); [ $PEAL_ATTEMPT = 1 ]"
        run = self.stream({"restarts": {"most": 2, "first_pause": "10ms"}, **self.volume(),
                           "roles": [shell(script, image=IMAGE)]})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(path.name[0] for path in self.folder.glob("?-*")), ["0", "1"])


class ByMpirun:
    program = None

    @shows("images")
    def test_agents_that_mpirun_starts_run_containers(self):
        mpirun = world.find_program(self.program)
        if not mpirun:
            self.skipTest(f"{self.program} is not installed")
        script = self.path("mpi/mpirun")
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\nexec {mpirun} "$@"\n')
        script.chmod(0o755)
        run = self.stream({"roles": [role(FIRST, image=IMAGE, nodes=2)]}, to=("--to", "mpi", "-H", "node1,node2"),
                          env={"PATH": f"{script.parent}:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), ["[w-0] rank 0 has 6", "[w-1] rank 1 has 6"])


class ByOpenMpi(ByMpirun, ContainerJobs):
    runner, program = "openmpi", "mpirun.openmpi"


class ByMpich(ByMpirun, ContainerJobs):
    runner, program = "mpich", "mpirun.mpich"


class InSlurm(ContainerJobs):
    runner = "slurm"

    @staticmethod
    def make_hosts(containers):
        if reason := slurm_cluster.why_not():
            raise unittest.SkipTest(reason)
        return slurm_cluster.SlurmCluster(2, containers=containers)

    @shows("images")
    def test_each_role_runs_in_its_image(self):
        script = "echo $RANK/$WORLD_SIZE $PEAL_TEST_IMAGE"
        run = self.stream({"roles": [shell(script, name="a", image=IMAGE), shell(script, name="b", image=OTHER_IMAGE)]},
                          to=("--to", "slurm"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [f"[a-0] 0/2 {IMAGE}", f"[b-0] 1/2 {OTHER_IMAGE}"])
        run = self.stream({"roles": [shell("exit 4", image=IMAGE, nodes=2)]}, to=("--to", "slurm"))
        self.assertEqual(run.returncode, 4, run.stderr)


class Ends(ContainerJobs):
    def test_images_that_are_missing_are_named_at_once_on_all_hosts(self):
        script = f"touch {self.path('started')}"
        run = self.stream({**self.volume(), "roles": [shell(script, name=name, image=image) for name, image in
                                                      (("a", IMAGE), ("b", "no-image-1"), ("c", "no-image-2"))]},
                          to=("--to", "ssh", "-H", "node1:2,node2"))
        self.assertEqual((run.returncode, run.stdout), (126, ""), run.stderr)
        status = self.status("job")
        self.assertEqual(status["cause"], "not_started")
        for host, missing, of_others in ("node1", "no-image-1", "no-image-2"), ("node2", "no-image-2", "no-image-1"):
            self.assertRegex(status["first_failure"], rf'{host}: the image "{missing}" is not here')
            self.assertNotRegex(status["first_failure"], rf"{host}: [^;]*{of_others}")
        self.assertFalse(self.path("started").exists())

    def test_a_container_that_cannot_start_is_told_apart_from_a_program_that_fails(self):
        for options, command, code, cause in (
                (["--no-such-option"], ["true"], 125, "not_started"), ([], ["sh", "-c", "exit 125"], 125, "program"),
                ([], ["/app/train"], 127, "not_started"), ([], ["sh", "-c", "exit 127"], 127, "program")):
            run = self.stream({"restarts": {"most": 1, "first_pause": "10ms"},
                               "engine_options": {"container": options}, "roles": [role(*command, image=IMAGE)]})
            self.assertEqual(run.returncode, code, run.stderr)
            job = self.newest()
            self.assertEqual(self.status(job)["cause"], cause)
            # The next attempt would not start either.
            attempts = [path.name for path in self.jobs.glob(f"{job}/attempt-*")]
            self.assertEqual(len(attempts), 1 if cause == "not_started" else 2, attempts)

    def test_gpus_that_the_host_lacks_are_named_in_words_of_peal(self):
        options = ["--device=nvidia.com/gpu=no-such"]  # which a host with GPUs lacks, too
        run = self.stream({"engine_options": {"container": options},
                           "roles": [role("true", image=IMAGE, resources={"gpus": 1})]})
        self.assertEqual(run.returncode, 126, run.stderr)
        self.assertRegex(run.stdout + run.stderr, "this host has no GPU|The engine does not find the GPUs")
        self.assertEqual(self.status(self.newest())["cause"], "not_started")

    def test_the_cause_of_a_rank_beyond_its_memory_is_out_of_memory(self):
        for to in ("--to", "local"), TO_SSH:
            run = self.stream({"roles": [role("python3", "-c", "print(len(bytearray(10**9)))", image=IMAGE,
                                              resources={"memory": "64M"})]}, to=to)
            self.assertEqual(run.returncode, 137, run.stderr)
            self.assertEqual(self.status(self.newest())["cause"], "out_of_memory")

    def test_a_program_that_prints_the_sentences_about_ends_cannot_pretend_an_end(self):
        for sentence, end, code, cause in (
                ("the container c did not start: x", "exit 1", 1, "program"),
                ("the container c did not start, because x", "exit 1", 1, "program"),
                ("out of memory: the kernel killed a process of this rank", "kill -KILL $$", 137, "signal")):
            with self.subTest(sentence=sentence):
                run = self.stream({"roles": [shell(f"echo 'peal: {sentence}' >&2; {end}", image=IMAGE)]})
                self.assertEqual(run.returncode, code, run.stderr)
                self.assertEqual(self.status(self.newest())["cause"], cause)

    def test_a_killed_rank_without_a_limit_of_memory_has_a_signal_as_the_cause(self):
        run = self.stream({"roles": [shell("kill -KILL $$", image=IMAGE)]})
        self.assertEqual(run.returncode, 137, run.stderr)
        self.assertEqual(self.status(self.newest())["cause"], "signal")

    def test_the_entrypoint_of_the_image_may_be_missing_too(self):
        run = self.stream({"roles": [{"name": "w", "image": IMAGE, "args": ["/app/train"]}]})
        self.assertEqual(run.returncode, 127, run.stderr)
        self.assertIn(f"the image {IMAGE} lacks its own command", run.stdout + run.stderr)
        run = self.stream({"roles": [{"name": "w", "image": IMAGE, "args": ["sh", "-c", "exit 5"]}]})
        self.assertEqual(run.returncode, 5, run.stderr)

    def test_files_and_relative_directories_are_refused(self):
        self.path("data").touch()
        for field, value in ("files", [{"from": "data", "to": "data"}]), ("directory", "here"):
            run = self.peal("submit", self.write({field: value, "roles": [role("true", image=IMAGE)]}), "--to", "local")
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertIn(f"{field}: the role w runs in a container", run.stderr)

    def test_a_cancelled_job_leaves_no_container(self):
        job = self.start_long(to=TO_SSH)
        self.cancel(job)
        self.assertEqual(self.end_of(job)["state"], "cancelled")

    def test_a_job_whose_launcher_is_killed_leaves_no_container(self):
        job = self.start_long(to=TO_SSH)
        os.kill(self.launcher_of(job), signal.SIGKILL)
        self.assertEqual(self.end_of(job)["state"], "failed")


if __name__ == "__main__":
    jobs.main(images.why_not() or ssh_hosts.why_not())
