"""Types of the extension module, of which peal shows the public names. What the methods do is in
their docstrings; python/tests/test_stubs.py holds both to the same names, parameters and
defaults."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, final, overload

from typing_extensions import Buffer, Self

from peal._errors import Error

class _DLPack(Protocol):
    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

# One array: NumPy's, torch's on the CPU, array.array, bytearray, Memory.
_Array: TypeAlias = Buffer | _DLPack
# Several, in a list or tuple.
_Arrays: TypeAlias = Sequence[_Array]
_Op: TypeAlias = (
    ReduceOp | Literal["sum", "product", "min", "max", "avg", "band", "bor", "bxor"]
)
_Message: TypeAlias = (
    tuple[Literal["send", "recv"], _Array, int] | tuple[Literal["send", "recv"], _Array, int, int]
)

ANY_SOURCE: Final[int]

@final
class ReduceOp:
    SUM: ClassVar[ReduceOp]
    PRODUCT: ClassVar[ReduceOp]
    MIN: ClassVar[ReduceOp]
    MAX: ClassVar[ReduceOp]
    AVG: ClassVar[ReduceOp]
    BAND: ClassVar[ReduceOp]
    BOR: ClassVar[ReduceOp]
    BXOR: ClassVar[ReduceOp]
    @staticmethod
    def premul_sum(factor: float) -> ReduceOp: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...

@final
class Work:
    def wait(self, timeout: float | None = None) -> None: ...
    def is_completed(self) -> bool: ...
    def exception(self) -> Error | None: ...
    def source(self) -> int: ...

@final
class Memory:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class ProcessGroup:
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def timeout(self) -> float: ...
    def global_rank(self, rank: int) -> int: ...
    def new_group(
        self, ranks: Sequence[int], *, timeout: float | None = None
    ) -> ProcessGroup: ...
    @overload
    def split(self, color: int, key: int = 0, *, timeout: float | None = None) -> ProcessGroup: ...
    @overload
    def split(self, color: None, key: int = 0, *, timeout: float | None = None) -> None: ...
    @overload
    def split(
        self, color: int | None, key: int = 0, *, timeout: float | None = None
    ) -> ProcessGroup | None: ...
    def allocate(self, bytes: int) -> Memory: ...
    def abort(self, reason: str) -> None: ...
    def destroy(self, timeout: float | None = None) -> None: ...
    def __repr__(self) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    # between two ranks
    def send(
        self, data: _Array, to: int, tag: int = 0, *, timeout: float | None = None
    ) -> None: ...
    def recv(
        self, data: _Array, source: int = ANY_SOURCE, tag: int = 0, *, timeout: float | None = None
    ) -> int: ...
    def isend(
        self, data: _Array, to: int, tag: int = 0, *, timeout: float | None = None
    ) -> Work: ...
    def irecv(
        self, data: _Array, source: int = ANY_SOURCE, tag: int = 0, *, timeout: float | None = None
    ) -> Work: ...
    def batch_isend_irecv(
        self, batch: Iterable[_Message], *, timeout: float | None = None
    ) -> Work: ...

    # collectives on whole arrays
    def broadcast(
        self, data: _Array | _Arrays, root: int, *, timeout: float | None = None
    ) -> None: ...
    def broadcast_async(
        self, data: _Array | _Arrays, root: int, *, timeout: float | None = None
    ) -> Work: ...
    def all_reduce(
        self, data: _Array | _Arrays, op: _Op = ReduceOp.SUM, *, timeout: float | None = None
    ) -> None: ...
    def all_reduce_async(
        self, data: _Array | _Arrays, op: _Op = ReduceOp.SUM, *, timeout: float | None = None
    ) -> Work: ...
    def reduce(
        self,
        data: _Array | _Arrays,
        root: int,
        op: _Op = ReduceOp.SUM,
        *,
        timeout: float | None = None,
    ) -> None: ...
    def reduce_async(
        self,
        data: _Array | _Arrays,
        root: int,
        op: _Op = ReduceOp.SUM,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    def barrier(self, *, timeout: float | None = None) -> None: ...
    def barrier_async(self, *, timeout: float | None = None) -> Work: ...
    def monitored_barrier(self, *, timeout: float | None = None) -> None: ...

    # collectives that give each rank a block: in one array, or in a list with an array for each
    @overload
    def scatter(
        self,
        input: _Array | None,
        output: _Array,
        root: int,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def scatter(
        self,
        input: _Arrays | None,
        output: _Array,
        root: int,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def scatter_async(
        self,
        input: _Array | None,
        output: _Array,
        root: int,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def scatter_async(
        self,
        input: _Arrays | None,
        output: _Array,
        root: int,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def gather(
        self,
        input: _Array,
        output: _Array | None,
        root: int,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def gather(
        self,
        input: _Array,
        output: _Arrays | None,
        root: int,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def gather_async(
        self,
        input: _Array,
        output: _Array | None,
        root: int,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def gather_async(
        self,
        input: _Array,
        output: _Arrays | None,
        root: int,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def all_gather(
        self,
        input: _Array,
        output: _Array,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def all_gather(
        self, input: _Array, output: _Arrays, counts: None = None, *, timeout: float | None = None
    ) -> None: ...
    @overload
    def all_gather(
        self, input: _Arrays, output: _Arrays, counts: None = None, *, timeout: float | None = None
    ) -> None: ...
    @overload
    def all_gather_async(
        self,
        input: _Array,
        output: _Array,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def all_gather_async(
        self, input: _Array, output: _Arrays, counts: None = None, *, timeout: float | None = None
    ) -> Work: ...
    @overload
    def all_gather_async(
        self, input: _Arrays, output: _Arrays, counts: None = None, *, timeout: float | None = None
    ) -> Work: ...
    @overload
    def reduce_scatter(
        self,
        input: _Array,
        output: _Array,
        op: _Op = ReduceOp.SUM,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def reduce_scatter(
        self,
        input: _Arrays,
        output: _Array,
        op: _Op = ReduceOp.SUM,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def reduce_scatter(
        self,
        input: _Arrays,
        output: _Arrays,
        op: _Op = ReduceOp.SUM,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def reduce_scatter_async(
        self,
        input: _Array,
        output: _Array,
        op: _Op = ReduceOp.SUM,
        counts: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def reduce_scatter_async(
        self,
        input: _Arrays,
        output: _Array,
        op: _Op = ReduceOp.SUM,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def reduce_scatter_async(
        self,
        input: _Arrays,
        output: _Arrays,
        op: _Op = ReduceOp.SUM,
        counts: None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def all_to_all(
        self,
        input: _Array,
        output: _Array,
        to: Sequence[int] | None = None,
        from_: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def all_to_all(
        self,
        input: _Arrays,
        output: _Arrays,
        to: None = None,
        from_: None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def all_to_all_async(
        self,
        input: _Array,
        output: _Array,
        to: Sequence[int] | None = None,
        from_: Sequence[int] | None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...
    @overload
    def all_to_all_async(
        self,
        input: _Arrays,
        output: _Arrays,
        to: None = None,
        from_: None = None,
        *,
        timeout: float | None = None,
    ) -> Work: ...

    # of objects: peal._objects
    def broadcast_object(
        self, value: Any, root: int, *, pickle: bool = False, timeout: float | None = None
    ) -> Any: ...
    def all_gather_object(
        self, value: Any, *, pickle: bool = False, timeout: float | None = None
    ) -> list[Any]: ...
    def gather_object(
        self, value: Any, root: int, *, pickle: bool = False, timeout: float | None = None
    ) -> list[Any] | None: ...
    def scatter_object(
        self,
        values: Sequence[Any] | None,
        root: int,
        *,
        pickle: bool = False,
        timeout: float | None = None,
    ) -> Any: ...

def init_process_group(
    init_method: str = "env://",
    *,
    rank: int | None = None,
    world_size: int | None = None,
    timeout: float | None = None,
) -> ProcessGroup: ...
def tell_of_exception(what: str) -> None: ...
def leave_all() -> None: ...
