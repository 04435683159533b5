"""The one exception of peal, and the words of any."""

from __future__ import annotations

from typing import Any, Literal

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

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the constructors, since those of subclasses take other arguments and add words.
        return _restored, (type(self), self.args), self.__dict__


def _restored(made_of: type[Error], arguments: tuple[Any, ...]) -> Error:
    return made_of.__new__(made_of, *arguments)


def words_of(error: BaseException) -> str:
    """Its class and what it says, if it can say it: never raises, and can be encoded."""
    name = type(error).__name__
    try:
        return f"{name}: {error}".encode(errors="backslashreplace").decode()
    except Exception:
        return f"{name}, which cannot say what it is about"
