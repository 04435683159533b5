// What help() says of peal.ProcessGroup and its parts: the contracts of peal/group in Python's
// words. Bound in group.cpp and module.cpp; docs/python_reference.py makes
// docs/guide/python_reference.md of it.
//
// A text opens with the formula; then a line for each of Shape, Order, Threads, Errors and Cost
// that applies, its further lines indented by two.
#pragma once

namespace peal::python::docs {

inline constexpr const char* kModule = R"(What peal for Python is made of; see peal.

`ANY_SOURCE`, as the source of a receive, is the rank whose message comes first: recv returns which
that was, and source() says it of the Work of irecv.)";

inline constexpr const char* kTellOfException =
    "Tells the peers of all groups that this rank is about to end by an exception, which says "
    "`what`.";
inline constexpr const char* kLeaveAll =
    R"(Leaves all groups that are left; of those of the process that this one was forked from it
knows nothing.

Cost: a second at most for each, and until callbacks that have begun return.)";

inline constexpr const char* kReduceOp =
    R"(How values of several ranks become one, element by element.

x_r is rank r's value, n the number of ranks. SUM: x_0 + x_1 + ... (of bools: or). PRODUCT: x_0 ·
x_1 · ... (of bools: and). MIN, MAX: NaN if any is NaN; not for complex numbers. AVG: the sum / n,
for integers truncated toward zero; not for bools. BAND, BOR, BXOR: the bits of integers and bools.
premul_sum(factor): factor_0 · x_0 + factor_1 · x_1 + ..., each rank with its own factor; for
floating and complex numbers. Operations also take the name: "sum", "product", "min", "max", "avg",
"band", "bor", "bxor".

Sums and products of integers wrap. An AVG of finite numbers is finite, even if their sum overflows.
A NaN in a result has the same bits on all ranks.)";

inline constexpr const char* kPremulSum =
    "The sum of this rank's values times `factor` and the others' times theirs.";

// ---- the start

inline constexpr const char* kInitProcessGroup =
    R"(Meets the other ranks and returns the group of all of them.

init_method says where: "env://" by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or what Slurm,
Open MPI, MPICH, torchrun and `peal run` set (with none of it: a group of one); "tcp://host:port",
a port on rank 0's machine; "file:///path", a path that all ranks reach and that no other job
uses. rank and world_size are needed by the last two, unless the URL ("?rank=0&world_size=2") or
the environment says them. timeout, in seconds, is that of the meeting and of every operation;
None: PEAL_TIMEOUT, or 300. For each place to meet, a process can be in one such group at a time,
with the groups made of it. (A group of one needs no place.)

Order: called by every rank of the job.
Errors: usage (what is missing, given twice or contradicts), timeout (it says who did not come),
  mismatch (ranks that were given different transports), peer_lost, resource.)";

// ---- Work

inline constexpr const char* kWork =
    R"(An operation that was started and may not have ended yet. It keeps the operation's arrays.

After one that failed, outputs hold anything; and memory of ProcessGroup.allocate may still be
read and written by peers until all ranks have come past the failure.

Threads: any number at once.)";

inline constexpr const char* kWorkWait =
    R"(Returns when the operation has ended well, and raises what it ended with otherwise.

timeout, in seconds, counts from now; None: until the operation's own ends it.

Errors: the operation's; timeout, if it has not ended in time: it goes on all the same.)";

inline constexpr const char* kWorkIsCompleted = "Whether it has ended, well or not. Never waits.";

inline constexpr const char* kWorkException =
    "The Error that it ended with; None while it runs and after it ended well.";

inline constexpr const char* kWorkSource =
    R"(Who sent what a receive from ANY_SOURCE got: a rank of the group. Others: the peer or root.

Meaningful when completed.)";

// ---- Memory

inline constexpr const char* kMemory =
    R"(Zeroed bytes that peers of the host can reach, from ProcessGroup.allocate.

A writable buffer of bytes: ``numpy.frombuffer(memory, numpy.float32)`` and
``torch.frombuffer(memory, dtype=torch.float32)`` are arrays in it. It lives as long as it or such
an array does, beyond the group too.)";

// ---- ProcessGroup

inline constexpr const char* kProcessGroup =
    R"(A group of ranks and what they can do together. init_process_group makes it.

Ranks are ranks of this group, 0 to size - 1, roots and peers included. As a context manager it is
left at the end of the block; an exception that leaves the block is told to the peers, whose calls
raise it as peer_lost: "rank 1 threw: KeyError: ...".

An array is a NumPy array, a torch tensor on the CPU, an array.array, bytearray, Memory, or
whatever else has the buffer protocol or DLPack, in contiguous memory, row by row. Only the number
of its elements counts, not its dimensions. Types: bool, 8 to 64 bits of signed integers, uint8,
float16, bfloat16 (by DLPack), float32, float64, complex64, complex128. Arrays are used where they
lie, and never converted. A list or tuple of arrays is several.

