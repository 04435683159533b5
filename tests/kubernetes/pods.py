"""The pods of the stand-in: each pod with one container is a process group of this machine."""
import base64
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from objects import now

HERE = pathlib.Path(__file__).resolve().parent
PAGE = os.sysconf("SC_PAGE_SIZE")
REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
UNITS = {"": 1, "m": 0.001, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def enter_own_network(hosts):
    """Gives this thread, and the processes that it starts, a network of their own and their own /etc/hosts. Needs
    the rights of root, in this namespace of users."""
    new_mounts, new_network = 0x20000, 0x40000000  # CLONE_NEWNS, CLONE_NEWNET
    if ctypes.CDLL(None, use_errno=True).unshare(new_mounts | new_network) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for command in (["mount", "--make-rprivate", "/"], ["mount", "--bind", str(hosts), "/etc/hosts"],
                    ["ip", "link", "set", "lo", "up"], ["ip", "link", "add", "pods", "type", "bridge"],
                    ["ip", "link", "set", "pods", "up"]):
        subprocess.run(command, check=True)


def number_of(quantity):
    value, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(quantity)).groups()
    return float(value) * UNITS[unit]


def expand(text, variables):
    """As Kubernetes does: $(NAME) becomes its value if the variable is set, and $$ becomes $."""
    return REFERENCE.sub(
        lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), text)


def field(pod, path):
    found = re.fullmatch(r"metadata\.(annotations|labels)\['(.*)'\]", path)
    if found:
        return pod["metadata"][found[1]][found[2]]
    return {"metadata.name": pod["metadata"]["name"], "status.podIP": pod["status"]["podIP"]}[path]


def memory_of_group(group):
    pages = 0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                pages += int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            pass  # it has ended
    return pages * PAGE


def is_active(pod):
    return pod["status"]["phase"] in ("Pending", "Running")


class Process:
    """The process of a pod; `problem` reads why it could not be executed."""

    def __init__(self, order, log):
        self.killed_for_memory = False
        self.end_at = None  # of the grace
        reader, writer = os.pipe()
        command = [sys.executable, "-S", str(HERE / "pod_process.py"), str(writer)]
        with open(log, "ab") as file:
            self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file,
                                          start_new_session=True, pass_fds=[writer])
        os.close(writer)
        self.problem = reader
        self.popen.stdin.write(json.dumps(order).encode())
        self.popen.stdin.close()

    def kill(self, number):
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass

    def end(self):
        """The state of a container that has ended."""
        os.set_blocking(self.problem, False)
        try:
            message = os.read(self.problem, 1 << 16).decode()
        except BlockingIOError:  # a process of another pod, which just starts, has the pipe too
            message = ""
        os.close(self.problem)
        code = self.popen.returncode
        code = 128 - code if code < 0 else code
        reason = ("OOMKilled" if self.killed_for_memory else "StartError" if message else
                  "Completed" if code == 0 else "Error")
        ended = {"exitCode": code, "reason": reason, "finishedAt": now()}
        return {**ended, "message": message} if message else ended


