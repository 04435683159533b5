"""Runs programs as users start them."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Iterator

EXAMPLES = Path(os.environ.get("PEAL_EXAMPLES")
                or Path(__file__).resolve().parents[2] / "examples" / "python")
PATIENCE = 300.0  # seconds; a step takes a few, and a step that takes longer counts as a hang


def output_of(*command: str | Path, **environment: str) -> str:
    """The stdout of a command; the command must end with 0. `environment` is added to the environment
    of this process. A command that takes too long gets SIGTERM, so that a launcher ends its ranks, and
    then SIGKILL."""
    text, how, errors = _run(command, environment)
    if how:
        words = " ".join(map(str, command))
        raise AssertionError(f"{words}\n{how} and wrote\n{text}\n{errors[-6000:]}")
    return text


def output_on_gloo(*command: str | Path, **environment: str) -> str:
    """As output_of, for a command that uses gloo in place of peal and may end with any code: with gloo a
    process sometimes aborts at its end, after all its output ("terminate called without an active
    exception", in 9 of 60 runs without peal)."""
    return _run(command, environment)[0]


def _run(command: tuple[str | Path, ...], environment: dict[str, str]) -> tuple[str, str, str]:
    """The stdout, how the command ended badly ("" if it ended well), and the stderr."""
    variables = {**os.environ, **environment}
    variables.pop("PYTHONUNBUFFERED", None)  # it splits lines of ranks that share one stdout
    # Files, because a pipe stays open as long as any rank lives.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(word) for word in command], env=variables, stdout=out,
                                   stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
        how = ""
        try:
            code = process.wait(PATIENCE)
            how = f"ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            how = f"ran for more than {PATIENCE:.0f} s"
            for number in (signal.SIGTERM, signal.SIGKILL):
                os.killpg(process.pid, number)
                try:
                    process.wait(20)
                    break
                except subprocess.TimeoutExpired:
                    pass
        out.seek(0)
        err.seek(0)
        return out.read(), how, err.read()


def with_path(*folders: str) -> str:
    """A PYTHONPATH that begins with the folders."""
    return os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])


def example(name: str) -> list[str]:
    """A command that runs an example in this Python."""
    return [sys.executable, str(EXAMPLES / name)]


def peal_run(ranks: int, *command: str | Path) -> str:
    return output_of(sys.executable, "-m", "peal", "run", "--no-prefix", "-n", str(ranks), *command)


# As in ranks.py: children of a process that has already imported the slow modules.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch.distributed", "torch.distributed.checkpoint",
                                 "torch.distributed.pipelining",
                                 "torch.distributed.tensor.parallel"])


def script_on_ranks(ranks: int, script: Path, *arguments: str) -> str:
    """The output of `peal run -n RANKS python SCRIPT ARGUMENTS`, but without an import of torch on
    each rank, which takes seconds."""
    with tempfile.TemporaryDirectory() as folder, reserved_port() as port:
        files = [Path(folder, f"rank-{rank}") for rank in range(ranks)]
        processes = [
            _context.Process(target=_run_script, args=(
                file, str(script), arguments,
                {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
                 "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "OMP_NUM_THREADS": "1"}))
            for rank, file in enumerate(files)]
        for process in processes:
            process.start()
        end = time.monotonic() + PATIENCE
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()
        texts = [file.read_text() if file.exists() else "" for file in files]
        errors = [file.read_text() for file in sorted(Path(folder).glob("*.err"))]
        codes = [process.exitcode for process in processes]
        if any(codes):
            raise AssertionError(f"{script} on {ranks} ranks ended with {codes} and wrote\n"
                                 + "\n".join(texts + errors))
        return "".join(texts)


# Keeps the globals of a script until its process ends. If a model under DistributedDataParallel is
# freed earlier, it sometimes blocks forever, because gloo's threads wait for the GIL.
_kept: dict[str, object] = {}


def _run_script(out: Path, script: str, arguments: tuple[str, ...],
                environment: dict[str, str]) -> None:
    errors = out.with_suffix(".err")
    for path, descriptor in ((out, 1), (errors, 2)):
        with path.open("w") as file:
            os.dup2(file.fileno(), descriptor)
    faulthandler.dump_traceback_later(PATIENCE - 20)  # shows a hang before the process is killed
    import torch

    torch.set_num_threads(1)
    os.environ.update(environment)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    _kept.update(__name__="__main__", __file__=script)
    try:
        exec(compile(Path(script).read_text(), script, "exec"), _kept)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()


def lines_of(text: str) -> list[str]:
    """The lines in alphabetical order, because ranks write in any order."""
    return sorted(line for line in text.splitlines() if line)


def losses_of(text: str) -> dict[str, float]:
    """The losses by the text before them: "rank 0, step 3: loss 0.5" is {"rank 0, step 3": 0.5}."""
    return {where: float(loss)
            for where, loss in re.findall(r"(rank \d+(?:, \w+ \d+)+): loss ([\d.]+|nan|inf)", text)}


@contextlib.contextmanager
def reserved_port() -> Iterator[str]:
    """A free port for a server that sets SO_REUSEADDR. The port stays reserved during the block."""
    from peal import _spawn  # not at the top: ranks import this file, and torch must load peal there

    with _spawn._reserve_port() as reservation:
        yield str(reservation.getsockname()[1])
