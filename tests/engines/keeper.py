"""The keeper of a World: a process that owns the hosts, and removes all of them when its owner is dead.

Started by world.py with the prefix of the folder to make. It prints one line of JSON, {"folder", "keeper"} or
{"error"}, and detaches. The folder then has a socket `control`, which takes lines of JSON:

    {"do": "start", "hosts": [spec...]}     starts hosts
    {"do": "stop", "hosts": [name...]}      kills and removes hosts
    {"do": "describe"}                      {name: {"spec", "outer", "first", "daemons", "spaces": {kind: number}}}
    {"do": "end"}                           removes all; the answer is that the socket closes

The answer is {"ok": ...} or {"error": text}. The keeper notices the death of its owner also after SIGKILL. The
hosts die with the keeper.
"""
import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback

import host_process
import process_list
import system_calls

BRIDGE = "bridge"
PATIENCE = 60  # seconds for a host to start


def port_of(spec):
    """The name of a host's interface at the bridge."""
    return f"port{spec['index']}"


@dataclasses.dataclass
class RunningHost:
    spec: dict
    outer: int  # a child of the keeper, which reaps it only when the host stops: so the number stays its own
    first: int = 0  # the first process inside
    daemons: list = dataclasses.field(default_factory=list)  # their numbers inside
    # Open files of its namespaces. As long as they are open, no other namespace gets their numbers.
    opened: dict = dataclasses.field(default_factory=dict)

    def open_namespaces(self):
        for kind in process_list.namespaces_of(self.first):
            self.opened[kind] = os.open(f"/proc/{self.first}/ns/{kind}", os.O_RDONLY)

    def spaces(self):
        return {kind: os.fstat(file).st_ino for kind, file in self.opened.items()}

    def kill(self):
        """Returns when all processes are dead."""
        while inside := process_list.inside(self.spaces(), but=[self.first]):
            if not self.spec["own_pids"]:  # else the kernel kills them with the first process
                process_list.kill(inside)
            else:
                os.kill(self.outer, signal.SIGKILL)
            time.sleep(0.002)
        os.kill(self.outer, signal.SIGKILL)
        os.waitpid(self.outer, 0)
        while process_list.inside(self.spaces()):
            time.sleep(0.002)

    def close(self):
        for file in self.opened.values():
            os.close(file)


class Keeper:
    def __init__(self, folder, owner):
        self.folder, self.owner = folder, owner
        self.hosts = {}
        self.control = socket.socket(socket.AF_UNIX)
        self.control.bind(f"{folder}/control")
        self.control.listen()
        system_calls.unshare(system_calls.NEW_NET)
        host_process.ip_batch(["link set lo up", f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up"])

    def serve(self):
        """Until the owner is dead, or the world has been ended."""
        try:
            while True:
                ready, _, _ = select.select([self.control, self.owner], [], [])
                if self.owner in ready:
                    return
                client, _ = self.control.accept()
                with client, client.makefile("rw") as lines, contextlib.suppress(ConnectionError):
                    if self._answer(lines):
                        return
        finally:
            self._remove_all()

    def _answer(self, lines):
        """Serves one request; returns whether the world ends."""
        order = json.loads(lines.readline() or '{"do": "nothing"}')
        if order["do"] == "end":
            self._remove_all()
            return True
        does = {"start": self._start, "stop": self._stop, "describe": self._describe, "nothing": list}
        try:
            answer = {"ok": does[order.pop("do")](**order)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=lines, flush=True)
        return False

    def _describe(self):
        return {name: {"spec": host.spec, "outer": host.outer, "first": host.first, "daemons": host.daemons,
                       "spaces": host.spaces()} for name, host in self.hosts.items()}

    def _start(self, hosts):
        started = []
        for spec in hosts:
            outer, reports, orders = host_process.start_host(spec)
            self.hosts[spec["name"]] = RunningHost(spec, outer)
            started.append((self.hosts[spec["name"]], reports, orders))
        for host, reports, _ in started:
            host.first = self._report(reports)["pid"]
            host.open_namespaces()
        cables = [line for host, _, _ in started for line in self._cable(host)]
        host_process.ip_batch(cables)
        for _, _, orders in started:
            print("go", file=orders, flush=True)
        for host, reports, orders in started:
            host.daemons = self._report(reports)["daemons"]
            reports.close()
            orders.close()
        return self._describe()

    @staticmethod
    def _cable(host):
        port = port_of(host.spec)
        return [f"link add {port} type veth peer name {host_process.INTERFACE} address {host.spec['mac']} "
                f"netns {host.first}",
                f"link set {port} master {BRIDGE} up"]

    @staticmethod
    def _report(reports):
        """The next report, while only one is under way."""
        ready, _, _ = select.select([reports], [], [], PATIENCE)
        report = json.loads((reports.readline() if ready else "") or '{"error": "a host does not answer"}')
        if "error" in report:
            raise OSError(report["error"])
        return report

    def _stop(self, hosts):
        for name in hosts:
            host = self.hosts.pop(name)
            host.kill()
            host_process.ip_batch([f"link del {port_of(host.spec)}"])  # the kernel would do it some time later
            host.close()
        return hosts

    def _remove_all(self):
        """Kills the hosts at the same time."""
        for host in self.hosts.values():
            if host.spec["own_pids"]:
                os.kill(host.outer, signal.SIGKILL)
        for host in self.hosts.values():
            host.kill()
            host.close()
        self.hosts.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(prefix):
    """Is the parent of the keeper, which must not be a descendant of the owner: a kill of the whole tree of the
    owner leaves the keeper to clean up."""
    owner_pid = os.getppid()
    owner = os.pidfd_open(owner_pid)
    if os.getppid() != owner_pid or os.fork():
        return
    os.setsid()
    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        keeper = Keeper(folder, owner)
    except OSError as error:
        shutil.rmtree(folder)
        print(json.dumps({"error": str(error)}), flush=True)
        return
    log = os.open(f"{folder}/keeper.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 2)
    print(json.dumps({"folder": folder, "keeper": os.getpid()}), flush=True)
    os.dup2(log, 1)
    keeper.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
