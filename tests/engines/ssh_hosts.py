#!/usr/bin/env python3
"""Hosts with sshd on this machine, in namespaces (world.py), for tests of the ssh runner.

    with SshHosts([Host("node1"), Host("node2"), Host("node3", fault=Fault.REFUSED_KEY)], programs=[BIN]) as hosts:
        hosts.run(["ssh", "node1", "hostname"])
        hosts.run(["peal", "run", "-H", "node1:2,node2:2", PROGRAM])
        hosts.cut("node2")

The commands run on the host `launcher`, where plain `ssh` reads the configuration of the test: root's home folder
is one of the test. Each host has its own sshd, port, host key and list of authorized keys. MaxStartups is the default.

As a command, from tests in other languages; it ends with 77 if no hosts can be made here:

    ssh_hosts.py [--hosts 8] [--host NAME[=FAULT]]... [--programs FOLDER]... [--own-files]
                 [--containers] -- COMMAND...

COMMAND runs on the launcher's host, with the number and the signals of this process. It finds a program
`test-hosts`: `test-hosts cut node2` (freeze, kill_all, restore, processes). The hosts end with COMMAND.
"""
import argparse
import dataclasses
import enum
import os
import pathlib
import subprocess
import sys

import images
import world

SKIPPED = 77  # the exit code that ctest reads as skipped
FIRST_PORT = 2200
LISTENS = "0A"  # the state of a socket in /proc/net/tcp


class Fault(enum.Enum):
    """Why a host refuses."""
    UNKNOWN_KEY = "unknown-key"  # the launcher does not know the host's key.
    CHANGED_KEY = "changed-key"  # the launcher knows another key.
    REFUSED_KEY = "refused-key"  # the host does not accept the user's key.
    NO_SSHD = "no-sshd"  # the connection is refused.
    NO_NAME = "no-name"  # the name does not resolve, and there is no such host.
    NO_PROGRAMS = "no-programs"  # the folders of programs are empty there.
    OTHER_VERSION = "other-version"  # `peal` there prints the first line of an agent of version 99.0.0.
    SILENT = "silent"  # packets vanish.


@dataclasses.dataclass(frozen=True)
class Host:
    name: str
    fault: Fault = None
    mounts: tuple = ()  # pairs (source, target): what this host sees at `target`, such as another version
    alias: str = None  # a further name, which only the client's configuration knows


def why_not():
    """Why no hosts can be made here: a sentence, or nothing."""
    return world.why_not(["sshd", "ssh", "ssh-keygen"])


