"""`peal run --image`: ranks in real containers of podman, on this machine and on hosts with agents.

    containers_test.py PEAL FIRST STEPS STOPPING

FIRST makes a group, STEPS runs until it is killed, and STOPPING until it is asked to stop.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import images
import ssh_hosts
import world
from capabilities import shows
from images import IMAGE, Containers
from nasty_values import NASTY, SHOW
from secret_places import CommandLines, assert_unseen
from world import wait_until

PEAL, FIRST, STEPS, STOPPING = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
VALUES = {**NASTY, "PATH": "/usr/bin:/bin:/of the job", "LD_LIBRARY_PATH": "/of the job"}
SECRET = "0123456789abcdef" * 4
SLEEP = ["sleep", "86400"]


class TestOfContainers(unittest.TestCase):
    maxDiff = None
    runner = "container"
    refuses = {"elastic": "--image does not work in an elastic job: leave it out"}

    @classmethod
    def setUpClass(cls):
        cls.hosts = ssh_hosts.SshHosts(2, programs=[PEAL.parent], own_files=True,
                                       containers=Containers(programs=[PEAL.parent]))
        cls.addClassCleanup(cls.hosts.stop)

    def tearDown(self):
        for name in self.hosts.names:
            wait_until(lambda: not self.commands(name), f"{name} is empty: {self.commands(name)}")
            self.assertEqual(self.podman("ps", "--all", "--format={{.Names}}", host=name), "")

    def podman(self, *arguments, host=world.LAUNCHER):
        run = self.hosts.run(["podman", *arguments], host)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def peal(self, *arguments, image=IMAGE, **options):
        """In a folder of the test, because the conmon of podman 4.3 leaves a file `oom` where podman was started."""
        return self.hosts.run([PEAL, "run", "--image", image, *arguments], cwd=self.hosts.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **options)

    def start(self, *arguments, **options):
        run = self.hosts.popen([PEAL, "run", "--image", IMAGE, *arguments], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    @staticmethod
    def write_engine(folder, script):
        """An engine that is a shell script; its first argument is the command."""
        path = pathlib.Path(folder, "podman")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def commands(self, host):
        return [" ".join(one.command) for one in self.hosts.processes(host)
                if one.command and not one.command[0].startswith("sshd:")]

    def pids(self, host, text):
        return [one.pid for one in self.hosts.processes(host) if text in " ".join(one.command)]

    def await_pids(self, host, text, count=1):
        wait_until(lambda: len(self.pids(host, text)) >= count, f"{count} processes {text} on {host}")
        return self.pids(host, text)


class Runs(TestOfContainers):
    @shows("images")
    def test_each_rank_runs_in_a_container_of_the_image(self):
        run = self.peal("-n", "2", "sh", "-c", "echo $RANK/$WORLD_SIZE $PEAL_TEST_IMAGE")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [f"[0] 0/2 {IMAGE}", f"[1] 1/2 {IMAGE}"])

    @shows("a group of ranks on several nodes")
    def test_ranks_on_other_hosts_run_in_containers_there_and_sum_numbers(self):
        run = self.peal("-n", "4", "-H", "node1:2,node2:2", FIRST)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(re.findall(r"rank \d has 12", run.stdout)), 4, run.stdout)

    @shows("values byte for byte")
    def test_variables_arrive_byte_for_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            options = [word for name in VALUES for word in ("-x", name)]
            command = [PEAL, "run", "--no-prefix", "-n", "1", "--image", IMAGE, *options, "/usr/bin/python3", "-c",
                       SHOW, *VALUES]
            # A shell cannot set a name with a dot, and the commands of the world need their own PATH.
            script = pathlib.Path(folder, "start.py")
            script.write_text(f"import os\nos.execve({str(PEAL)!r}, {list(map(str, command))!r}, "
                              f"{{**os.environ, **{VALUES!r}}})\n")
            run = self.hosts.run([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout), VALUES)

    def test_variables_of_the_host_do_not_hide_those_of_the_image(self):
        run = self.peal("--no-prefix", "-n", "1", "sh", "-c", "echo $PATH $ONLY_HERE",
                        env={"ONLY_HERE": "of the host"})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("of the host", run.stdout)
        self.assertTrue(run.stdout.startswith("/usr/local/sbin:"), run.stdout)

    def test_ranks_on_one_host_share_memory(self):
        run = self.start("-n", "2", "--grace", "0", STEPS)
        line = next(line for line in run.stdout if "step 100 " in line)
        self.assertRegex(line, r"maps [1-9]")
        run.terminate()
        run.wait()

    @shows("secret unseen")
    def test_the_secret_is_in_no_command_line_and_in_no_variable_of_a_container(self):
        with CommandLines() as lines:
            run = self.start("-n", "1", "sh", "-c", "cat $PEAL_SECRET_FILE | md5sum; exec sleep 86400",
                             env={"PEAL_SECRET": SECRET})
            self.assertIn("[0] ", run.stdout.readline())
        name, = self.podman("ps", "--format={{.Names}}").split()
        assert_unseen(self, [SECRET.encode()], lines, ["podman\0run"], texts={"inspect": self.podman("inspect", name)})
        mounts = json.loads(self.podman("inspect", "--format={{json .Mounts}}", name))
        source, = (pathlib.Path(one["Source"]) for one in mounts if one["Destination"] == "/run/peal-secret")
        self.assertEqual(source.parent.stat().st_mode & 0o077, 0)
        run.terminate()
        run.wait()
        self.assertFalse(source.parent.exists())


class Ends(TestOfContainers):
    @shows("exit code of the first failure")
    def test_the_exit_code_of_the_program_is_that_of_the_job(self):
        for code in 3, 125, 127:
            self.assertEqual(self.peal("-n", "1", "sh", "-c", f"exit {code}").returncode, code)

    def test_a_signal_that_ends_the_program_is_named(self):
        run = self.peal("-n", "1", "sh", "-c", "kill -SEGV $$")
        self.assertEqual(run.returncode, 128 + signal.SIGSEGV)
        self.assertIn("SIGSEGV", run.stderr)

    def test_a_command_that_the_image_lacks_or_cannot_execute_is_named_with_the_image(self):
        for command, code, text in (("no-such-program", 127, "lacks"), ("./train", 127, "lacks"),
                                    ("/etc/passwd", 126, "cannot execute")):
            with self.subTest(command=command):
                run = self.peal("-n", "1", command)
                self.assertEqual(run.returncode, code, run.stderr)
                self.assertRegex(run.stderr, rf"the container \S+ did not start: the image {IMAGE} {text} the command {command}")

    def test_without_an_init_the_engine_tells_that_the_command_is_missing(self):
        run = self.peal("-n", "1", "--container-option=--init=false", "no-such-program")
        self.assertEqual(run.returncode, 127, run.stderr)
        self.assertIn(f"the image {IMAGE} lacks the command no-such-program", run.stderr)

    def test_a_script_whose_interpreter_the_image_lacks_did_not_start(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "train")
            script.write_text("#!/usr/bin/no-such-interpreter\n")
            script.chmod(0o755)
            run = self.peal("-n", "1", f"--container-option=--volume={folder}:{folder}", script)
        self.assertEqual(run.returncode, 127, run.stderr)
        self.assertRegex(run.stderr, f"the image {IMAGE} lacks the command {script}, or an interpreter")

    def test_a_container_that_cannot_start_is_the_engines_error(self):
        run = self.peal("-n", "1", "--container-option=--no-such-option", "true")
        self.assertEqual(run.returncode, 125, run.stderr)
        self.assertIn("did not start", run.stderr)

    def test_an_image_that_is_missing_is_one_error_before_any_rank_starts(self):
        run = self.peal("-n", "2", "true", image="no-such-image")
        self.assertEqual((run.returncode, run.stdout), (126, ""))
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        run = self.peal("-n", "2", "true", image="")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn('--image "": it takes the name of an image', run.stderr)
        run = self.peal("-n", "2", "-H", "node1:1,node2:1", "true", image="no-such-image")
        self.assertEqual(run.stdout, "")
        self.assertIn("no rank was started", run.stderr)

    def test_a_rank_beyond_its_memory_is_named(self):
        run = self.peal("-n", "1", "--container-option=--memory=64m", "python3", "-c", "print(len(bytearray(10**9)))")
        self.assertEqual(run.returncode, 137, run.stderr)
        self.assertRegex(run.stderr, r"rank 0 .*was killed by SIGKILL: out of memory \(limit 64.0 MiB")

    @shows("elastic")
    def test_elastic_jobs_are_refused(self):
        run = self.peal("--min-np", "1", "-n", "2", "true")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn(self.refuses["elastic"], run.stderr)

    @shows("time limit")
    def test_a_job_ends_at_its_time_limit(self):
        run = self.peal("-n", "1", "--timeout", "3", "--grace", "0.5", *SLEEP)
        self.assertEqual(run.returncode, 124, run.stderr)

    @shows("restarts")
    def test_a_failed_job_starts_again_in_new_containers(self):
        run = self.peal("-n", "1", "--max-restarts", "1", "sh", "-c", "echo attempt $PEAL_ATTEMPT; [ $PEAL_ATTEMPT = 1 ]")
        self.assertEqual((run.returncode, "attempt 1" in run.stdout), (0, True), run.stderr)

    def test_a_job_whose_containers_cannot_start_does_not_start_again(self):
        run = self.peal("-n", "2", "--max-restarts", "3", "no-such-program")
        self.assertEqual(run.returncode, 127, run.stderr)
        self.assertNotIn("restart 1", run.stderr)

    @shows("cancel a running job")
    def test_sigterm_reaches_the_program(self):
        run = self.start("-n", "1", "sh", "-c", "trap 'echo ended; exit 5' TERM; echo begun; sleep 86400 & wait")
        self.assertEqual(run.stdout.readline(), "[0] begun\n")
        run.terminate()
        self.assertIn("ended", run.communicate()[0])

    def test_a_request_to_end_before_the_container_starts_is_no_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            engine = self.write_engine(folder, "[ $1 = run ] || exec podman \"$@\"\necho begun; exec sleep 86400")
            for number in signal.SIGTERM, signal.SIGINT:
                run = self.start("-n", "1", "--container-engine", engine, "true")
                self.assertEqual(run.stdout.readline(), "[0] begun\n")
                run.send_signal(number)
                err = run.communicate()[1]
                self.assertEqual(run.returncode, 128 + number, err)
                self.assertNotIn("did not start", err)

    def test_a_request_to_end_resumes_the_program_by_another_command_than_the_one_that_runs(self):
        """The running command would write an error if the container had ended before the program was resumed."""
        with tempfile.TemporaryDirectory() as folder:
            engine = self.write_engine(folder, f"""case $1 in
                run) trap 'echo asked' TERM; trap 'echo resumed' CONT; echo begun
                     until [ -e {folder}/resumed ]; do sleep 0.05; done ;;
                kill) echo "$*" >{folder}/resumed ;;
                *) exec podman "$@" ;;
                esac""")
            run = self.start("-n", "1", "--grace", "30", "--container-engine", engine, "true")
            self.assertEqual(run.stdout.readline(), "[0] begun\n")
            run.terminate()
            out, err = run.communicate()
            self.assertEqual((run.returncode, out), (128 + signal.SIGTERM, "[0] asked\n"), err)
            self.assertRegex(pathlib.Path(folder, "resumed").read_text(), r"^kill --signal=CONT peal-\S+\n$")

    def test_ranks_are_asked_to_stop_whatever_their_user(self):
        for options in [], ["--container-option=--user=1234:1234"]:
            with self.subTest(options=options):
                run = self.start("-n", "2", "--grace", "60", *options, STOPPING, "/tmp/checkpoint")
                lines = [run.stdout.readline() for _ in range(2)]
                self.assertTrue(all("step 3" in line for line in lines), lines)
                run.terminate()
                out, err = run.communicate()
                self.assertEqual(run.returncode, 0, err)
                steps = re.findall(r"ends after step (\d+)", out)
                self.assertEqual((len(steps), len(set(steps))), (2, 1), out)

    def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(self):
        run = self.start("-n", "1", "--grace", "0.5", "sh", "-c", "trap '' TERM; echo begun; while :; do sleep 1; done")
        self.assertEqual(run.stdout.readline(), "[0] begun\n")
        run.terminate()
        run.wait()


class Kills(TestOfContainers):
    """tearDown finds containers and processes that remain."""

    def kill(self, host, text):
        for pid in self.pids(host, text):
            os.kill(pid, signal.SIGKILL)

    def test_the_command_of_the_engine_is_killed(self):
        run = self.start("-n", "2", *SLEEP)
        self.await_pids(world.LAUNCHER, "podman-init -- sleep 86400", 2)
        os.kill(self.pids(world.LAUNCHER, "podman run")[0], signal.SIGKILL)
        run.wait()

    def test_the_process_of_the_rank_is_killed(self):
        run = self.start("-n", "2", *SLEEP)
        self.await_pids(world.LAUNCHER, "podman-init -- sleep 86400", 2)
        os.kill(self.pids(world.LAUNCHER, "peal container-rank")[0], signal.SIGKILL)
        run.wait()

    def test_the_guard_is_killed(self):
        run = self.start("-n", "2", *SLEEP)
        self.await_pids(world.LAUNCHER, "podman-init -- sleep 86400", 2)
        self.kill(world.LAUNCHER, "rank-guard")
        run.wait()

    def test_the_launcher_is_killed(self):
        run = self.start("-n", "2", *SLEEP)
        self.await_pids(world.LAUNCHER, "podman-init -- sleep 86400", 2)
        run.kill()
        run.wait()

    def test_the_launcher_and_the_guard_are_killed(self):
        run = self.start("-n", "2", *SLEEP)
        self.await_pids(world.LAUNCHER, "podman-init -- sleep 86400", 2)
        guard, = self.pids(world.LAUNCHER, "rank-guard")
        for number in signal.SIGSTOP, signal.SIGKILL:  # at once: the guard does not see that the launcher has ended
            for pid in run.pid, guard:
                os.kill(pid, number)
        run.wait()

    def kill_the_guard_after_the_ranks(self, launcher_too):
        """At that time, no process of peal has begun to remove the containers."""
        run = self.start("-n", "2", *SLEEP)
        self.await_pids(world.LAUNCHER, "podman-init -- sleep 86400", 2)
        guard, = self.pids(world.LAUNCHER, "rank-guard")
        os.kill(guard, signal.SIGSTOP)
        if launcher_too:
            run.kill()
        self.kill(world.LAUNCHER, "peal container-rank")
        os.kill(guard, signal.SIGKILL)
        run.wait()

    def test_the_guard_is_killed_after_it_has_killed_the_ranks(self):
        self.kill_the_guard_after_the_ranks(launcher_too=False)

    def test_the_launcher_and_the_guard_are_killed_after_the_guard_has_killed_the_ranks(self):
        self.kill_the_guard_after_the_ranks(launcher_too=True)

    def test_an_agent_is_killed(self):
        run = self.start("-n", "2", "-H", "node1:1,node2:1", *SLEEP)
        for host in "node1", "node2":
            self.await_pids(host, "podman-init -- sleep 86400")
        self.kill("node1", "peal agent")
        run.wait()

    def test_the_guard_of_an_agent_is_killed(self):
        run = self.start("-n", "2", "-H", "node1:1,node2:1", *SLEEP)
        for host in "node1", "node2":
            self.await_pids(host, "podman-init -- sleep 86400")
        self.kill("node1", "rank-guard")
        run.wait()


if __name__ == "__main__":
    if reason := images.why_not() or ssh_hosts.why_not():
        print("SKIPPED:", reason)
        sys.exit(images.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
