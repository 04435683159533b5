"""`horovod.run`: a function on several ranks of this machine."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from peal import _spawn
from peal._errors import words_of
from peal.horovod import pickling

# Names of this machine, which count as different hosts.
_HERE = {"localhost", "127.0.0.1", "::1"}


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: Sequence[int] | None = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    start_timeout: int | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: bool | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Calls ``func(*args, **kwargs)`` on `num_proc` ranks, new processes on this machine, and returns the
    results by rank. In the function, ``hvd.init()`` joins the job.

    With cloudpickle, any function works: a lambda, or one of a notebook or of a script without
    ``if __name__ == "__main__":``. Without it, a function from the top level of a module.

    hosts: "localhost:2,127.0.0.1:2", names of this machine, which count as hosts; hostfile: lines "host
    slots=N". output_filename: a folder for the files rank.N/stdout and rank.N/stderr. ssh_port,
    ssh_identity_file, disable_cache, verbose and mpi_args have no effect.

    Errors: peal.SpawnError, a RuntimeError, if a rank raises: its text has the traceback of that rank.
    ValueError (hosts that are not this machine; elastic arguments: start an elastic job by horovodrun).
    """
    for old, new in (("np", np), ("min_np", min_np), ("max_np", max_np)):
        if new is not None:
            warnings.warn(f"{old} is deprecated, use {old.replace('np', 'num_proc')} instead",
                          DeprecationWarning, stacklevel=2)
    if np is not None and num_proc == 1:
        num_proc = np
    elastic = {"min_num_proc": min_num_proc if min_num_proc is not None else min_np,
               "max_num_proc": max_num_proc if max_num_proc is not None else max_np,
               "slots": slots, "reset_limit": reset_limit, "cooldown_range": cooldown_range}
    given = [name for name, value in elastic.items() if value not in (None, num_proc)]
    if given:
        raise ValueError(f"horovod.run starts a fixed number of ranks: start an elastic job by horovodrun "
                         f"(given: {', '.join(given)})")
    if hosts is not None and hostfile is not None:
        raise ValueError("Argument hosts and hostfile only allow one provided.")
    if use_gloo and use_mpi:
        raise ValueError("Argument use_gloo and use_mpi only allow one set True.")
    if use_mpi:
        raise ValueError("horovod.run: peal starts ranks without MPI, so use_mpi cannot be True")
    if num_proc < 1:
        raise ValueError(f"horovod.run cannot start {num_proc} ranks: pass num_proc of 1 or more")
    places = _places(_slots_of(hosts, hostfile, num_proc), num_proc)
    common = {"HOROVOD_GLOO_IFACE": network_interface,
              "HOROVOD_START_TIMEOUT": None if start_timeout is None else str(start_timeout)}
    environments = [{**place, **{name: value for name, value in common.items() if value is not None}}
                    for place in places]
    payload = _payload(func, tuple(args), dict(kwargs or {}))
    # A script without a guard of its main module would start ranks again. Functions that travel by value
    # do not need that module.
    results = _spawn.start_ranks(_call, (payload, output_filename), environments,
                                 imports_main=not pickling.BY_VALUE, executable=executable)
    return [None if result is None else pickling.loads(result) for result in results]


def _payload(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    try:
        return pickling.dumps((func, args, kwargs))
    except Exception as error:
        hint = "" if pickling.BY_VALUE else ". Install cloudpickle to send functions by value"
        raise ValueError(f"horovod.run cannot pickle its function: {words_of(error)}{hint}") from error


def _slots_of(hosts: str | None, hostfile: str | None, num_proc: int) -> list[tuple[str, int]]:
    if hostfile is not None:
        lines = (line.partition("#")[0].split() for line in Path(hostfile).read_text().splitlines())
        words = [(line[0], line[1].partition("=")[2] if len(line) > 1 else "1") for line in lines if line]
    elif hosts is not None:
        words = [(host, count or "1") for host, _, count in (one.strip().rpartition(":") if ":" in one
                                                             else (one.strip(), "", "")
                                                             for one in hosts.split(","))]
    else:
        return [("localhost", num_proc)]
    found = []
    for host, count in words:
        if host not in _HERE and host != os.uname().nodename:
            raise ValueError(f"horovod.run starts ranks on this machine, and {host} is another host: start "
                             "the script by horovodrun there")
        if not count.isdigit():
            raise ValueError(f"horovod.run: the number of slots of {host} is {count!r}")
        found.append((host, int(count)))
    available = sum(count for _, count in found)
    if available < num_proc:
        raise ValueError(f"Requested more processes ({num_proc}) than there are available slots ({available})")
    return found


def _places(slots: list[tuple[str, int]], num_proc: int) -> list[dict[str, str]]:
    """The variables of each rank; the first hosts are filled first."""
    used: list[tuple[str, int]] = []
    left = num_proc
    for host, count in slots:
        if left:
            used.append((host, min(count, left)))
            left -= used[-1][1]
    places: list[dict[str, str]] = []
    for cross, (host, count) in enumerate(used):
        for local in range(count):
            peers = [i for i, (_, other) in enumerate(used) if other > local]
            places.append({
                "HOROVOD_RANK": str(len(places)), "HOROVOD_SIZE": str(num_proc),
                "HOROVOD_LOCAL_RANK": str(local), "HOROVOD_LOCAL_SIZE": str(count),
                "HOROVOD_CROSS_RANK": str(peers.index(cross)), "HOROVOD_CROSS_SIZE": str(len(peers)),
                "HOROVOD_HOSTNAME": host, "LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(count)})
    return places


def _call(payload: bytes, output_folder: str | None) -> bytes:
    if output_folder is not None:
        _redirect(Path(output_folder))
    func, args, kwargs = pickling.loads(payload)
    return pickling.dumps(func(*args, **kwargs))


def _redirect(folder: Path) -> None:
    """stdout and stderr of this rank into DIR/rank.N/; N has as many digits as the last rank."""
    digits = len(str(int(os.environ["HOROVOD_SIZE"]) - 1))
    own = folder / f"rank.{int(os.environ['HOROVOD_RANK']):0{digits}}"
    own.mkdir(parents=True, exist_ok=True)
    for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        stream.flush()
        with (own / name).open("w") as file:
            os.dup2(file.fileno(), stream.fileno())
