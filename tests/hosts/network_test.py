"""`peal run` over ssh on hosts with other networks than one IPv4 address: IPv6 only, several interfaces, names that
lead to loopback, and one host with two names. The hosts are real sshds in namespaces (tests/engines).

    network_test.py PEAL FIRST    # the program peal, and a program that makes a group
"""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import ssh_hosts
from ssh_hosts import Host, SshHosts

PEAL, FIRST = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
# Only rank 1 gives up soon. So its error comes before rank 0 misses the rank.
IMPATIENT = ["sh", "-c", f"[ $RANK = 0 ] || export PEAL_TIMEOUT=2; exec {FIRST}"]


class TestOfNetworks(unittest.TestCase):
    maxDiff = None

    @classmethod
    def start_hosts(cls, hosts):
        cls.hosts = SshHosts(hosts, programs=[PEAL.parent], own_files=True)
        cls.addClassCleanup(cls.hosts.stop)

    @classmethod
    def on(cls, host, *commands):
        cls.hosts.run(["sh", "-ec", "\n".join(commands)], host=host, check=True)

    def peal(self, *arguments):
        return self.hosts.run([PEAL, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def assertMeet(self, labels, *arguments):
        """The ranks exchange data. `labels` are those of their lines, by rank."""
        run = self.peal(*arguments, FIRST)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        ranks = len(labels)
        self.assertEqual(sorted(run.stdout.splitlines()),
                         sorted(f"{label} rank {rank} has {3 * ranks}" for rank, label in enumerate(labels)))

    def assertFails(self, pattern, *arguments):
        run = self.peal(*arguments)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stderr, pattern)


class Ipv6(TestOfNetworks):
    @classmethod
    def setUpClass(cls):
        cls.start_hosts(2)
        cls.on("launcher", "ip address add fd00::f/64 dev eth0 nodad")
        cls.on("node2", "ip address add fd00::3/64 dev eth0 nodad")
        folder = cls.hosts.home("launcher") / ".ssh"
        known = folder.joinpath("known_hosts").read_text()
        for number, node in ((1, "node1"), (2, "node2")):
            address = f"fd00::{number}"
            cls.on(node, f"ip address add {address}/64 dev eth0 nodad", "ip -4 address flush dev eth0")
            known = known.replace(f"[{cls.hosts.address(node)}]", f"[{address}]")
            with folder.joinpath("config").open("a") as config:
                config.write(f"Host {address} six{number}\n"
                             f"  HostName {address}\n  Port {cls.hosts.port(node)}\n  User root\n\n")
        folder.joinpath("known_hosts").write_text(known)

    def test_hosts_are_named_by_their_addresses(self):
        self.assertMeet(["[[fd00::1]:0]", "[[fd00::1]:1]", "[[fd00::2]:2]", "[[fd00::2]:3]"],
                        "-n", "4", "-H", "[fd00::1]:2,[fd00::2]:2")

    def test_hosts_are_named_in_the_configuration_of_ssh(self):
        self.assertMeet(["[six1:0]", "[six1:1]", "[six2:2]", "[six2:3]"], "-n", "4", "-H", "six1:2,six2:2")

    def test_the_launchers_machine_may_be_the_first_host(self):
        self.assertMeet(["[localhost:0]", "[six1:1]"], "-H", "localhost,six1")

    def test_the_user_names_the_place_to_meet(self):
        self.assertMeet(["[six1:0]", "[six2:1]"], "-H", "six1,six2", "--rdzv-endpoint", "[fd00::1]:22222")

    def test_a_host_that_cannot_be_used_is_listed_in_brackets(self):
        self.assertFails(r"\n  \[fd00::3\]: no ssh server listens there", "-H", "[fd00::1],[fd00::3]", "true")

    def test_the_place_to_meet_is_in_brackets_if_it_cannot_be_reached(self):
        self.on("node2", "ip route add unreachable fd00::1/128")
        self.addCleanup(self.on, "node2", "ip route delete unreachable fd00::1/128")
        self.assertFails(r"rank 1 cannot reach rank 0 at \[fd00::1\]:\d+, and has tried",
                         "-H", "[fd00::1],[fd00::2]", *IMPATIENT)


class SeveralInterfaces(TestOfNetworks):
    """Each host has, besides the network to the others: the same address on each host, which is the first in its
    list, and a network that connects no hosts."""

    @classmethod
    def setUpClass(cls):
        cls.start_hosts(2)
        for number in (1, 2):
            cls.on(f"node{number}", "ip address add 192.168.77.1/32 dev lo", "ip link add private type bridge",
                   f"ip address add 192.168.78.{number}/24 dev private", "ip link set private up")

    def test_ranks_find_the_network_that_connects_them(self):
        self.assertMeet(["[node1:0]", "[node1:1]", "[node2:2]", "[node2:3]"], "-H", "node1:2,node2:2")

    def test_the_user_names_the_network(self):
        for network in ("10.77.0.0/16", "eth0", "^private,^lo"):
            self.assertMeet(["[node1:0]", "[node2:1]"], "-x", f"PEAL_INTERFACE={network}", "-H", "node1,node2")

    def test_a_network_that_does_not_connect_the_ranks_is_named(self):
        self.on("node2", "ip route add unreachable 192.168.78.1/32")
        self.addCleanup(self.on, "node2", "ip route delete unreachable 192.168.78.1/32")
        self.assertFails(r"cannot reach rank 0 \(pid \d+ on host node1\): 192\.168\.78\.1:.*PEAL_INTERFACE",
                         "-x", "PEAL_INTERFACE=private", "-H", "node1,node2", FIRST)

    def test_an_interface_that_does_not_exist_is_an_error_that_lists_those_of_the_host(self):
        self.assertFails(r'PEAL_INTERFACE="ib0" leaves no address.*eth0 10\.77\.0\.1\d, private 192\.168\.78\.',
                         "-x", "PEAL_INTERFACE=ib0", "-H", "node1,node2", FIRST)

    def test_hosts_that_do_not_reach_each_other_as_the_launcher_reaches_them(self):
        """The network of ssh is one for administration; the ranks use another one."""
        for number, other in ((1, "node2"), (2, "node1")):
            node, route = f"node{number}", f"unreachable {self.hosts.address(other)}/32"
            self.on(node, f"ip route add {route}", f"ip address add 10.88.0.{number}/24 dev eth0")
            self.addCleanup(self.on, node, f"ip route delete {route}", f"ip address delete 10.88.0.{number}/24 dev eth0")
        self.assertFails(rf"rank 1 cannot reach rank 0 at {re.escape(self.hosts.address('node1'))}:\d+"
                         r".*No route to host.*--rdzv-endpoint HOST:PORT", "-H", "node1,node2", *IMPATIENT)
        self.assertMeet(["[node1:0]", "[node2:1]"], "-H", "node1,node2", "--rdzv-endpoint", "10.88.0.1:22222")


class Names(TestOfNetworks):
    """The name of each machine leads to 127.0.1.1 on the machine, as in /etc/hosts of Debian."""

    @classmethod
    def setUpClass(cls):
        cls.start_hosts([Host("node1", alias="also-node1"), Host("node2")])
        for name in ("launcher", "node1", "node2"):
            own = cls.hosts.folder / f"hosts-{name}"
            shared = cls.hosts.folder.joinpath("hosts").read_text()
            own.write_text(shared.replace(f"{cls.hosts.address(name)} {name}\n", f"127.0.1.1 {name}\n"))
            cls.on(name, f"mount --bind {own} /etc/hosts", f"getent hosts {name} | grep -q ^127.0.1.1")

    def hostfile(self, text):
        path = self.hosts.folder / "hostfile"
        path.write_text(text)
        return ["--hostfile", str(path)]

    def test_the_names_of_hosts_lead_to_loopback_on_themselves(self):
        self.assertMeet(["[node1:0]", "[node2:1]"], "-H", "node1,node2")
        self.assertMeet(["[launcher:0]", "[node2:1]"], "-H", "launcher,node2")

    def test_the_place_to_meet_leads_to_loopback_on_its_own_host(self):
        self.assertMeet(["[node1:0]", "[node2:1]"], "-H", "node1,node2", "--rdzv-endpoint", "node1:22222")

    def test_a_host_that_a_hostfile_names_twice_has_the_sum_of_its_slots(self):
        self.assertMeet(["[node1:0]", "[node1:1]", "[node1:2]", "[node2:3]"],
                        *self.hostfile("node1 slots=1\nnode2 slots=1\nnode1 slots=2\n"))

    def test_two_names_of_a_host_are_two_hosts(self):
        hosts = self.hostfile("node1 slots=2\nalso-node1 slots=1\n")
        self.assertMeet(["[node1:0]", "[node1:1]", "[also-node1:2]"], *hosts)
        run = self.peal(*hosts, "sh", "-c", "echo $(hostname) $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK")
        self.assertEqual(sorted(run.stdout.splitlines()),
                         ["[also-node1:2] node1 0/1 1", "[node1:0] node1 0/2 0", "[node1:1] node1 1/2 0"], run.stderr)


if __name__ == "__main__":
    if ssh_hosts.why_not():
        print(ssh_hosts.why_not())
        sys.exit(ssh_hosts.SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
