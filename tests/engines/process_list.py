"""The processes of this machine, by namespace."""
import contextlib
import dataclasses
import os
import signal

KINDS = ("net", "uts", "mnt", "ipc", "pid")


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int  # for this process
    pid_inside: int  # in its own pid namespace
    parent: int
    state: str  # as in ps: T is stopped, Z is a zombie
    command: tuple  # its arguments; of a process that changed its title, the title


def namespaces_of(pid):
    """The namespaces of a process that differ from those of this process: {kind: number}."""
    own = _numbers("self")
    return {kind: number for kind, number in _numbers(pid).items() if number != own.get(kind)}


def inside(spaces, but=()):
    """The processes that are in one of the namespaces, and their descendants; no zombies."""
    processes, members = {}, set()
    for name in os.listdir("/proc"):
        process = read(int(name)) if name.isdigit() else None
        if process and process.state != "Z":
            processes[process.pid] = process
            if set(_numbers(process.pid).items()) & set(spaces.items()):
                members.add(process.pid)
    grown = True
    while grown:
        children = {one.pid for one in processes.values() if one.parent in members} - members
        members |= children
        grown = bool(children)
    return [processes[pid] for pid in sorted(members) if pid not in but]


def kill(processes, number=signal.SIGKILL):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def _numbers(pid):
    """Empty if the process is gone."""
    numbers = {}
    for kind in KINDS:
        with contextlib.suppress(OSError):
            numbers[kind] = os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    return numbers


def read(pid):
    """Nothing if the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = tuple(os.fsdecode(word) for word in file.read().rstrip(b"\0").split(b"\0"))
        return Process(pid, int(fields["NSpid"].split()[-1]), int(fields["PPid"]), fields["State"].split()[0], command)
    except (OSError, ValueError):
        return None
