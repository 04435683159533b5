#!/usr/bin/env python3
"""Containers on this machine: images made from Debian packages, and podman with a configuration of the test.

    with World([], containers=Containers(programs=[BIN])) as world:
        world.boot([Plan(world.launcher)])
        world.run(["podman", "run", "--rm", "--network=host", IMAGE, "python3", "-c", "print(1)"])

SshHosts and SlurmCluster take `containers` too; then each host has podman. Plain `podman` works: its settings (the
runtime, limits that this machine allows, the storage) come from /etc/containers, which is another one in a world.
Each host has its own storage, and reads the images from a cache in the user's folder. The first test that needs an
image makes it, in a minute or two; another image only if the packages change.

IMAGE has Debian's python3 and the libraries that the programs need. Its containers see the project's folder, its
Python environment and the programs at the same paths as on this machine, read-only. OTHER_IMAGE is the same with
another name: in each, the variable PEAL_TEST_IMAGE is the name.

As a command, `images.py` makes the images, so that no test has to wait for them.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import world

IMAGE, OTHER_IMAGE = "peal-test", "peal-test-other"
PACKAGES = ("python3", "procps")
DEVELOPMENT = ("libfmt-dev", "libhwy-dev", "libhwloc-dev", "libssl-dev", "zlib1g-dev", "libyaml-cpp-dev")
SKIPPED = 77  # the exit code that ctest reads as skipped
HYBRID_GROUPS = "/sys/fs/cgroup/cgroup.controllers"  # missing unless all control groups are of version 2


def why_not():
    """Why there can be no containers here: a sentence, or nothing."""
    if reason := world.why_not(["podman", "conmon", "debootstrap", "tar", "setpriv"]):
        return reason
    if not _runtime():
        return "no runtime of containers is installed here: runc, or crun with control groups of version 2"
    if not pathlib.Path("/usr/share/debootstrap/scripts", _release()).exists():
        return f"debootstrap cannot install this system's release, `{_release()}`"
    return None


class Containers:
    """What the hosts of a world need for containers."""

    def __init__(self, programs=(), volumes=()):
        """`programs`: folders of programs that containers can run. `volumes`: more folders that they see, as in
        podman's option --volume."""
        self.programs = [pathlib.Path(folder).resolve() for folder in programs]
        self.volumes = [*map(str, volumes), *(f"{folder}:{folder}:ro" for folder in self._folders())]
        self.cache = _Cache([*PACKAGES, *_libraries()])

    def prepare(self):
        """Makes the images, if the cache lacks them."""
        self.cache.prepare()

    def configure(self, folder):
        """Writes podman's configuration and storage below `folder`; returns the folder to show as /etc/containers."""
        return _configure(folder, self.cache.driver, self.volumes, [self.cache.store])

    def _folders(self):
        """Without those that lie in another."""
        environment = world.ROOT / ".venv"
        folders = {world.ROOT, *self.programs}
        if environment.exists():
            folders |= {environment.resolve(), _base_of(environment)}
        folders.discard(None)
        if pathlib.Path("/") in folders:
            raise ValueError("containers cannot see the folder / of this machine: put the programs into another folder")
        return sorted(one for one in folders if not any(other in one.parents for other in folders))


