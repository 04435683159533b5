"""A small network of hosts on this machine, made of namespaces, for tests of several hosts.

    with World(["node1", "node2"]) as world:
        world.boot([Plan(world.launcher), Plan("node1"), Plan("node2")])
        world.run(["ping", "-c1", "node1"])             # on the launcher's host
        world.cut("node2")

Each host has its own network, name, boot id, home folder of root and, except for the launcher's host, its own
processes. All are connected by a bridge, and find each other by name. The hosts are invisible from outside:
addresses and ports of several worlds do not collide, and the machine's /etc is unchanged. The programs and
the files are those of this machine; `own_files` gives each host its own /tmp, /var/tmp and /dev/shm.

The world ends with its process, also by SIGKILL (keeper.py). Needs root.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import process_list

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 60  # seconds until a host is ready or gone
LAUNCHER = "launcher"
FOLDER_VARIABLE = "PEAL_TEST_WORLD"  # of commands in the world: the folder, for World.attach


class WorldError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Daemon:
    """A program that the host starts. Its output goes to the file NAME-PROGRAM.log of the world's folder."""
    command: tuple


@dataclasses.dataclass(frozen=True)
class Plan:
    name: str
    daemons: tuple = ()
    mounts: tuple = ()  # pairs (source, target): what the host sees at the existing path `target`


def why_not(programs=()):
    """Why no world can be made here: a sentence, or nothing."""
    if os.geteuid() != 0:
        return "hosts of namespaces need root"
    missing = [name for name in ("ip", "nsenter", "unshare", *programs) if find_program(name) is None]
    if missing:
        return f"these programs are not installed: {', '.join(missing)} (scripts/bootstrap installs them)"
    tried = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--mount-proc",
                            "mount", "-t", "sysfs", "sysfs", "/sys"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if tried.returncode != 0:
        return f"no namespaces can be made here: {tried.stdout.strip()}"
    return None


