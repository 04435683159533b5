"""The one exception of peal."""

from __future__ import annotations

from typing import Literal

Kind = Literal["usage", "mismatch", "peer_lost", "timeout", "unsupported", "resource", "bug"]


class Error(RuntimeError):
    """What went wrong, by what the caller can do about it: `kind` is one of

    - "usage": the call or the configuration is wrong: mend the program
    - "mismatch": ranks disagree about the operation: mend the program
    - "peer_lost": a rank ended or became unreachable: restart it, or go on without it
    - "timeout": somebody did not come in time: look for who is missing, or wait longer
    - "unsupported": a combination that has no meaning, or that cannot be done
    - "resource": memory, descriptors, ports, permissions: mend the machine
    - "bug": peal is wrong: report it
    """

    kind: Kind

    def __init__(self, message: str, kind: Kind) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind

    def __reduce__(self) -> tuple[type[Error], tuple[str, Kind]]:
        return type(self), (str(self).removeprefix(f"{self.kind}: "), self.kind)