Each operation has a form that waits and one that ends in `_async` (isend and irecv for send and
recv), which returns a Work at once; its arrays belong to the operation until the Work has ended.
A timeout is in seconds; None: the group's own. In the formulas r is a rank, n their number, and
what has no index is this rank's own.

Order: every rank calls the group's collectives, in the same order. Messages from one rank to
  another with the same tag do not overtake each other; receives that fit the same message take it
  in the order in which they were called. A rank may send to itself.
Threads: any number at once, but collectives one at a time for a group, since their order is
  agreed. All calls wait without the GIL. Ctrl-C ends a call of the main thread that waits and,
  unless that is Work.wait, the group.
Errors: peal.Error, by its kind. usage (no array, not contiguous, read-only but to be written,
  shape, type, root, overlap) and unsupported (a type or device that is none of peal's, an op that
  has no meaning for the type) are raised by the call, before anything is sent, and leave the
  group as it was. mismatch, peer_lost, timeout and resource end the group: every call of every
  rank raises the same from then on. What outputs then hold is said at Work.
Cost: where ranks are on several hosts: messages and bytes that a rank sends, for S bytes of all
  blocks together (of the array, where there are no blocks), L = log2 n rounded up. On one host
  nothing is sent: "syncs" are the times that ranks wait for each other, bytes what a rank reads
  and writes; that is for memory of allocate, and other memory is copied once more on its way in
  and out. A message between two ranks is one message up to 16 KiB. A larger message is offered
  first. So is a small message while the receiver keeps 16 MiB of this rank's messages.)";

inline constexpr const char* kRank = "This process's rank, 0 to size - 1.";
inline constexpr const char* kSize = "The number of ranks.";
inline constexpr const char* kName = "What errors call the group: \"world\" for that of all ranks.";
inline constexpr const char* kTimeout = "Seconds that an operation may take, where it is not told.";

inline constexpr const char* kGlobalRank =
    R"(The rank in the world of a rank of this group.

Errors: usage (no such rank).)";

inline constexpr const char* kNewGroup =
    R"(A group of `ranks` (of this group), in that order.

Order: called by its members only, with the same ranks; several groups of the same ranks are made
  in the same order by all.
Errors: usage (a rank twice or none of this group, the own one not among them), timeout,
  peer_lost; this group stays as it was.
Cost: a meeting of the members, and new connections.)";

inline constexpr const char* kSplit =
    R"(One group for each color, its ranks ordered by (key, rank); None for the color None.

Order: a collective, called by all.
Errors: usage (a negative color); those of all_gather and new_group.
Cost: an all_gather of 8 bytes and a new_group.)";

inline constexpr const char* kAllocate =
    R"(Zeroed memory of `bytes` bytes that peers of the host can reach, so that operations on it
need no copy; plain memory where there is none such.

After an operation on it has failed, peers may still write into it: see Work.

Order: local. An operation is without a copy where the memory of all ranks is such.
Errors: usage (a negative size, a group that was destroyed), resource.)";

inline constexpr const char* kAbort =
    "Ends every operation, here and on the peers, now and in future, with peer_lost and `reason`.";

inline constexpr const char* kDestroy =
    R"(Leaves the group, so that peers do not take it for a loss; later calls raise usage.

Waits at most `timeout` seconds for the collectives under way, and for large sends that no receive
has taken yet; then for callbacks that have begun, until they return. A second call does nothing. A
peer that still needs this rank gets peer_lost: it "has left the group".

Errors: timeout (collectives were under way; the group is gone all the same), usage (called on a
  thread of the group, where an operation ends).)";

inline constexpr const char* kExit =
    R"(destroy; if an exception leaves the block, its words go to the peers first, as by `abort`.

Of SystemExit there are none: the peers hear that this rank has left. After an exception, and an
exit by a failure, what is under way is given a second at most.

Errors: those of destroy, where no exception leaves the block.)";

// ---- between two ranks

inline constexpr const char* kSend =
    R"(Sends data to the rank `to`. Returns when data may be written again, which does not mean that
the receiver has the message. Up to 16 KiB it returns at once while the receiver keeps less than 16
MiB of this rank's messages (in a group of more than 16 ranks: 256 MiB divided by the number of
ranks). Otherwise it returns when the receiver has called its receive, or, for a small message, has
received other messages.

Errors: usage (a rank that does not exist, a negative tag); timeout, which says whether the message
  was held back; see ProcessGroup.
Cost: one message. If it is larger than 16 KiB or held back, an offer goes first.)";

inline constexpr const char* kRecv =
    R"(data = what source, or with ANY_SOURCE the first who did, sent with this tag; returns who
did

Shape: the send's number of elements and type; else mismatch, on both sides: for a sender whose
    send has returned, at its next operation.
