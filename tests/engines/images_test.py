"""The containers of images.py: they run on each host, see what they should, die, and nothing remains of them.

Called by ctest with a program to run in a container. The first run makes the images, which takes a minute or two.
"""
import pathlib
import subprocess
import sys
import unittest

import control_groups
import images
import process_list
import ssh_hosts
import world
from images import IMAGE, OTHER_IMAGE, Containers
from world import Plan, World

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
RUN = ["podman", "run", "--rm", "--network=host"]
DETACHED = ["podman", "run", "--detach", "--name=sleeper", "--network=host", IMAGE, "sleep", "86400"]

# A test process with a container.
VICTIM = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import control_groups, images, world

running = world.World([], containers=images.Containers())
running.boot([world.Plan(running.launcher)])
running.run({DETACHED!r})
pids = [one.pid for one in running.all_processes(running.launcher)]

print(running.folder, *control_groups.containers_in(running.folder / "containers"), *pids, flush=True)
sys.stdin.read()
"""


def is_alive(pid):
    process = process_list.read(pid)
    return process is not None and process.state != "Z"


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        containers = Containers(programs=[PROGRAM.parent], volumes=["/etc/hostname:/of-this-machine:ro"])
        cls.world = ssh_hosts.SshHosts(1, own_files=True, containers=containers)
        cls.addClassCleanup(cls.world.stop)

    def run_in(self, *command, host=world.LAUNCHER):
        run = self.world.run([*RUN, *command], host)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def test_a_container_runs_on_each_host_and_has_the_name_of_the_host(self):
        for host in self.world.names:
            self.assertEqual(self.run_in(IMAGE, "python3", "-c", "import os; print(os.uname().nodename)", host=host),
                             f"{host}\n")
        self.assertEqual(self.world.run(["ssh", "node1", *RUN, IMAGE, "hostname"]).stdout, "node1\n")

    def test_containers_see_which_image_they_run(self):
        for image in IMAGE, OTHER_IMAGE:
            self.assertEqual(self.run_in(image, "sh", "-c", "echo $PEAL_TEST_IMAGE"), f"{image}\n")

    def test_a_program_of_this_project_runs_in_a_container(self):
        here = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.run_in(IMAGE, PROGRAM, "--version"), here)

    def test_the_python_of_this_project_runs_in_a_container(self):
        python = world.ROOT / ".venv/bin/python"
        if not python.exists():
            self.skipTest("there is no .venv")
        script = "import numpy, os; print(numpy.arange(4).sum(), os.access(numpy.__file__, os.W_OK))"
        self.assertEqual(self.run_in(IMAGE, python, "-c", script), "6 False\n")

    def test_volumes_are_visible(self):
        machine = pathlib.Path("/etc/hostname").read_text()
        self.assertEqual(self.run_in(IMAGE, "cat", "/of-this-machine"), machine)

    def test_limits_of_memory_and_shared_memory_apply(self):
        self.assertIn(" 307200 ", self.run_in("--shm-size=300m", IMAGE, "df", "/dev/shm"))
        run = self.world.run([*RUN, "--memory=64m", IMAGE, "python3", "-c", "print(len(bytearray(10**9)))"])
        self.assertEqual(run.returncode, 137, run.stdout)

    def test_an_init_process_can_be_the_first_process(self):
        self.assertIn("podman-init", self.run_in("--init", IMAGE, "ps", "-p1", "-o", "args="))

    def test_an_image_that_does_not_exist_is_an_error_at_once(self):
        run = self.world.run([*RUN, "no-such-image", "true"])
        self.assertEqual(run.returncode, 125)
        self.assertIn("no-such-image", run.stdout)

    def test_the_storage_is_that_of_the_host_and_not_that_of_the_user(self):
        command = ["podman", "info", "--format", "{{.Store.GraphRoot}}"]
        stores = {self.world.run(command, host).stdout.strip() for host in self.world.names}
        self.assertEqual(len(stores), 2)
        for store in stores:
            self.assertTrue(store.startswith(str(self.world.folder)), store)


class Ends(unittest.TestCase):
    def start(self):
        world_of_this = World(["node1"], containers=Containers())
        self.addCleanup(world_of_this.stop)
        world_of_this.boot([Plan(name) for name in world_of_this.names])
        return world_of_this

    def sleeping(self, running, host):
        return [one.pid for one in running.processes(host) if one.command == ("sleep", "86400")]

    def test_hosts_do_not_see_each_others_containers_which_die_with_their_host(self):
        running = self.start()
        pids = {}
        for host in running.names:
            run = running.run(DETACHED, host)
            self.assertEqual(run.returncode, 0, run.stdout)  # the name is free on each host
            pids[host], = self.sleeping(running, host)
        running.kill_all("node1")
        self.assertFalse(is_alive(pids["node1"]))
        self.assertTrue(is_alive(pids["launcher"]))
        running.kill_all("launcher")
        self.assertFalse(is_alive(pids["launcher"]))

    def test_nothing_remains_after_stop(self):
        running = self.start()
        for network in "none", "host":
            run = running.run(["podman", "run", "--detach", f"--network={network}", IMAGE, "sleep", "86400"])
            self.assertEqual(run.returncode, 0, run.stdout)
        pids = self.sleeping(running, "launcher")
        containers = control_groups.containers_in(running.folder / "containers")
        self.assertEqual((len(pids), len(containers)), (2, 2))
        self.assertTrue(control_groups.groups_of(containers))
        running.stop()
        self.assertFalse(any(map(is_alive, pids)))
        self.assertEqual(control_groups.groups_of(containers), [])
        self.assertFalse(running.folder.exists())

    def test_nothing_remains_after_sigkill_of_the_test(self):
        Containers().prepare()
        with subprocess.Popen([sys.executable, "-B", "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as victim:
            folder, container, *pids = victim.stdout.readline().split()
            self.assertGreaterEqual(len(pids), 2)  # of the container: conmon and sleep
            self.assertTrue(control_groups.groups_of([container]))
            victim.kill()
        world.wait_until(lambda: not any(is_alive(int(pid)) for pid in pids), f"dead: {pids}")
        world.wait_until(lambda: not pathlib.Path(folder).exists(), f"removed: {folder}")
        self.assertEqual(control_groups.groups_of([container]), [])


if __name__ == "__main__":
    if reason := images.why_not() or ssh_hosts.why_not():
        print("SKIPPED:", reason)
        sys.exit(images.SKIPPED)
    unittest.main()
