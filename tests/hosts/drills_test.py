"""Drills: a process, an agent, a host or the launcher of a running job is killed. The job then starts again and makes
steps. A job whose launcher is killed ends instead, without a report. In no case does a process remain on any host.

    drills_test.py PEAL STEPS    # the program peal, and the program of steps.cpp

PEAL_DRILLS is the number of drills, 18 by default; their kinds take turns. PEAL_DRILLS_SEED repeats a run. Prints how
long each drill took, by phase. With PEAL_DRILLS_LIMIT=10, a job that takes more than 10 seconds from the strike to its
first new step is a failure. Set it only on an idle machine.
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engines"))
import process_list
import slurm_cluster
import ssh_hosts
from slurm_cluster import SlurmCluster
from ssh_hosts import SshHosts
from world import LAUNCHER

PEAL, STEPS = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
COUNT = int(os.environ.get("PEAL_DRILLS", "18"))
SEED = int(os.environ.get("PEAL_DRILLS_SEED", str(random.randrange(10**6))))
LIMIT = float(os.environ.get("PEAL_DRILLS_LIMIT", "inf"))  # seconds
PATIENCE = 90  # seconds: machines may be slow
NODES = ("node1", "node2")  # node3 is spare
CAUSE = re.compile(r"was killed by|was lost|ended with exit code|killed after")


class Lines:
    """The lines of a stream, with the time at which each was read."""

    def __init__(self, stream):
        self.lines = []
        self._thread = threading.Thread(target=self._read, args=(stream,))
        self._thread.start()

    def _read(self, stream):
        with stream:
            for line in stream:
                self.lines.append((time.monotonic(), line.rstrip("\n")))

    def finish(self):
        self._thread.join(PATIENCE)

    def first(self, pattern):
        """The time of the first line with the pattern."""
        return next((when for when, line in list(self.lines) if re.search(pattern, line)), None)

    def text(self):
        return "\n".join(line for _, line in self.lines)


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE} s: not {what() if callable(what) else what}")
        time.sleep(0.02)
    return result


def is_rank(process):
    return process.command[0] == str(STEPS)


def is_agent(process):
    return process.command[-1] == "agent" and process.command[0].endswith("peal")


class Local:
    """All ranks are on this machine."""
    name = "local"
    kinds = ("rank", "rank crashes", "guard", "launcher")

    def begin(self):
        return subprocess.Popen([PEAL, "run", "-n", "4", "--max-restarts", "1", STEPS], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def launcher(self, run):
        return run.pid

    def processes(self, run):
        """The ranks and their guard, by the session of the launcher."""
        found = []
        for name in os.listdir("/proc"):
            process = process_list.read(int(name)) if name.isdigit() else None
            if process is None or process.state == "Z":
                continue
            try:
                if os.getsid(process.pid) == run.pid and process.pid != run.pid:
                    found.append(process)
            except ProcessLookupError:
                continue
        return found

    def strike(self, kind, run, dice):
        ranks = [one for one in self.processes(run) if is_rank(one)]
        if kind == "guard":
            return os.kill(ranks[0].parent, signal.SIGKILL)
        os.kill(dice.choice(ranks).pid, signal.SIGSEGV if kind == "rank crashes" else signal.SIGKILL)

    def remaining(self, run):
        return [one.command for one in self.processes(run)]

    def recover(self):
        pass

    def stop(self):
        pass


class Hosts:
    """What ssh and Slurm share: ranks on two of three hosts. `world`: SshHosts or a SlurmCluster."""

    def on_nodes(self, wanted):
        return [(node, one) for node in NODES for one in self.world.processes(node) if wanted(one)]

    def launcher(self, run):
        """salloc and the keeper of the world are its ancestors."""
        return next(one.pid for one in self.world.processes(LAUNCHER) if one.command[:2] == (str(PEAL), "run"))

    def strike(self, kind, run, dice):
        if kind in ("rank", "rank crashes"):
            _, rank = dice.choice(self.on_nodes(is_rank))
            return os.kill(rank.pid, signal.SIGKILL if kind == "rank" else signal.SIGSEGV)
        if kind == "guard":
            _, rank = dice.choice(self.on_nodes(is_rank))
            return os.kill(rank.parent, signal.SIGKILL)
        if kind == "agent":
            _, agent = dice.choice(self.on_nodes(is_agent))
            return os.kill(agent.pid, signal.SIGKILL)
        node = dice.choice(NODES)
        self.struck = node
        {"network": self.world.cut, "frozen host": self.world.freeze, "dead host": self.world.kill_all}[kind](node)

    def remaining(self, run):
        return [(node, one.command) for node in ("node1", "node2", "node3", LAUNCHER)
                for one in self.world.processes(node)
                if is_rank(one) or is_agent(one) or one.command[:2] == (str(PEAL), "run")]

    def recover(self):
        if self.struck:
            self.world.restore(self.struck)
            self.struck = None

    def stop(self):
        self.world.stop()


class Ssh(Hosts):
    name = "ssh"
    kinds = ("rank", "network", "agent", "launcher", "dead host", "guard", "frozen host", "connection", "rank crashes")

    def __init__(self):
        self.world = SshHosts(3, programs=[PEAL.parent, STEPS.parent], own_files=True)
        self.struck = None

    def begin(self):
        return self.world.popen([PEAL, "run", "-n", "4", "-H", "node1:2,node2:2,node3:2", "--max-restarts", "1", STEPS],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def strike(self, kind, run, dice):
        if kind != "connection":
            return super().strike(kind, run, dice)
        clients = [one for one in self.world.processes(LAUNCHER) if pathlib.Path(one.command[0]).name == "ssh"]
        os.kill(dice.choice(clients).pid, signal.SIGKILL)


class Slurm(Hosts):
    name = "Slurm"
    kinds = ("rank", "network", "agent", "launcher", "dead host")

    def __init__(self):
        self.world = SlurmCluster(3, own_hosts=True)
        self.struck = None

    def begin(self):
        self.world.wait_until_idle()
        return self.world.popen(["salloc", "--quiet", "--no-kill", "--nodes=3", "--ntasks=6", PEAL, "run", "-n", "4",
                                 "--max-restarts", "1", STEPS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def recover(self):
        # Slurm needs a new node if it has not noticed the death: see the README of tests/engines.
        if self.struck:
            self.world.stop()
            self.__init__()


class Drills(unittest.TestCase):
    def drill(self, engine, kind, dice):
        run = engine.begin()
        out, err = Lines(run.stdout), Lines(run.stderr)
        try:
            steps = dice.randrange(1, 20)
            wait_until(lambda: out.first(f"attempt 0 step {steps}$"), lambda: f"running: {out.text()}{err.text()}")
            begin = time.monotonic()
            if kind == "launcher":
                os.kill(engine.launcher(run), signal.SIGKILL)
            else:
                engine.strike(kind, run, dice)
            run.wait(PATIENCE)
            out.finish()
            err.finish()
            self.check_end(engine, kind, run, out, err)
            phases = self.phases(begin, out, err)
            engine.recover()  # frozen processes can end only when they run again
            wait_until(lambda: not engine.remaining(run), lambda: f"empty: {engine.remaining(run)}")
            return phases
        finally:
            run.kill()
            run.wait(PATIENCE)
            out.finish()
            err.finish()
            engine.recover()

    def check_end(self, engine, kind, run, out, err):
        if kind == "launcher":
            if engine.name != "Slurm":  # salloc ends with 0 after a killed command
                self.assertNotEqual(run.returncode, 0)
            self.assertIsNone(out.first("attempt 1"))
            return
        self.assertEqual(run.returncode, 0, f"{out.text()}\n{err.text()}")
        self.assertRegex(err.text(), CAUSE)
        self.assertIn("restart 1 of 1", err.text())
        self.assertIsNotNone(out.first("attempt 1 step 3$"))

    def phases(self, begin, out, err):
        """How long the job took to name the cause, to restart and to make a step, since `begin`."""
        named, again, step = err.first(CAUSE), err.first("restart 1 of 1"), out.first("attempt 1 step 1$")
        if step is None:
            return f"launcher gone after {time.monotonic() - begin:.1f} s"
        self.assertLessEqual(step - begin, LIMIT)
        return f"cause {named - begin:.1f} s, restart {again - begin:.1f} s, first step {step - begin:.1f} s"

    def test_jobs_recover_or_end_with_the_cause_and_leave_nothing(self):
        dice = random.Random(SEED)
        engines = [Local]
        engines += [] if ssh_hosts.why_not() else [Ssh]
        engines += [] if slurm_cluster.why_not() else [Slurm]
        plan = [(engine, kind) for engine in engines for kind in engine.kinds]
        print(f"seed {SEED}; {COUNT} drills", flush=True)
        turns = [plan[i % len(plan)] for i in range(COUNT)]
        for engine_class in engines:
            engine = engine_class()
            try:
                for kind in [kind for owner, kind in turns if owner is engine_class]:
                    with self.subTest(engine=engine.name, kind=kind):
                        print(f"{engine.name:6} {kind:13} {self.drill(engine, kind, dice)}", flush=True)
            finally:
                engine.stop()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
