"""``python -m peal.horovod script.py ARGUMENTS`` and ``python -m peal.horovod -m module ARGUMENTS`` run a
program in which ``import horovod.torch`` imports `peal.horovod`. Under a launcher: ``peal run -n 4 python -m
peal.horovod script.py``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from peal.horovod.aliases import install

_USAGE = "usage: python -m peal.horovod [-m MODULE | SCRIPT] [ARGUMENTS...]"


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or (not is_module and arguments[0].startswith("-")):
        sys.exit(_USAGE)
    install()
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        # As Python: the script's folder in place of the current one.
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
