"""The exceptions of `peal.horovod`: `horovod.common.exceptions`."""

from __future__ import annotations

from peal._errors import Facts


class HorovodInternalError(Facts, RuntimeError):
    """An operation failed between ranks: a rank is lost, the group was shut down, a wait timed out.
    `elastic.run` catches it, restores the last commit, and continues with the remaining ranks.

    The attributes are those of `peal.Error`: the rank that is lost, its host, and so on.
    """


class HorovodMismatchError(HorovodInternalError):
    """The ranks submitted different operations under one name, or a rank has joined and the operation
    does not allow it. All ranks get this error, its text has both sides with their ranks, and the group
    stays usable. It is a mistake in the program, so `elastic.run` lets it pass."""


class WorkerRemoved(RuntimeError):
    """This worker of an elastic job must end: the driver has removed it, ends the job, or has ended. A program that
    ends by this exception prints its text without a traceback."""


class HostsUpdatedInterrupt(RuntimeError):
    """The hosts of an elastic job have changed: `elastic.run` continues with the new set of ranks.
    `skip_sync`: hosts were only removed."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__()
        self.skip_sync = skip_sync


def get_version_mismatch_message(name: str, version: str, installed_version: str) -> str:
    return (f"Framework {name} installed with version {installed_version} but found version {version}.\n"
            "             This can result in unexpected behavior including runtime errors.\n"
            "             Reinstall Horovod using `pip install --no-cache-dir` to build with the new version.")


class HorovodVersionMismatchError(ImportError):
    """A framework has another version than the one that the package was built for."""

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name = name
        self.version = version
        self.installed_version = installed_version
