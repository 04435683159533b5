"""``python -m peal`` is the program ``peal`` of the command line; the command ``horovodrun`` is the same
program under another name. The scripts that they start run in this Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    _become("peal")


def horovodrun() -> NoReturn:
    _become("horovodrun")


def _become(name: str) -> NoReturn:
    """The program decides by its name which of the two it is."""
    program = Path(__file__).parent / "bin" / "peal"
    own = str(Path(sys.executable).parent)  # first in PATH, as in an active virtual environment
    os.environ["PATH"] = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])
    os.execv(program, [str(program.with_name(name)), *sys.argv[1:]])


if __name__ == "__main__":
    main()
