"""The hosts of ssh_hosts.py and world.py: ssh reaches them, they fail as asked, and nothing remains of them.

Called by ctest.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import process_list
import ssh_hosts
import world
from ssh_hosts import Fault, Host, SshHosts

HERE = pathlib.Path(__file__).resolve().parent
SSH = ["ssh", "-o", "BatchMode=yes"]
IMPATIENT = [*SSH, "-o", "ConnectTimeout=1"]  # to hosts that do not answer
SLEEP = ["sleep", "86400"]

# A test process that makes hosts, and starts processes on them that leave their session.
VICTIM = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import ssh_hosts

hosts = ssh_hosts.SshHosts(2)
running = hosts.popen(["setsid", "sleep", "86400"])
hosts.run(["ssh", "node1", "setsid sleep 86400 > /dev/null 2>&1 < /dev/null &"])

keeper = (hosts.folder / "keeper").read_text()
print(hosts.folder, keeper, *(one.pid for name in hosts.names for one in hosts.all_processes(name)), flush=True)
sys.stdin.read()
"""


def is_alive(pid):
    process = process_list.read(pid)
    return process is not None and process.state != "Z"


class Standing(unittest.TestCase):
    """Hosts that several tests use, since no test harms them."""

    @classmethod
    def setUpClass(cls):
        cls.programs = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.programs.cleanup)
        program = pathlib.Path(cls.programs.name, "the-program")
        program.write_text("#!/bin/sh\necho the program runs on $(hostname)\n")
        program.chmod(0o755)
        faulty = [Host(fault.value, fault) for fault in Fault]
        hosts = [Host("node1", alias="first"), Host("node2"), *faulty]
        cls.hosts = SshHosts(hosts, [cls.programs.name], own_files=True)
        cls.addClassCleanup(cls.hosts.stop)

    def ssh(self, host, command):
        return self.hosts.run([*SSH, host, command])

    def fails(self, fault, text):
        run = self.hosts.run([*(IMPATIENT if fault == Fault.SILENT else SSH), fault.value, "true"])
        self.assertEqual(run.returncode, 255, run.stdout)
        self.assertIn(text, run.stdout)

    def test_a_command_runs_on_each_host_which_has_its_own_name_and_its_own_processes(self):
        for name in "node1", "node2":
            run = self.ssh(name, "hostname; echo ~root; ps -e -o comm=; the-program")
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertEqual(run.stdout.splitlines()[:2], [name, str(self.hosts.home(name))])
            self.assertNotIn("ssh\n", run.stdout)  # the client is on another host
            self.assertIn(f"the program runs on {name}\n", run.stdout)

    def test_hosts_reach_each_other_by_name(self):
        run = self.ssh("node1", f"bash -c 'echo > /dev/tcp/node2/{self.hosts.port('node2')} && echo reached'")
        self.assertEqual(run.stdout, "reached\n")

    def test_hosts_have_different_boot_ids_and_network_interfaces_of_their_own(self):
        command = "cat /proc/sys/kernel/random/boot_id; ls /sys/class/net"
        texts = [self.ssh("node1", command).stdout, self.ssh("node2", command).stdout,
                 self.hosts.run(["sh", "-c", command]).stdout]
        for text in texts:
            self.assertEqual(sorted(text.split()[1:]), ["eth0", "lo"])
        self.assertEqual(len(set(texts)), 3)

    def test_with_own_files_a_host_does_not_see_the_temporary_files_of_another(self):
        for folder in "/tmp", "/var/tmp", "/dev/shm":
            self.assertEqual(self.ssh("node1", f"echo > {folder}/of-node1; ls {folder}/of-node1").returncode, 0)
            self.assertNotEqual(self.ssh("node2", f"ls {folder}/of-node1").returncode, 0)
            self.assertFalse(os.path.exists(f"{folder}/of-node1"))

    def test_an_alias_is_known_only_to_the_clients_configuration(self):
        self.assertEqual(self.ssh("first", "hostname").stdout, "node1\n")
        self.assertNotEqual(self.hosts.run(["getent", "hosts", "first"]).returncode, 0)

    def test_each_call_of_ssh_is_noted_with_its_arguments(self):
        argument = "echo a  'b\n'"
        self.ssh("node1", argument)
        self.assertIn((*SSH[1:], "node1", argument), self.hosts.ssh_calls())

    def test_a_host_whose_key_is_unknown(self):
        self.fails(Fault.UNKNOWN_KEY, "Host key verification failed")

    def test_a_host_whose_key_has_changed(self):
        self.fails(Fault.CHANGED_KEY, "REMOTE HOST IDENTIFICATION HAS CHANGED")

    def test_a_host_that_refuses_the_users_key(self):
        self.fails(Fault.REFUSED_KEY, "Permission denied (publickey)")

    def test_a_host_without_sshd(self):
        self.fails(Fault.NO_SSHD, "Connection refused")

    def test_a_name_that_does_not_resolve(self):
        self.fails(Fault.NO_NAME, "Could not resolve hostname no-name: Name or service not known")

    def test_a_host_whose_packets_vanish(self):
        self.fails(Fault.SILENT, "Connection timed out")

    def test_a_host_without_the_programs(self):
        run = self.ssh(Fault.NO_PROGRAMS.value, f"the-program || {self.programs.name}/the-program")
        self.assertEqual(run.returncode, 127, run.stdout)


