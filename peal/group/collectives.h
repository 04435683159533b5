// What all ranks of a group do together, on whole buffers: a part of ProcessGroup
// (process_group.h). What gives each rank a block of its own is in block_collectives.h, and keeps
// the same contract.
#pragma once

#include <span>

#include "peal/base/clock.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal {

struct GroupState;

/// Each operation has a blocking form and an `_async` form, which returns at once; its buffers
/// belong to the operation until its Work has ended. A timeout of kGroupTimeout is the group's own.
///
/// In the formulas r is a rank, n their number, and what has no index is this rank's own.
/// Order: every rank calls the group's collectives, in the same order.
/// Threads: any, one at a time for a group, since the order is agreed.
/// Errors: usage (shape, type, root, overlap) and unsupported (the op has no meaning for the type)
///   are thrown by the call, before anything is sent, and leave the group as it was; mismatch,
///   peer_lost, timeout and resource poison it: every call of every rank throws the same from then
///   on. What the output then holds, and for how long it may change, is said at Work (work.h).
/// Cost, where ranks are on several hosts: messages and bytes that a rank sends, for S bytes of all
///   blocks together (of the buffer, where there are no blocks); small and large as
///   plan/choose.cpp draws the line, L = log2 n rounded up. Where each host has as many ranks, and
///   more than one, a host sends about what a rank does here, shared by its ranks
///   (plan/two_level.h). On one host nothing is sent: "syncs"
///   are the times that ranks wait for each other, bytes what a rank reads and writes. Those are
///   for memory of ProcessGroup::allocate in one piece, from 16 KiB on (a block, where there are
///   blocks). Other memory is copied into a stage that peers read and out of it, with a sync for
///   each piece of its size. peal/plan/cost_test.cpp counts the schedules' steps against all this.
/// Source: the algorithms' headers in peal/plan; the forms are those of the MPI standard, 4.0,
///   chapter 6.
class Collectives {
 public:
  /// data = data_root
  /// Shape: the same count and type on every rank.
  /// Cost: small: L messages of S by the root, fewer by others; large: S in pieces by each but
  ///   one. One host: 1 signal of each rank.
  void broadcast(Buffer data, Rank root, Timeout timeout = kGroupTimeout);
  WorkPtr broadcast_async(Buffer data, Rank root, Timeout timeout = kGroupTimeout);

  /// data[i] = op over r = 0 .. n-1 of data_r[i], with the same bits on every rank
  /// Shape: the same count and type on every rank.
  /// Order: on one host ranks are reduced in rank order; elsewhere in an order that depends only on
  ///   n and S, so that a run can be repeated to the bit.
  /// Cost: small: L messages of S (up to 4 ranks: n-1); middle: 2·L, 2·S·(n-1)/n (up to 3·S where n
  ///   is no power of two); large: 2·(n-1), 2·S·(n-1)/n. One host: 2 syncs, 2·S.
  void all_reduce(Buffer data, ReduceOp op = ReduceOp::kSum, Timeout timeout = kGroupTimeout);
  WorkPtr all_reduce_async(Buffer data,
                           ReduceOp op = ReduceOp::kSum,
                           Timeout timeout = kGroupTimeout);

  /// data[i] = op over r of data_r[i] at the root; elsewhere data is left as it was
  /// Shape, Order: as all_reduce.
  /// Cost: small: 1 message of S, of which the root gets L; large: n, S. One host: 2 syncs,
  ///   S + S/n.
  void reduce(Buffer data,
              Rank root,
              ReduceOp op = ReduceOp::kSum,
              Timeout timeout = kGroupTimeout);
  WorkPtr reduce_async(Buffer data,
                       Rank root,
                       ReduceOp op = ReduceOp::kSum,
                       Timeout timeout = kGroupTimeout);

  // ---- several buffers as one operation (coalesced), all of one type
  // As if the buffers were one, and at its cost; but a list is never used in place by peers. Two
  // that overlap are an error, but for broadcast, where they get the same.

  void broadcast(std::span<const Buffer> data, Rank root, Timeout timeout = kGroupTimeout);
  WorkPtr broadcast_async(std::span<const Buffer> data, Rank root, Timeout timeout = kGroupTimeout);
  void all_reduce(std::span<const Buffer> data,
                  ReduceOp op = ReduceOp::kSum,
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_reduce_async(std::span<const Buffer> data,
                           ReduceOp op = ReduceOp::kSum,
                           Timeout timeout = kGroupTimeout);
  void reduce(std::span<const Buffer> data,
              Rank root,
              ReduceOp op = ReduceOp::kSum,
              Timeout timeout = kGroupTimeout);
  WorkPtr reduce_async(std::span<const Buffer> data,
                       Rank root,
                       ReduceOp op = ReduceOp::kSum,
                       Timeout timeout = kGroupTimeout);

  // ---- meeting

  /// Returns when all ranks have called it.
  /// Cost: L messages. One host: 1 sync.
  void barrier(Timeout timeout = kGroupTimeout);
  WorkPtr barrier_async(Timeout timeout = kGroupTimeout);

  /// A barrier whose Error(timeout) names every rank that did not come, in the same words on all.
  /// Errors: unsupported too, where the backend cannot send and receive bytes.
  /// Cost: 3·(n-1) messages, all to or from rank 0.
  void monitored_barrier(Timeout timeout = kGroupTimeout);

 protected:
  /// The state outlives this.
  explicit Collectives(GroupState& state) : state_(state) {}
  ~Collectives() = default;

 private:
  GroupState& state_;
};

}  // namespace peal
