"""The control groups of containers, which the kernel does not remove when the processes in them die."""
import contextlib
import pathlib
import re
import time

ROOT = pathlib.Path("/sys/fs/cgroup")
PATIENCE = 60  # seconds until the kernel regards the groups of dead processes as empty


def remove_of_containers_in(folder):
    """Removes the groups of the containers in podman's storages below `folder`. Their processes must be dead."""
    groups = groups_of(containers_in(folder))
    end = time.monotonic() + PATIENCE
    while groups and time.monotonic() < end:
        for group in groups:
            for inner in sorted(group.rglob("*/"), reverse=True):
                with contextlib.suppress(OSError):
                    inner.rmdir()
            with contextlib.suppress(OSError):
                group.rmdir()
        groups = [group for group in groups if group.exists()]
        if groups:
            time.sleep(0.01)


def containers_in(folder):
    """The long numbers of the containers in storages below `folder`."""
    return [path.name for path in pathlib.Path(folder).glob("*/store/*-containers/*")
            if re.fullmatch("[0-9a-f]{64}", path.name)]


def groups_of(containers):
    """The existing groups of the containers: for each controller, one."""
    parents = [ROOT / "libpod_parent", *ROOT.glob("*/libpod_parent")]  # of version 2, and of version 1
    candidates = (parent / f"libpod-{container}" for parent in parents for container in containers)
    return [group for group in candidates if group.exists()]
