// What all ranks of a group do together where each has a block of its own: a part of ProcessGroup
// (process_group.h).
#pragma once

#include <span>

#include "peal/base/clock.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal {

struct GroupState;

/// Order, threads, errors and the words of the costs: as Collectives (collectives.h).
class BlockCollectives {
 public:
  // ---- in one buffer
  // Shape: n equal blocks in rank order, or blocks of `counts` elements where counts is not
  // empty (then the same counts on every rank). In place: the small buffer is the rank's own block
  // of the large one; any other overlap is an error.

  /// out = block rank() of in_root
  /// Shape: `in` holds all blocks at the root and is not looked at elsewhere.
  /// Cost: the root sends S·(n-1)/n, small: in L messages, passed on by others; large: n-1. One
  ///   host: 1 signal of each rank.
  void scatter(ConstBuffer in,
               Buffer out,
               Rank root,
               std::span<const Elements> counts = {},
               Timeout timeout = kGroupTimeout);
  WorkPtr scatter_async(ConstBuffer in,
                        Buffer out,
                        Rank root,
                        std::span<const Elements> counts = {},
                        Timeout timeout = kGroupTimeout);

  /// out = in_0 in_1 ... at the root
  /// Shape: `out` holds all blocks at the root and is not looked at elsewhere.
  /// Cost: scatter's, the other way.
  void gather(ConstBuffer in,
              Buffer out,
              Rank root,
              std::span<const Elements> counts = {},
              Timeout timeout = kGroupTimeout);
  WorkPtr gather_async(ConstBuffer in,
                       Buffer out,
                       Rank root,
                       std::span<const Elements> counts = {},
                       Timeout timeout = kGroupTimeout);

  /// out = in_0 in_1 ...
  /// Cost: S·(n-1)/n, small: in L to 2·L messages; large: n-1. One host: 2 syncs, S + S/n.
  void all_gather(ConstBuffer in,
                  Buffer out,
                  std::span<const Elements> counts = {},
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_gather_async(ConstBuffer in,
                           Buffer out,
                           std::span<const Elements> counts = {},
                           Timeout timeout = kGroupTimeout);

  /// out[i] = op over r of block rank() of in_r, [i]
  /// Order: as all_reduce. `in` is left as it was, but for the own block in place.
  /// Cost: S·(n-1)/n, small: in L messages if n is a power of two; else n-1. One host: 2 syncs,
  ///   S + S/n.
  void reduce_scatter(ConstBuffer in,
                      Buffer out,
                      ReduceOp op = ReduceOp::kSum,
                      std::span<const Elements> counts = {},
                      Timeout timeout = kGroupTimeout);
  WorkPtr reduce_scatter_async(ConstBuffer in,
                               Buffer out,
                               ReduceOp op = ReduceOp::kSum,
                               std::span<const Elements> counts = {},
                               Timeout timeout = kGroupTimeout);

  /// block r of out = block rank() of in_r
  /// Shape: n equal blocks, or to[r] elements for r and from[r] from it: to here is from there.
  ///   Never in place.
  /// Cost: n-1 messages, S·(n-1)/n. One host: 2 syncs, 2·S.
  void all_to_all(ConstBuffer in,
                  Buffer out,
                  std::span<const Elements> to = {},
                  std::span<const Elements> from = {},
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_to_all_async(ConstBuffer in,
                           Buffer out,
                           std::span<const Elements> to = {},
                           std::span<const Elements> from = {},
                           Timeout timeout = kGroupTimeout);

  // ---- a buffer for each rank
  // The operations above, with one buffer for each block, of any sizes. Rank r's block must have
  // the same size wherever it is named. In place: the rank's own block is the same memory in and
  // out, but for all_to_all; any other overlap is an error, of outputs with each other too.

  /// Shape: `in` is n buffers at the root and none elsewhere.
  void scatter(std::span<const ConstBuffer> in,
               Buffer out,
               Rank root,
               Timeout timeout = kGroupTimeout);
  WorkPtr scatter_async(std::span<const ConstBuffer> in,
                        Buffer out,
                        Rank root,
                        Timeout timeout = kGroupTimeout);
  /// Shape: `out` is n buffers at the root and none elsewhere.
  void gather(ConstBuffer in,
              std::span<const Buffer> out,
              Rank root,
              Timeout timeout = kGroupTimeout);
  WorkPtr gather_async(ConstBuffer in,
                       std::span<const Buffer> out,
                       Rank root,
                       Timeout timeout = kGroupTimeout);
  void all_gather(ConstBuffer in, std::span<const Buffer> out, Timeout timeout = kGroupTimeout);
  WorkPtr all_gather_async(ConstBuffer in,
                           std::span<const Buffer> out,
                           Timeout timeout = kGroupTimeout);
  void reduce_scatter(std::span<const ConstBuffer> in,
                      Buffer out,
                      ReduceOp op = ReduceOp::kSum,
                      Timeout timeout = kGroupTimeout);
  WorkPtr reduce_scatter_async(std::span<const ConstBuffer> in,
                               Buffer out,
                               ReduceOp op = ReduceOp::kSum,
                               Timeout timeout = kGroupTimeout);
  void all_to_all(std::span<const ConstBuffer> in,
                  std::span<const Buffer> out,
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_to_all_async(std::span<const ConstBuffer> in,
                           std::span<const Buffer> out,
                           Timeout timeout = kGroupTimeout);

  // ---- several buffers as one operation (coalesced), all of one type
  // In place: each small buffer is the rank's own block of its large one, or none is; any other
  // overlap is an error.

  /// out[k] = in_0[k] in_1[k] ...
  /// Shape: each out[k] holds n blocks like in[k].
  void all_gather(std::span<const ConstBuffer> in,
                  std::span<const Buffer> out,
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_gather_async(std::span<const ConstBuffer> in,
                           std::span<const Buffer> out,
                           Timeout timeout = kGroupTimeout);
  /// out[k] = block rank() of op over r of in_r[k]
  /// Shape: each in[k] holds n blocks like out[k].
  void reduce_scatter(std::span<const ConstBuffer> in,
                      std::span<const Buffer> out,
                      ReduceOp op = ReduceOp::kSum,
                      Timeout timeout = kGroupTimeout);
  WorkPtr reduce_scatter_async(std::span<const ConstBuffer> in,
                               std::span<const Buffer> out,
                               ReduceOp op = ReduceOp::kSum,
                               Timeout timeout = kGroupTimeout);

 protected:
  /// The state outlives this.
  explicit BlockCollectives(GroupState& state) : state_(state) {}
  ~BlockCollectives() = default;

 private:
  GroupState& state_;
};

}  // namespace peal
