"""Hosts that `peal bench` makes as network namespaces. Called by ctest with the program."""
import os
import re
import shutil
import unittest

from program import Bench, PATIENCE


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"),
                     "network namespaces take root and iproute2")
class HostsOnThisMachine(Bench):
    def hosts(self, process):
        """The network devices and namespaces of a run: hosts, and the bridge between them with its ports."""
        ours = re.compile(rf"(peal-bench-{process.pid}-|pealb{process.pid}$|pealv{process.pid}\.)")
        folders = filter(os.path.isdir, ("/run/netns", "/sys/class/net"))
        return {name for folder in folders for name in os.listdir(folder) if ours.match(name)}

    def test_are_measured_and_removed(self):
        process = self.start_quick("all_reduce", "all_to_all", "--bytes", "16,256K", "--rate", "10gbit",
                                   "--hosts-netns", "2", "--memory", "registered", "--congestion", "reno")
        code, _, err, results = self.end_of(process)
        if re.search("Operation not permitted|not supported", err):
            self.skipTest("this machine cannot make network namespaces")
        self.assertEqual(code, 0, err)
        self.assertIn("peal: congestion control reno", err)
        ways = {(result["backend"], result["variant"], result["bytes"]) for result in results}
        self.assertEqual(ways, {("peal", "registered", 16), ("stream", "round-trip", 16),
                                ("peal", "registered", 256 << 10), ("stream", "two-way", 256 << 10)})
        for result in results:
            self.assertEqual(result["transport"], "tcp")
            least = result["bytes"] / (1 if result["op"] == "all_reduce" else 2)
            self.assertGreater(result["host_tx_bytes"], least)
            self.assertGreater(result["host_qdisc_bytes"], least)
        self.assertEqual(self.hosts(process), set())
        self.assert_nothing_is_left()

    def test_of_a_killed_run_are_removed_by_the_next_one(self):
        killed = self.start("barrier", "--hosts-netns", "2", "--rounds", "1000")
        self.addCleanup(killed.kill)  # if the test fails before the kill below
        if not killed.stdout.readline():
            self.skipTest("this machine cannot make network namespaces")
        pid = killed.pid
        self.assertEqual(self.hosts(killed), {f"peal-bench-{pid}-0", f"peal-bench-{pid}-1", f"pealb{pid}",
                                              f"pealv{pid}.0", f"pealv{pid}.1"})
        killed.kill()
        # a zombie: its exit code is not read yet
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        # Any other run on this machine may have removed them by now.
        code, _, err, _ = self.bench("barrier")
        self.assertEqual(code, 0, err)
        # Ports end with their hosts, and hosts with their last process.
        self.soon(lambda: self.assertEqual(self.hosts(killed), set()))
        killed.communicate(timeout=PATIENCE)

    def test_reject_an_invalid_rate(self):
        for option in ("--rate", "--congestion"):
            process = self.start_quick("barrier", "--hosts-netns", "2", option, "snail")
            code, _, err, _ = self.end_of(process)
            self.assertIn(code, (1, 2))
            if code == 2:  # the machine can make namespaces
                self.assertIn(f'{option} "snail"', err)
            self.assertEqual(self.hosts(process), set())


if __name__ == "__main__":
    unittest.main()