Errors: usage (a rank that is none, a negative tag); see ProcessGroup.)";

inline constexpr const char* kIsend =
    "send without waiting: data may be written when the Work has ended. The Work is pending as "
    "long as send would wait.";
inline constexpr const char* kIrecv =
    "recv without waiting: data is there when the Work has ended, and its source() says from whom.";

inline constexpr const char* kBatch =
    R"(Starts all of them at once, so that no order of them can block another; one Work for all.

batch: tuples ("send" or "recv", array, peer) or ("send" or "recv", array, peer, tag); without a
tag it is 0. The peer of a receive may be ANY_SOURCE.)";

// ---- collectives on whole arrays

inline constexpr const char* kBroadcast =
    R"(data = data of the root, on every rank

Shape: the same number of elements and type on every rank. A list of arrays of one type is as if
  they were one array, in one operation.
Cost: small: L messages of S by the root, fewer by others; large: S in pieces by each but one. One
  host: 1 signal of each rank.)";

inline constexpr const char* kAllReduce =
    R"(data[i] = op over r = 0 .. n-1 of data_r[i], with the same bits on every rank

Shape: the same number of elements and type on every rank; zero is allowed. A list of arrays of
  one type is as if they were one array, in one operation.
Order: on one host ranks are reduced in rank order; elsewhere in an order that depends only on n
  and S, so that a run can be repeated to the bit.
Cost: small: L messages of S (up to 4 ranks: n-1); middle: 2·L, 2·S·(n-1)/n (up to 3·S where n is
  no power of two); large: 2·(n-1), 2·S·(n-1)/n. One host: 2 syncs, 2·S.)";

inline constexpr const char* kReduce =
    R"(data[i] = op over r of data_r[i] at the root; elsewhere data is left as it was

Shape: as all_reduce.
Order: as all_reduce.
Cost: small: 1 message of S, of which the root gets L; large: n, S. One host: 2 syncs, S + S/n.)";

inline constexpr const char* kBarrier =
    R"(Returns when all ranks have called it.

Cost: L messages. One host: 1 sync.)";

inline constexpr const char* kMonitoredBarrier =
    R"(A barrier whose timeout names every rank that did not come, in the same words on all.

Cost: 3·(n-1) messages, all to or from rank 0.)";

// ---- collectives that give each rank a block

inline constexpr const char* kScatter =
    R"(output = block rank of input_root

Shape: at the root, input is one array of n equal blocks in rank order, or a list of one array for
  each rank, of any sizes; elsewhere it is not looked at and may be None. Or one array of blocks of
  `counts` elements, the same counts on every rank. In place: output is the rank's own block of
  input; any other overlap is an error.
Cost: the root sends S·(n-1)/n in n-1 messages; with counts, where they are small, in L, passed on
  by others. One host: 1 signal of each rank.)";

inline constexpr const char* kGather =
    R"(output = input_0 input_1 ... at the root

Shape: at the root, output is one array of n equal blocks in rank order, or a list of one array for
  each rank, of any sizes; elsewhere it is not looked at and may be None. Or one array of blocks of
  `counts` elements, the same counts on every rank. In place: input is the rank's own block of
  output; any other overlap is an error.
Cost: scatter's, the other way.)";

inline constexpr const char* kAllGather =
    R"(output = input_0 input_1 ..., on every rank

Shape: output is one array of n equal blocks in rank order, or of blocks of `counts` elements, the
  same counts on every rank; or a list of one array for each rank, of any sizes. In place: input
  is the rank's own block of output; any other overlap is an error. If both are lists, it is
  several in one operation: output[k] = input_0[k] input_1[k] ..., each output[k] n blocks like
  input[k], all of one type.
Cost: S·(n-1)/n, small: in L to 2·L messages; large: n-1. One host: 2 syncs, S + S/n.)";

inline constexpr const char* kReduceScatter =
    R"(output[i] = op over r of block rank of input_r, [i]

Shape: input is one array of n equal blocks in rank order, or of blocks of `counts` elements, the
  same counts on every rank; or a list of one array for each rank, of any sizes. In place: output
  is the rank's own block of input; any other overlap is an error. If both are lists, it is
  several in one operation: each input[k] n blocks like output[k], all of one type.
Order: as all_reduce. Input is left as it was, but for the own block in place.
Cost: S·(n-1)/n, small: in L messages if n is a power of two; else n-1. One host: 2 syncs, S +
  S/n.)";

inline constexpr const char* kAllToAll =
    R"(block r of output = block rank of input_r

Shape: two arrays of n equal blocks in rank order, or of `to[r]` elements for rank r and
  `from_[r]` from it, where `to` here is `from_` there; or two lists of one array for each rank.
  Never in place.
Cost: n-1 messages, S·(n-1)/n. One host: 2 syncs, 2·S.)";

}  // namespace peal::python::docs
