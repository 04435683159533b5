"""Types of the extension module with the backend of torch.distributed. Only peal._torch uses it."""

from collections.abc import Sequence

from torch._C._distributed_c10d import Backend, Store

def create(
    store: Store,
    rank: int,
    size: int,
    timeout_s: float,
    global_ranks: Sequence[int],
    *,
    lazy: bool,
    store_ends_with_rank_0: bool,
) -> Backend: ...
def tell_of_exception(what: str, /) -> None: ...
def leave_all() -> None: ...
