"""``python -m peal.horovod script.py ARGUMENTS`` and ``python -m peal.horovod -m module ARGUMENTS`` run a
program in which ``import horovod.torch`` imports `peal.horovod`. Under a launcher: ``peal run -n 4 python -m
peal.horovod script.py``."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path
from types import TracebackType

from peal.horovod.aliases import install

_USAGE = "usage: python -m peal.horovod [-m MODULE | SCRIPT] [ARGUMENTS...]"
_OWN_FILES = {__file__, "<frozen runpy>", runpy.__file__}


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or (not is_module and arguments[0].startswith("-")):
        sys.exit(_USAGE)
    program = arguments[0]
    problem = _problem_of_module(program) if is_module else _problem_of_script(program)
    if problem:
        print(f"python -m peal.horovod: {problem}", file=sys.stderr)
        sys.exit(2)  # the exit code of python for a missing script
    install()
    _hide_own_calls()
    sys.argv = arguments
    if is_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        # As Python: the script's folder in place of the current one.
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


def _problem_of_script(script: str) -> str:
    """Why the script cannot run; empty if it can."""
    path = Path(script)
    if path.is_dir():
        return "" if (path / "__main__.py").exists() else f"the folder {script} has no __main__.py"
    try:
        path.open("rb").close()
    except OSError as error:
        return f"can't open file {str(path.absolute())!r}: {error.strerror}"
    return ""


def _problem_of_module(module: str) -> str:
    # Not the whole name: the search for a module in a package imports the package.
    outermost = module.partition(".")[0]
    return "" if importlib.util.find_spec(outermost) else f"No module named {outermost!r}"


def _hide_own_calls() -> None:
    """From now on, the traceback of an uncaught exception shows only calls of the program, not of this module."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        value.__traceback__ = _of_program(traceback)
        previous(kind, value, value.__traceback__)

    sys.excepthook = excepthook


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _OWN_FILES:
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    main()
