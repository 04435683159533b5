"""The exception class of peal, and the text of any exception."""

from __future__ import annotations

from typing import Any, Literal

Kind = Literal["usage", "mismatch", "peer_lost", "timeout", "unsupported", "resource", "bug",
               "aborted"]
Cause = Literal["unknown", "killed", "exited", "threw", "aborted", "left", "stopped", "unreachable",
                "mismatch", "interrupted"]


class Facts:
    """The facts about an error of peal, as attributes. Also a base of the exceptions of peal.horovod."""

    kind: Kind = "aborted"
    rank: int | None = None
    host: str = ""
    operation: str = ""
    cause: Cause = "unknown"
    reason: str = ""


class Error(Facts, RuntimeError):
    """An error of peal. Its `kind` tells the caller what to do:

    - "usage": the call or the configuration is wrong: fix the program
    - "mismatch": ranks disagree about the operation: fix the program
    - "peer_lost": a rank ended or became unreachable: start the job again
    - "timeout": a rank did not arrive in time: find the missing rank, or wait longer
    - "unsupported": the combination has no meaning, or peal cannot do it
    - "resource": memory, descriptors, ports, permissions, damaged files: fix the machine
    - "bug": peal is wrong: report it
    - "aborted": a rank ended the group on purpose, by abort() or a signal: nothing to fix. For a
      SpawnError also: the function raised an exception of the program: follow its text

    These attributes give programs the known facts of the text:

    - rank: the world rank that caused the error or is missing, or None
    - host: the name of that rank's host, or ""
    - operation: the operation that failed on this rank, "all_reduce #12 (sum of 1000 f32)", or ""
    - cause: what happened to that rank: "killed" by a signal, "exited", "threw", "aborted", "left",
      "stopped", "unreachable", "mismatch" (it is in another operation), "interrupted", or "unknown"
    - reason: the text of a rank that threw, aborted or was interrupted, or ""
    """

    def __init__(self, message: str, kind: Kind) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        # Bypasses constructors, because those of subclasses take other arguments and add text.
        return _restored, (type(self), self.args), self.__dict__


def _restored(made_of: type[Error], arguments: tuple[Any, ...]) -> Error:
    return made_of.__new__(made_of, *arguments)


def words_of(error: BaseException) -> str:
    """The class and text of `error`: "ValueError: out of luck". Never raises; the result can be encoded."""
    name = type(error).__name__
    try:
        text = str(error).encode(errors="backslashreplace").decode()
        return f"{name}: {text}" if text else name
    except Exception:
        return f"{name}, which has no readable text"
