"""System calls for namespaces, which the Python of Debian 12 does not offer (os.unshare came with 3.12)."""
import ctypes
import os
import signal

NEW_MOUNT, NEW_UTS, NEW_IPC, NEW_PID, NEW_NET = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000  # flags of mount
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of prctl

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what} failed: {os.strerror(number)}")


def unshare(flags):
    """Moves this process into new namespaces; of NEW_PID, only its next child."""
    _check(_libc.unshare(flags), "unshare")


def die_with(parent):
    """The kernel kills this process when the parent ends. The parent may already be dead."""
    _check(_libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() not in (parent, 0):  # 0: the parent is in another pid namespace
        os._exit(1)


def adopt_orphans():
    """Orphans among the descendants of this process become its children."""
    _check(_libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def mount(source, target, kind, flags=0, options=None):
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _check(_libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount of {source} at {target}")


def keep_mounts_private():
    """The mounts of this namespace do not reach the namespaces that it was copied from."""
    mount("none", "/", None, _RECURSIVE | _PRIVATE)


def bind(source, target):
    """Shows the file or the folder `source`, with the mounts below it, at the existing path `target`."""
    mount(source, target, None, _BIND | _RECURSIVE)