def find_program(name):
    """Also in the folders of root's programs, which the path of a user may lack."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def wait_until(condition, what, patience=PATIENCE):
    """The first true result of condition()."""
    end = time.monotonic() + patience
    while not (result := condition()):
        if time.monotonic() > end:
            raise WorldError(f"after {patience} s: not {what}")
        time.sleep(0.02)
    return result


class World:
    launcher = LAUNCHER

    def __init__(self, hosts, own_files=False, kept=()):
        """Starts no host yet. `own_files` applies to all hosts but the launcher's; `kept`: folders that they see
        in spite of it."""
        self.names = [LAUNCHER, *hosts]
        self.own_files = own_files
        self.kept = [str(ROOT), str(HERE), *map(str, kept)]
        self.path = []  # folders of programs that commands in the world find first
        self._start_keeper()
        self.kept.append(str(self.folder))
        self._write_files()

    @classmethod
    def attach(cls, folder=None):
        """The running world of a command that runs in it: can do everything but boot and stop."""
        world = cls.__new__(cls)
        world.folder = pathlib.Path(folder or os.environ[FOLDER_VARIABLE])
        world._keeper = None
        world.path = []
        world.names = list(world._ask("describe"))
        return world

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()

    # The life of hosts.

    def boot(self, plans):
        """Starts the hosts at the same time. Their daemons may not be ready yet."""
        for plan in plans:
            self.folder.joinpath("homes", plan.name).mkdir(parents=True, exist_ok=True)
        self._ask("start", hosts=[self._spec(plan) for plan in plans])

    def stop(self):
        """Kills all hosts; returns when everything is removed."""
        if self._keeper is None:
            return
        with contextlib.suppress(ConnectionError, FileNotFoundError):
            self._send({"do": "end"})
        self._wait_for_keeper()
        self._keeper = None

    def cut(self, host):
        """Packets from and to the host vanish. Neither side notices."""
        self._at_bridge("link", "set", self._port(host), "nomaster")

    def freeze(self, host):
        """Stops all processes of the host, as in a host that does not answer any more."""
        def all_stopped():
            running = [one for one in self.all_processes(host) if one.state not in "Tt"]
            process_list.kill(running, signal.SIGSTOP)
            return not running
        wait_until(all_stopped, f"stopped: the processes of {host}")

    def kill_all(self, host):
        """Kills all processes of the host at once. Its connections close: to power it off, cut it first. On the
        launcher's host, the daemons die too."""
        def all_dead():
            alive = self.all_processes(host)
            process_list.kill(alive)
            return not alive
        wait_until(all_dead, f"dead: the processes of {host}")

    def restore(self, host):
        """After cut, freeze or kill_all. After kill_all, the host starts again, with the same daemons."""
        described = self._describe(host)
        if self.all_processes(host) or host == LAUNCHER:
            process_list.kill(self.all_processes(host), signal.SIGCONT)
            self._at_bridge("link", "set", self._port(host), "master", "bridge")
        else:
            self._ask("stop", hosts=[host])
            self._ask("start", hosts=[described["spec"]])

    def is_alive(self, host):
        return bool(self.all_processes(host))

    # Commands and processes.

    def command(self, command, host=LAUNCHER, cwd=None):
        """The command line that runs `command` on a host. On the launcher's host, the process keeps its number
        and gets signals directly; on others, nsenter waits for it."""
        described = self._describe(host)
        enter = ["nsenter", f"--target={described['first']}", "--net", "--uts", "--ipc", "--mount"]
        if described["spec"]["own_pids"]:
            enter.append("--pid")
        return [*enter, "env", "-C", str(cwd or os.getcwd()), *map(str, command)]

    def environment(self, host=LAUNCHER, more=None):
        """The variables for commands on a host: those of this process, without the user's folders and ssh agent."""
        path = [str(self.folder / "bin"), *self.path, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "SSH_"))}
        return {**inherited, "HOME": str(self.home(host)), "PATH": ":".join(map(str, path)),
                FOLDER_VARIABLE: str(self.folder), **(more or {})}

    def popen(self, command, host=LAUNCHER, env=None, cwd=None, **options):
        """subprocess.Popen on a host; `env` is added to the variables."""
        return subprocess.Popen(self.command(command, host, cwd), env=self.environment(host, env), **options)

    def run(self, command, host=LAUNCHER, timeout=PATIENCE, env=None, cwd=None, **options):
        """subprocess.run on a host, with the output as text in `stdout`."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
        return subprocess.run(self.command(command, host, cwd), env=self.environment(host, env), timeout=timeout,
                              **options)

    def processes(self, host):
        """The processes of the host, except its first process and its daemons; no zombies."""
        described = self._describe(host)
        return [one for one in self.all_processes(host)
                if one.pid not in (described["outer"], described["first"])
                and one.pid_inside not in described["daemons"]]

    def home(self, host):
        return self.folder / "homes" / host

    def address(self, host):
        return f"10.77.0.{self._index(host) + 10}"

    def write_program(self, name, script):
        """A program that commands in the world find before those of this machine."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)

    def log(self, name):
        """The text of a log file in the world's folder; empty if it does not exist."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    # Inside.

    def _start_keeper(self):
        prefix = os.path.join(tempfile.gettempdir(), "peal-world-")
        with subprocess.Popen([sys.executable, "-B", str(HERE / "keeper.py"), prefix], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as started:
            answer = json.loads(started.stdout.readline() or '{"error": "the keeper ended"}')
        if "error" in answer:
            raise WorldError(f"no world can be made here: {answer['error']}")
        self.folder = pathlib.Path(answer["folder"])
        self._keeper = os.pidfd_open(answer["keeper"])
        self.folder.joinpath("keeper").write_text(str(answer["keeper"]))

    def _wait_for_keeper(self):
        if not select.select([self._keeper], [], [], PATIENCE)[0]:
            raise WorldError(f"the keeper of {self.folder} does not end")
        os.close(self._keeper)

    def _write_files(self):
        """What the hosts see in /etc."""
        lines = ["127.0.0.1 localhost", *(f"{self.address(name)} {name}" for name in self.names)]
        self.folder.joinpath("hosts").write_text("\n".join(lines) + "\n")
        databases = ("passwd", "group", "shadow", "hosts", "networks", "protocols", "services")
        self.folder.joinpath("nsswitch.conf").write_text("".join(f"{name}: files\n" for name in databases))
        self.folder.joinpath("bin").mkdir()
        control = f"{HERE}/world_control.py {self.folder}"
        self.write_program("test-hosts", f'exec {sys.executable} -B {control} "$@"\n')

    def _own_accounts(self, name):
        """Accounts as on this machine, but root has another home, and is not locked, which sshd would notice."""
        folder = self.folder / "accounts" / name
        folder.mkdir(parents=True, exist_ok=True)
        changes = {"passwd": {5: str(self.home(name)), 6: "/bin/sh"}, "shadow": {1: "*"}}
        for file, fields in changes.items():
            lines = []
            for line in pathlib.Path("/etc", file).read_text().splitlines():
                words = line.split(":")
                if words[0] == "root":
                    for index, text in fields.items():
                        words[index] = text
                lines.append(":".join(words) + "\n")
            folder.joinpath(file).touch(0o600 if file == "shadow" else 0o644)
            folder.joinpath(file).write_text("".join(lines))
        folder.joinpath("boot_id").write_text(pathlib.Path("/proc/sys/kernel/random/uuid").read_text())
        return folder

    def _spec(self, plan):
        accounts = self._own_accounts(plan.name)
        files = {"/etc/hosts": self.folder / "hosts", "/etc/nsswitch.conf": self.folder / "nsswitch.conf",
                 "/etc/passwd": accounts / "passwd", "/etc/shadow": accounts / "shadow"}
        own_folders = ["/run"]
        if self.own_files and plan.name != LAUNCHER:
            own_folders += ["/tmp", "/var/tmp", "/dev/shm"]
        return {
            "name": plan.name,
            "index": self._index(plan.name),
            "own_pids": plan.name != LAUNCHER,
            "address": self.address(plan.name),
            "mac": self._mac(plan.name),
            "neighbours": [(self.address(name), self._mac(name)) for name in self.names if name != plan.name],
            "boot_id": str(accounts / "boot_id"),
            "own_folders": own_folders,
            "kept": self.kept,
            "mounts": [(str(source), str(target)) for target, source in files.items()] +
                      [(str(source), str(target)) for source, target in plan.mounts],
            "daemons": [{"command": list(map(str, daemon.command)),
                         "log": f"{self.folder}/{plan.name}-{os.path.basename(daemon.command[0])}.log"}
                        for daemon in plan.daemons],
        }

    def _index(self, host):
        return self.names.index(host)

    def _mac(self, host):
        return f"02:70:65:61:6c:{self._index(host):02x}"

    def _port(self, host):
        return f"port{self._index(host)}"

    def _at_bridge(self, *words):
        keeper = self.folder.joinpath("keeper").read_text()
        run = subprocess.run(["nsenter", f"--net=/proc/{keeper}/ns/net", "ip", *words], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode != 0:
            raise WorldError(f"ip {' '.join(words)} failed: {run.stdout.strip()}")

    def _describe(self, host):
        return self._ask("describe")[host]

    def all_processes(self, host):
        """Also the daemons, and the first process of an own pid namespace."""
        described = self._describe(host)
        anchor = () if described["spec"]["own_pids"] else [described["first"]]
        return process_list.inside(described["spaces"], but=anchor)

    def _ask(self, what, **more):
        answer = json.loads(self._send({"do": what, **more}) or '{"error": "the keeper ended"}')
        if "error" in answer:
            raise WorldError(f"the keeper cannot {what}: {answer['error']}")
        return answer["ok"]

    def _send(self, order):
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.folder / "control"))
            with control.makefile("rw") as lines:
                print(json.dumps(order), file=lines, flush=True)
                return lines.readline()