class SshHosts(world.World):
    def __init__(self, hosts, programs=(), own_files=False, kept=(), containers=None):
        """`hosts`: a number of hosts, named node1 to nodeN, or a list of Host. `programs`: folders that are first in
        the path of each host."""
        if isinstance(hosts, int):
            hosts = [Host(f"node{index + 1}") for index in range(hosts)]
        self.hosts = {host.name: host for host in hosts if host.fault != Fault.NO_NAME}
        self.programs = [str(pathlib.Path(folder).resolve()) for folder in programs]
        super().__init__(list(self.hosts), own_files, [*kept, *self.programs], containers)
        try:
            self.path = self.programs
            self._write_client()
            self.boot([world.Plan(self.launcher), *map(self._plan, self.hosts.values())])
            for host in self.hosts.values():
                if host.fault == Fault.SILENT:
                    self.cut(host.name)
                self._wait_for_sshd(host)
        except BaseException:
            self.stop()
            raise

    def restore(self, host):
        super().restore(host)
        self._wait_for_sshd(self.hosts[host])

    def ssh_calls(self):
        """The arguments of each call of `ssh` on the launcher's host, in no order."""
        return self.calls("ssh")

    def port(self, name):
        return FIRST_PORT + self._index(name)

    def _plan(self, host):
        folder = self.folder / "sshd" / host.name
        folder.mkdir(parents=True)
        key, authorized = folder / "key", folder / "authorized_keys"
        self._make_key(key)
        self._tell_client(host, key)
        user = self.home(self.launcher) / ".ssh/id_ed25519.pub"
        authorized.write_text("" if host.fault == Fault.REFUSED_KEY else user.read_text())
        mounts = list(host.mounts)
        if host.fault == Fault.NO_PROGRAMS:
            empty = folder / "empty"
            empty.mkdir()
            mounts += [(empty, program) for program in self.programs]
        if host.fault == Fault.OTHER_VERSION:
            other = folder / "other"
            other.mkdir()
            other.joinpath("peal").write_text("#!/bin/sh\necho 'PEAL-AGENT 99 99.0.0'\ncat > /dev/null\n")
            other.joinpath("peal").chmod(0o755)
            mounts += [(other, program) for program in self.programs]
        path = ":".join([*self.programs, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])
        config = folder / "sshd_config"
        config.write_text(f"""Port {self.port(host.name)}
HostKey {key}
AuthorizedKeysFile {authorized}
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
PrintMotd no
# The folder of temporary files, above the keys, may be written by all.
StrictModes no
UsePAM no
SetEnv PATH={path}
Subsystem sftp internal-sftp
""")
        sshd = world.Daemon((world.find_program("sshd"), "-D", "-e", "-f", config))
        return world.Plan(host.name, () if host.fault == Fault.NO_SSHD else (sshd,), tuple(mounts))

    def _write_client(self):
        """The user's key. The configuration and the hosts' keys follow with each host."""
        folder = self.home(self.launcher) / ".ssh"
        folder.mkdir(parents=True, mode=0o700)
        self._make_key(folder / "id_ed25519")
        self.note_calls("ssh")

    def _tell_client(self, host, key):
        folder = self.home(self.launcher) / ".ssh"
        address, port = self.address(host.name), self.port(host.name)
        with folder.joinpath("config").open("a") as config:
            config.write(f"Host {host.name}{f' {host.alias}' if host.alias else ''}\n"
                         f"  HostName {address}\n  Port {port}\n  User root\n\n")
        if host.fault == Fault.UNKNOWN_KEY:
            return
        if host.fault == Fault.CHANGED_KEY:
            key = folder / "id_ed25519"  # a key, but of no host
        kind, public = key.with_suffix(".pub").read_text().split()[:2]
        with folder.joinpath("known_hosts").open("a") as known:
            known.write(f"[{address}]:{port} {kind} {public}\n")

    @staticmethod
    def _make_key(path):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.parent.name, "-f", path],
                       check=True, stdin=subprocess.DEVNULL)

    def _wait_for_sshd(self, host):
        if host.fault == Fault.NO_SSHD:
            return
        sockets = pathlib.Path(f"/proc/{self._describe(host.name)['first']}/net/tcp")
        port = f":{self.port(host.name):04X}"

        def listens():
            lines = [line.split() for line in sockets.read_text().splitlines()]
            return any(words[1].endswith(port) and words[3] == LISTENS for words in lines)
        try:
            world.wait_until(listens, f"listening: the sshd of {host.name}")
        except world.WorldError as error:
            raise world.WorldError(f"{error}; its log: {self.log(f'{host.name}-sshd.log')}") from None


def main():
    arguments = argparse.ArgumentParser(prog="ssh_hosts.py")
    arguments.add_argument("--hosts", type=int, default=0, help="this many hosts, node1 to nodeN")
    faults = ", ".join(fault.value for fault in Fault)
    arguments.add_argument("--host", action="append", default=[], metavar="NAME[=FAULT]",
                           help=f"a host; FAULT is one of {faults}")
    arguments.add_argument("--programs", action="append", default=[], metavar="FOLDER")
    arguments.add_argument("--own-files", action="store_true")
    arguments.add_argument("--containers", action="store_true", help="podman and images, on each host")
    arguments.add_argument("command", nargs="+")
    options = arguments.parse_args()
    if reason := why_not() or (options.containers and images.why_not()):
        print("SKIPPED:", reason)
        sys.exit(SKIPPED)
    hosts = [Host(f"node{index + 1}") for index in range(options.hosts)]
    for name, _, fault in (text.partition("=") for text in options.host):
        if fault and fault not in faults.split(", "):
            arguments.error(f"--host {name}={fault}: FAULT is one of {faults}")
        hosts.append(Host(name, Fault(fault) if fault else None))
    containers = images.Containers(options.programs) if options.containers else None
    running = SshHosts(hosts, options.programs, options.own_files, containers=containers)
    command = running.command(options.command)
    os.execvpe(command[0], command, running.environment())


if __name__ == "__main__":
    main()
