"""``python -m peal`` is the program ``peal`` of the command line. The scripts that it starts run in
this Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    program = Path(__file__).parent / "bin" / "peal"
    own = str(Path(sys.executable).parent)  # first in PATH, as in an active virtual environment
    os.environ["PATH"] = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
