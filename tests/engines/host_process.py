"""The processes of one host of a World: they make its namespaces, and the daemons are their children.

Called by keeper.py, in a forked process. A host has namespaces for its network, name, mounts, System V
memory and, except for the launcher's host, processes. When the first process of a pid namespace dies, the
kernel kills all others in it.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import traceback

import system_calls

INTERFACE = "eth0"


def start_host(spec):
    """Forks a host. Returns (its outer process, the read end of its reports, the write end of its orders).

    The reports are lines of JSON: {"pid": of the first process}; then, after a line of orders, {"daemons": their
    numbers inside}; or {"error": text}.
    """
    report_reader, report_writer = os.pipe()
    order_reader, order_writer = os.pipe()
    keeper = os.getpid()
    outer = os.fork()
    if outer:
        os.close(report_writer)
        os.close(order_reader)
        return outer, os.fdopen(report_reader), os.fdopen(order_writer, "w")
    try:
        own = sorted((2, order_reader, report_writer))
        for below, above in zip(own, (*own[1:], os.sysconf("SC_OPEN_MAX"))):
            os.closerange(below + 1, above)  # those of the keeper and of other hosts
        _run_host(spec, keeper, os.fdopen(report_writer, "w"), os.fdopen(order_reader))
    finally:
        os._exit(1)


def _run_host(spec, keeper, reports, orders):
    def report(**what):
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(what), file=reports, flush=True)

    try:
        system_calls.die_with(keeper)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        _enter_namespaces(spec)
        if spec["own_pids"]:
            _fork_the_first_process(report)
        else:
            system_calls.adopt_orphans()
            report(pid=os.getpid())
        system_calls.bind(spec["boot_id"], "/proc/sys/kernel/random/boot_id")
        if orders.readline() != "go\n":
            os._exit(1)
        _start_network(spec)
        report(daemons=[_start_daemon(daemon) for daemon in spec["daemons"]])
    except BaseException:
        report(error=f"host {spec['name']} cannot start: {traceback.format_exc()}")
        os._exit(1)
    reports.close()
    orders.close()
    _reap_forever()


def _fork_the_first_process(report):
    """Returns in the child, which has the number 1 in the new pid namespace."""
    outer = os.getpid()
    first = os.fork()
    if first:
        report(pid=first)
        os.waitpid(first, 0)
        os._exit(0)
    system_calls.die_with(outer)
    system_calls.mount("proc", "/proc", "proc")


def _enter_namespaces(spec):
    kinds = system_calls.NEW_NET | system_calls.NEW_UTS | system_calls.NEW_IPC | system_calls.NEW_MOUNT
    system_calls.unshare(kinds | (system_calls.NEW_PID if spec["own_pids"] else 0))
    socket.sethostname(spec["name"])
    system_calls.keep_mounts_private()
    for source, target in spec["mounts"]:
        system_calls.bind(source, target)
    for path in spec["own_folders"]:
        _hide(path, spec["kept"])
    os.makedirs("/run/sshd", exist_ok=True)
    _show_own_interfaces()


def _hide(path, kept):
    """Mounts an empty folder at `path`, in which only the `kept` folders remain visible."""
    inside = [one for one in kept if os.path.realpath(one).startswith(os.path.realpath(path) + "/")]
    opened = [(os.path.realpath(one), os.open(one, os.O_PATH)) for one in inside]
    system_calls.mount("tmpfs", path, "tmpfs", options="mode=1777")
    for target, descriptor in opened:
        os.makedirs(target, exist_ok=True)
        system_calls.bind(f"/proc/self/fd/{descriptor}", target)
        os.close(descriptor)


def _show_own_interfaces():
    """/sys/class/net shows the interfaces of the network namespace in which /sys was mounted."""
    control_groups = os.open("/sys/fs/cgroup", os.O_PATH)
    system_calls.mount("sysfs", "/sys", "sysfs")
    system_calls.bind(f"/proc/self/fd/{control_groups}", "/sys/fs/cgroup")
    os.close(control_groups)


def _start_network(spec):
    """The neighbours are permanent, as behind a router: a failed ARP request would tell senders that a host is gone."""
    ip_batch(["link set lo up", f"address add {spec['address']}/24 dev {INTERFACE}", f"link set {INTERFACE} up",
              *(f"neighbour replace {address} lladdr {mac} dev {INTERFACE} nud permanent"
                for address, mac in spec["neighbours"])])


def ip_batch(lines):
    run = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode != 0:
        raise OSError(f"ip failed: {run.stdout.strip()}; the commands were: {'; '.join(lines)}")


def _start_daemon(daemon):
    with open(daemon["log"], "a") as log:
        return subprocess.Popen(daemon["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                start_new_session=True).pid


def _reap_forever():
    """Orphans of the host become children of its first process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        signal.sigwait([signal.SIGCHLD])
