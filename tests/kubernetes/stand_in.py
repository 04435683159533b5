"""A running stand-in cluster, and peal and kubectl against it. Used by the tests of this folder."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / ".venv/bin"  # scripts/bootstrap installs kubectl there
PATIENCE = 60  # seconds
SECRET = "open-sesame-0123456789"


def find(program):
    return shutil.which(program) or shutil.which(program, path=TOOLS)


def as_root():
    """Words before a command that needs namespaces."""
    return [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]


def why_not():
    """Why no stand-in can run here: a sentence, or nothing."""
    if not find("kubectl"):
        return "kubectl is not installed; scripts/bootstrap installs it"
    namespaces = subprocess.run([*as_root(), "unshare", "--mount", "--net", "true"], capture_output=True)
    return "this machine allows no namespaces, so that pods could have no names" if namespaces.returncode else None


def wait_for(what, condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"after {patience} s: {what}")


class StandIn:
    """`tool`: the program peal_kubernetes_tool, for run() and begin()."""

    def __init__(self, tool=None, cores=8, secret=SECRET):
        self.tool = tool
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peal-kubernetes-"))
        self.output = open(self.folder / "server", "wb")
        self.server = subprocess.Popen(
            [*as_root(), sys.executable, "-B", str(HERE / "api_server.py"), str(self.folder), "--cores", str(cores),
             "--image", "with-entrypoint=sh,-c,echo the entrypoint of $RANK in $WORLD_SIZE"], stdout=self.output, stderr=self.output)
        wait_for("the stand-in is not ready", lambda: (self.folder / "kubeconfig").exists())
        self.environment = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig"),
                            "HOME": str(self.folder),  # kubectl caches what the server can do
                            "PATH": f'{pathlib.Path(find("kubectl")).parent}:{os.environ["PATH"]}',
                            "PEAL_TEST_SECRET": secret}

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(PATIENCE)
        self.output.close()
        shutil.rmtree(self.folder)

    def begin(self, *words, **more):
        return subprocess.Popen([self.tool, *words], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, **more)

    def run(self, *words, environment=None, code=0):
        """The output of peal_kubernetes_tool, which must end with this exit code."""
        done = subprocess.run([self.tool, *words], env={**self.environment, **(environment or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        assert done.returncode == code, f"{words}: exit code {done.returncode}: {done.stdout}"
        return done.stdout

    def kubectl(self, *words):
        return subprocess.run(["kubectl", *words], env=self.environment, check=True, timeout=PATIENCE,
                              capture_output=True, text=True).stdout

    def start(self, name, job, *flags):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(job))
        return self.run("start", str(path), name, *flags)

    def status(self, name):
        return json.loads(self.run("status", name))

    def wait_for_state(self, name, *states):
        with contextlib.suppress(AssertionError):
            return wait_for("", lambda: (lambda status: status if status["state"] in states else None)(
                self.status(name)))
        raise AssertionError(f"{name} is not {states}: {self.status(name)}")


def one_role(*command, **role):
    """A job of one node."""
    job = {key: role.pop(key) for key in ("env", "max_run_time", "grace", "restarts") if key in role}
    return {"name": "job", **job,
            "roles": [{"name": "master", "image": "any", "command": list(command), **role}]}