class Deaths(unittest.TestCase):
    def setUp(self):
        self.hosts = SshHosts(2)
        self.addCleanup(self.hosts.stop)

    def start(self, host):
        """A process on the host that outlives its connection."""
        self.hosts.run([*SSH, host, "setsid sleep 86400 > /dev/null 2>&1 < /dev/null & echo started"])
        return self.sleeping(host)[0]

    def sleeping(self, host):
        return [one for one in self.hosts.processes(host) if one.command == tuple(SLEEP)]

    def answers(self, host):
        return self.hosts.run([*SSH, host, "hostname"]).stdout == f"{host}\n"

    def is_silent(self, host):
        return "timed out" in self.hosts.run([*IMPATIENT, host, "hostname"]).stdout

    def test_an_idle_host_has_no_processes(self):
        world.wait_until(lambda: not self.hosts.processes("node1"), "without processes: node1")
        self.start("node1")
        self.assertEqual([one.command for one in self.sleeping("node1")], [tuple(SLEEP)])
        self.assertEqual(self.sleeping("node2"), [])

    def test_a_cut_host_does_not_answer_until_it_is_restored_and_its_processes_live_on(self):
        process = self.start("node1")
        self.hosts.cut("node1")
        self.assertTrue(self.is_silent("node1"))
        self.assertTrue(self.answers("node2"))
        self.hosts.restore("node1")
        self.assertTrue(self.answers("node1"))
        self.assertTrue(is_alive(process.pid))

    def test_the_processes_of_a_frozen_host_are_stopped_until_it_is_restored(self):
        process = self.start("node1")
        self.hosts.freeze("node1")
        self.assertEqual(process_list.read(process.pid).state, "T")
        self.assertTrue(self.is_silent("node1"))
        self.hosts.restore("node1")
        self.assertNotEqual(process_list.read(process.pid).state, "T")
        self.assertTrue(self.answers("node1"))

    def test_kill_all_kills_processes_of_other_sessions_too_and_restore_starts_the_host_again(self):
        process = self.start("node1")
        with self.hosts.popen([*SSH, "node1", *SLEEP], stderr=subprocess.DEVNULL) as connection:
            self.hosts.kill_all("node1")
            self.assertEqual(connection.wait(world.PATIENCE), 255)
        self.assertFalse(is_alive(process.pid))
        self.assertFalse(self.hosts.is_alive("node1"))
        self.assertFalse(self.answers("node1"))  # the kernel refuses the connection
        self.hosts.restore("node1")
        self.assertTrue(self.answers("node1"))
        self.assertEqual(self.sleeping("node1"), [])

    def test_kill_all_kills_the_processes_of_the_launchers_host(self):
        with self.hosts.popen(["setsid", *SLEEP]) as process:
            self.assertIn(process.pid, [one.pid for one in self.hosts.processes("launcher")])
            self.hosts.kill_all("launcher")
            self.assertEqual(process.wait(world.PATIENCE), -signal.SIGKILL)
        self.assertTrue(self.answers("node1"))  # the launcher's host still serves


