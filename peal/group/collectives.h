// The collective operations of a group: a part of ProcessGroup (process_group.h).
#pragma once

#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/options.h"
#include "peal/group/work.h"

namespace peal {

struct GroupState;

/// Each operation has a blocking form and an `_async` form. The `_async` form returns at once; its
/// buffers belong to the operation until its Work has ended.
///
/// In the formulas r is a rank, n the number of ranks, and a name without an index is this rank's.
/// Order: every rank calls the group's collectives, in the same order.
/// Threads: any thread, one at a time for a group, because all ranks must agree on the order.
/// Errors: The call throws usage (shape, type, root, overlap) and unsupported (the op has no
///   meaning for the type) before anything is sent; the group stays usable. mismatch, peer_lost,
///   timeout and resource end the group: from then on, every call of every rank throws the same
///   error. work.h says what the output contains then, and for how long it may change.
/// Cost, for ranks on several hosts: messages and bytes that a rank sends, with S bytes of all
///   blocks together (without blocks: of the buffer). plan/choose.cpp says which sizes are small
///   and large. L = log2 n rounded up. With the same number of ranks on every host, and more than
///   one, a host sends about as much as a rank here, shared by its ranks (plan/two_level.h). On one
///   host nothing is sent: "syncs" are the times that ranks wait for each other, and bytes are what
///   a rank reads and writes. These costs hold for memory of ProcessGroup::allocate, in one piece,
///   from 16 KiB on (for each block, if there are blocks). Other memory is copied into a stage,
///   which peers read, and out of it, with a sync for each piece of the stage's size.
///   peal/plan/cost_test.cpp checks these costs against the steps of the schedules.
/// Source: the algorithms' headers in peal/plan; the forms are those of the MPI standard, 4.0,
///   chapter 6.
class Collectives {
 public:
  // ---- on whole buffers
  //
  // A list of buffers of one type is reduced or broadcast like one buffer, at the same cost. But
  // peers never work on a list in place. Buffers of a list must not overlap, except in a broadcast,
  // where overlapping parts receive the same values.

  /// data = data_root
  /// Shape: the same count and type on every rank.
  /// Cost: small: the root sends L messages of S, other ranks fewer; large: every rank but one
  ///   sends S in pieces. One host: 1 signal of each rank.
  void broadcast(const Buffers& data, Rank root, const CallOptions& options = {});
  WorkPtr broadcast_async(const Buffers& data, Rank root, const CallOptions& options = {});

  /// data[i] = op over r = 0 .. n-1 of data_r[i], with the same bits on every rank
  /// Shape: the same count and type on every rank.
  /// Order: on one host, ranks are reduced in rank order; on several hosts, in an order that
  ///   depends only on n and S, so that a run can be repeated to the bit.
  /// Cost: small: L messages of S (up to 4 ranks: n-1); medium: 2·L, 2·S·(n-1)/n (up to 3·S if n is
  ///   not a power of two); large: 2·(n-1), 2·S·(n-1)/n. One host: 2 syncs, 2·S.
  void all_reduce(const Buffers& data, const ReduceOptions& options = {});
  WorkPtr all_reduce_async(const Buffers& data, const ReduceOptions& options = {});

  /// data[i] = op over r of data_r[i] at the root; other ranks' data does not change
  /// Shape, Order: as all_reduce.
  /// Cost: small: 1 message of S (the root receives L); large: n, S. One host: 2 syncs,
  ///   S + S/n.
  void reduce(const Buffers& data, Rank root, const ReduceOptions& options = {});
  WorkPtr reduce_async(const Buffers& data, Rank root, const ReduceOptions& options = {});

  // ---- on a block for each rank
  // The n blocks lie in one buffer in rank order: equal blocks, or blocks of options.counts
  // elements. Or they are a list of n buffers, of any sizes, without counts; then each rank must
  // know the size of its own. In place: the small buffer is this rank's block of the large buffer,
  // or the same memory as this rank's block in the list. Any other overlap is an error.

  /// out = block rank() of in_root
  /// Shape: on ranks other than the root, only the form of `in` matters: all ranks give one buffer
  ///   (it may be `Buffer()`), or all give a list (it may be `{}`).
  /// Cost: the root sends S·(n-1)/n; small: in L messages, which other ranks pass on; large: in
  ///   n-1. One host: 1 signal of each rank.
  void scatter(const ConstBuffers& in,
               const Buffer& out,
               Rank root,
               const BlockOptions& options = {});
  WorkPtr scatter_async(const ConstBuffers& in,
                        const Buffer& out,
                        Rank root,
                        const BlockOptions& options = {});

  /// out = in_0 in_1 ... at the root
  /// Shape: the same rules for `out` as for `in` of scatter.
  /// Cost: as scatter, in the other direction.
  void gather(const ConstBuffer& in,
              const Buffers& out,
              Rank root,
              const BlockOptions& options = {});
  WorkPtr gather_async(const ConstBuffer& in,
                       const Buffers& out,
                       Rank root,
                       const BlockOptions& options = {});

  /// out = in_0 in_1 ...
  /// Shape: with two lists, out[k] = in_0[k] in_1[k] ..., as one operation. All buffers have one
  ///   type, and all small buffers are in place or none is.
  /// Cost: S·(n-1)/n, small: in L to 2·L messages; large: n-1. One host: 2 syncs, S + S/n.
  void all_gather(const ConstBuffers& in, const Buffers& out, const BlockOptions& options = {});
  WorkPtr all_gather_async(const ConstBuffers& in,
                           const Buffers& out,
                           const BlockOptions& options = {});

  /// out[i] = op over r of block rank() of in_r, [i]
  /// Shape: with two lists, as all_gather: in[k] has n blocks like out[k].
  /// Order: as all_reduce. `in` does not change, except this rank's block in place.
  /// Cost: S·(n-1)/n, small: in L messages if n is a power of two; else n-1. One host: 2 syncs,
  ///   S + S/n.
  void reduce_scatter(const ConstBuffers& in,
                      const Buffers& out,
                      const ReduceScatterOptions& options = {});
  WorkPtr reduce_scatter_async(const ConstBuffers& in,
                               const Buffers& out,
                               const ReduceScatterOptions& options = {});

  /// block r of out = block rank() of in_r
  /// Shape: both are one buffer, or both are lists. Each rank sends to another as much as the other
  ///   receives from it. Never in place.
  /// Cost: n-1 messages, S·(n-1)/n. One host: 2 syncs, 2·S.
  void all_to_all(const ConstBuffers& in, const Buffers& out, const AllToAllOptions& options = {});
  WorkPtr all_to_all_async(const ConstBuffers& in,
                           const Buffers& out,
                           const AllToAllOptions& options = {});

  // ---- synchronisation

  /// Returns when all ranks have called it.
  /// Cost: L messages. One host: 1 sync.
  void barrier(const CallOptions& options = {});
  WorkPtr barrier_async(const CallOptions& options = {});

  /// A barrier whose Error(timeout) names every missing rank, with the same text on all ranks.
  /// Errors: also unsupported, if the backend cannot send and receive bytes.
  /// Cost: 3·(n-1) messages, all to or from rank 0.
  void monitored_barrier(const CallOptions& options = {});

 protected:
  /// The state must outlive this object.
  explicit Collectives(GroupState& state) : state_(state) {}
  ~Collectives() = default;

 private:
  GroupState& state_;
};

}  // namespace peal