class _Cache:
    """A storage of podman in the user's folder of caches, with the images of these packages."""

    def __init__(self, packages):
        self.packages = sorted(set(packages))
        self.driver = _storage_driver()
        key = hashlib.sha256(repr((_release(), self.packages, self.driver)).encode()).hexdigest()[:16]
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.folder = pathlib.Path(caches, "peal-test-images", f"{_release()}-{key}")
        self.store = self.folder / "store"

    def prepare(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        complete = self.folder / "complete"
        with self.folder.joinpath("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel unlocks if this process dies
            if complete.exists():
                return
            root = self.folder / "root"
            for folder in root, self.store:
                shutil.rmtree(folder, ignore_errors=True)
            try:
                self._install(root)
                self._import(root)
            finally:
                shutil.rmtree(root, ignore_errors=True)
            complete.write_text("\n".join(self.packages) + "\n")

    def _install(self, root):
        """All processes and mounts of debootstrap end with this process."""
        log = self.folder / "debootstrap.log"
        with log.open("w") as output:
            run = subprocess.run(["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork",
                                  "--kill-child", "--mount-proc", "debootstrap", "--variant=minbase",
                                  f"--include={','.join(self.packages)}", _release(), root],
                                 stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        if run.returncode != 0:
            raise world.WorldError(f"debootstrap cannot make an image; its log is {log}, and ends:\n"
                                   f"{log.read_text()[-1000:]}")
        for pattern in "var/cache/apt/archives/*.deb", "var/lib/apt/lists/*_*":
            for path in root.glob(pattern):
                path.unlink()

    def _import(self, root):
        """In a world, since podman also writes to /run."""
        with world.World([], kept=[self.folder]) as maker:
            configuration = _configure(maker.folder / "importer", self.driver, [], [], self.store)
            maker.boot([world.Plan(maker.launcher, mounts=((configuration, "/etc/containers"),))])
            for name in IMAGE, OTHER_IMAGE:
                script = f'tar -C "$1" -c . | podman import --change "ENV PEAL_TEST_IMAGE={name}" - "{name}"'
                run = maker.run(["bash", "-o", "pipefail", "-c", script, "bash", root], timeout=600)
                if run.returncode != 0:
                    raise world.WorldError(f"podman cannot import an image: {run.stdout}")


def _configure(folder, driver, volumes, other_stores, store=None):
    """podman reads files in TOML, whose texts and lists of texts are those of JSON."""
    etc = pathlib.Path(folder, "etc")
    etc.mkdir(parents=True, exist_ok=True)
    etc.joinpath("containers.conf").write_text(f"""[containers]
default_ulimits = {json.dumps([_limit("nofile", "fs/nr_open"), _limit("nproc", "kernel/pid_max")])}
volumes = {json.dumps(volumes)}
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
runtime = {json.dumps(_runtime())}
events_logger = "file"
lock_type = "file"
tmp_dir = "/run/libpod"
""")
    etc.joinpath("storage.conf").write_text(f"""[storage]
driver = {json.dumps(driver)}
graphroot = {json.dumps(str(store or pathlib.Path(folder, "store")))}
runroot = "/run/containers/storage"
[storage.options]
additionalimagestores = {json.dumps(list(map(str, other_stores)))}
""")
    etc.joinpath("policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}\n')
    etc.joinpath("registries.conf").write_text("unqualified-search-registries = []\n")
    return etc


def _limit(name, most):
    """podman's default is more than root may set in a sandbox. podman lowers its own limit to `most`."""
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    number = int(pathlib.Path("/proc/sys", most).read_text())
    number = number if hard == resource.RLIM_INFINITY else min(hard, number)
    return f"{name}={number}:{number}"


def _runtime():
    """crun is quicker, but refuses control groups of version 1 beside those of version 2."""
    names = ("crun", "runc") if os.path.exists(HYBRID_GROUPS) else ("runc",)
    return next(filter(world.find_program, names), None)


def _storage_driver():
    """overlay, unless the file systems of temporary files and caches cannot be its layers."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "low", "high", "work", "merged":
            os.mkdir(f"{folder}/{name}")
        options = f"lowerdir={folder}/low,upperdir={folder}/high,workdir={folder}/work"
        tried = subprocess.run(["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", options,
                                f"{folder}/merged"], capture_output=True)
    return "overlay" if tried.returncode == 0 else "vfs"


def _release():
    """The code name of this Debian: images have the C library with which the programs were built."""
    with contextlib.suppress(OSError):
        found = re.search(r"^VERSION_CODENAME=(\S+)$", pathlib.Path("/etc/os-release").read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    return "unknown"


def _base_of(environment):
    """The folder of the Python that the environment was made with; nothing if images have it."""
    found = re.search(r"^home = (.*)$", environment.joinpath("pyvenv.cfg").read_text(), re.MULTILINE)
    base = pathlib.Path(found.group(1)).resolve().parent
    return None if base == pathlib.Path("/usr") else base


def _libraries():
    """The packages of the libraries that peal's programs need: those that the development packages depend on."""
    found = subprocess.run(["dpkg-query", "--show", "--showformat=${Depends}, ", *DEVELOPMENT],
                           capture_output=True, text=True).stdout
    names = {text.split()[0].split(":")[0] for text in found.split(",") if text.strip()}
    return [name for name in names if not name.endswith("-dev")]


if __name__ == "__main__":
    if reason := why_not():
        print("SKIPPED:", reason)
        sys.exit(SKIPPED)
    made = Containers()
    made.prepare()
    print(made.cache.folder)