class Ends(unittest.TestCase):
    """Nothing remains, however the world ends."""

    def gone(self, folder, pids):
        world.wait_until(lambda: not any(map(is_alive, pids)), f"dead: {pids}")
        world.wait_until(lambda: not folder.exists(), f"removed: {folder}")

    def pids_of(self, hosts):
        return [one.pid for name in hosts.names for one in hosts.all_processes(name)]

    def test_after_stop(self):
        with SshHosts(2) as hosts:
            process = hosts.popen(["setsid", *SLEEP])
            pids = [int((hosts.folder / "keeper").read_text()), process.pid, *self.pids_of(hosts)]
            self.assertTrue(all(map(is_alive, pids)))
        self.assertFalse(any(map(is_alive, pids)))
        self.assertFalse(hosts.folder.exists())
        process.wait()

    def test_after_sigkill_of_the_test(self):
        with subprocess.Popen([sys.executable, "-B", "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as victim:
            folder, *pids = victim.stdout.readline().split()
            pids = list(map(int, pids))
            self.assertGreaterEqual(len(pids), 8)  # the keeper, 2 in each host and sshd, and 2 that sleep
            self.assertTrue(all(map(is_alive, pids)))
            victim.kill()
        self.gone(pathlib.Path(folder), pids)

    def test_after_sigkill_of_the_keeper_the_hosts_are_gone(self):
        with SshHosts(2) as hosts:
            keeper = int((hosts.folder / "keeper").read_text())
            pids = self.pids_of(hosts)
            os.kill(keeper, signal.SIGKILL)
            world.wait_until(lambda: not any(map(is_alive, pids)), f"dead: {pids}")
        subprocess.run(["rm", "-r", hosts.folder], check=True)

    def test_worlds_of_the_same_time_do_not_meet(self):
        with SshHosts(1) as one, SshHosts(1) as other:
            process = one.popen(SLEEP)
            self.assertEqual(one.address("node1"), other.address("node1"))
            other.stop()
            self.assertEqual(one.run([*SSH, "node1", "hostname"]).stdout, "node1\n")
            self.assertTrue(is_alive(process.pid))
        process.wait()


class CommandLine(unittest.TestCase):
    def run_command(self, *arguments):
        return subprocess.run([sys.executable, "-B", HERE / "ssh_hosts.py", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=world.PATIENCE)

    def test_a_command_runs_on_the_launchers_host_and_its_exit_code_is_passed_on(self):
        run = self.run_command("--hosts=1", "--host=other=refused-key", "--", "sh", "-c",
                               f"hostname; {' '.join(SSH)} node1 hostname; {' '.join(SSH)} other hostname; exit 7")
        self.assertEqual(run.returncode, 7)
        self.assertEqual(run.stdout, "launcher\nnode1\nroot@10.77.0.12: Permission denied (publickey).\n")

    def test_a_command_can_control_the_hosts(self):
        run = self.run_command("--hosts=1", "--", "sh", "-c", f"""
            test-hosts freeze node1; {' '.join(IMPATIENT)} node1 hostname 2> /dev/null
            test-hosts restore node1; {' '.join(SSH)} node1 echo restored
            test-hosts kill_all node1; {' '.join(SSH)} node1 echo living; test-hosts processes node1
            test-hosts dance node1""")
        lines = run.stdout.splitlines()
        self.assertEqual(lines[0], "restored")
        self.assertIn("Connection refused", lines[1])
        self.assertIn("the actions are cut, freeze", lines[2])

    def test_a_wrong_fault_is_an_error_that_names_the_faults(self):
        run = self.run_command("--host=node1=lazy", "--", "true")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("refused-key", run.stdout)


if __name__ == "__main__":
    if reason := ssh_hosts.why_not():
        print("SKIPPED:", reason)
        sys.exit(ssh_hosts.SKIPPED)
    unittest.main()