class Pods:
    """All methods are called with the lock of the objects."""

    def __init__(self, objects, folder, entrypoints, cores):
        self.objects = objects
        self.folder = pathlib.Path(folder)
        self.entrypoints = entrypoints  # by image
        self.cores = cores              # of the only node
        self.processes = {}             # by uid
        self.addresses = 0
        self.hosts = self.folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")

    def log(self, pod):
        return self.folder / f'{pod["metadata"]["uid"]}.log'

    def create(self, namespace, pod):
        pod.update(apiVersion="v1", kind="Pod", status={"phase": "Pending"})
        self.objects.add("pods", namespace, pod)

    def delete(self, pod, grace=None):
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            return
        grace = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
        meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = now(), grace
        self.objects.changed("pods", pod)
        process = self.processes.get(meta["uid"])
        if process:
            process.end_at = time.monotonic() + grace
            os.kill(process.popen.pid, signal.SIGTERM)  # as Kubernetes: the first process of the container

    def advance(self, pod):
        """Called again and again."""
        process = self.processes.get(pod["metadata"]["uid"])
        if process:
            self.look_at(pod, process)
        elif "deletionTimestamp" in pod["metadata"]:
            self.objects.remove("pods", pod)
            self.write_hosts()
        elif pod["status"]["phase"] == "Pending":
            self.place(pod)

    def place(self, pod):
        container = pod["spec"]["containers"][0]
        cores = number_of(container.get("resources", {}).get("requests", {}).get("cpu", 0))
        if cores > self.cores:
            self.wait(pod, [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                             "message": "0/1 nodes are available: 1 Insufficient cpu."}], None)
        elif "no-such" in container["image"]:
            self.wait(pod, [{"type": "PodScheduled", "status": "True"}], {
                "waiting": {"reason": "ImagePullBackOff",
                            "message": f'Back-off pulling image "{container["image"]}"'}})
        else:
            self.start(pod)

    def wait(self, pod, conditions, state):
        if pod["status"].get("conditions") != conditions:
            pod["status"]["conditions"] = conditions
            if state:
                self.set_state(pod, state)
            self.objects.changed("pods", pod)

    def set_state(self, pod, state):
        container = pod["spec"]["containers"][0]
        pod["status"]["containerStatuses"] = [{
            "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
            "ready": "running" in state, "state": state}]

    def variables(self, pod, container):
        variables = {"PATH": os.environ["PATH"], "HOSTNAME": pod["spec"].get("hostname", "")}
        for entry in container.get("env", []):
            source = entry.get("valueFrom", {})
            if "secretKeyRef" in source:
                wanted = source["secretKeyRef"]
                secret = self.objects.get("secrets", pod["metadata"]["namespace"], wanted["name"])
                variables[entry["name"]] = base64.b64decode(secret["data"][wanted["key"]]).decode()
            elif "fieldRef" in source:
                variables[entry["name"]] = field(pod, source["fieldRef"]["fieldPath"])
            else:
                variables[entry["name"]] = expand(entry.get("value", ""), variables)
        return variables

    def new_address(self):
        self.addresses += 1
        address = f"10.244.{self.addresses // 250}.{1 + self.addresses % 250}"
        subprocess.run(["ip", "address", "add", f"{address}/16", "dev", "pods"], check=True)
        return address

    def start(self, pod):
        container = pod["spec"]["containers"][0]
        pod["status"].update(podIP=self.new_address(), hostIP="127.0.0.1", startTime=now(), phase="Running")
        pod["spec"]["nodeName"] = "stand-in"
        self.write_hosts()
        variables = self.variables(pod, container)
        words = container.get("command") or self.entrypoints.get(container["image"], [])
        order = {"words": [expand(word, variables) for word in [*words, *container.get("args", [])]],
                 "environment": variables, "directory": container.get("workingDir", str(self.folder))}
        self.processes[pod["metadata"]["uid"]] = Process(order, self.log(pod))
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"},
                                       {"type": "Ready", "status": "True"}]
        self.set_state(pod, {"running": {"startedAt": now()}})
        self.objects.changed("pods", pod)

    def look_at(self, pod, process):
        container = pod["spec"]["containers"][0]
        limit = container.get("resources", {}).get("limits", {}).get("memory")
        if limit and memory_of_group(process.popen.pid) > number_of(limit):
            process.killed_for_memory = True
            process.kill(signal.SIGKILL)
        if process.end_at is not None and time.monotonic() > process.end_at:
            process.kill(signal.SIGKILL)
        if process.popen.poll() is None:
            return
        process.kill(signal.SIGKILL)  # what the first process has left behind
        del self.processes[pod["metadata"]["uid"]]
        end = process.end()
        pod["status"]["phase"] = "Succeeded" if end["exitCode"] == 0 else "Failed"
        self.set_state(pod, {"terminated": end})
        self.objects.changed("pods", pod)
        self.write_hosts()

    def write_hosts(self):
        """A pod has a name if a headless Service selects it. In place, because the file is mounted."""
        lines = ["127.0.0.1 localhost"]
        for pod in self.objects.list("pods"):
            meta, spec = pod["metadata"], pod["spec"]
            for service in self.objects.list("services", meta["namespace"]):
                wanted = service["spec"]["selector"].items()
                if (is_active(pod) and "podIP" in pod["status"] and
                        service["metadata"]["name"] == spec.get("subdomain") and
                        wanted <= meta["labels"].items()):
                    lines.append(f'{pod["status"]["podIP"]} {spec["hostname"]}.{spec["subdomain"]} '
                                 f'{spec["hostname"]}')
        with open(self.hosts, "r+", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.truncate()

    def kill_all(self):
        for process in self.processes.values():
            process.kill(signal.SIGKILL)
            process.popen.wait()
