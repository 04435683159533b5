// The public face of peal: a group of ranks and what they can do together.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"
#include "peal/group/backend.h"
#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal {

/// One of a batch of sends and receives.
struct PointToPoint {
  enum class Kind : std::uint8_t { kSend, kRecv };
  Kind kind = Kind::kSend;
  Buffer buffer;  // only read by a send
  Rank peer = 0;  // kAnySource is allowed for a receive
  Tag tag;
};

/// Called with no color by ranks that join none of the new groups.
inline constexpr int kNoColor = -1;

/// Ranks are ranks of this group, 0 .. size() - 1, roots and peers included.
/// Collectives are called by all ranks, in the same order. Each has a blocking form and an `_async`
/// form that returns a Work; memory given to the latter belongs to the operation until it has
/// ended. Threads: any; collectives of one group from one thread at a time, since their order is
/// agreed. Errors of every operation: usage, mismatch, peer_lost, timeout, unsupported; after one
/// of the middle three the group is poisoned, and every later call throws the same. A timeout of
/// kGroupTimeout stands for the group's own.
class ProcessGroup final {
 public:
  struct Options {
    std::string name = "world";
    Timeout timeout = std::chrono::minutes(5);
    std::vector<Rank> global_ranks = {};  // by rank; empty: the group is the world
  };

  ProcessGroup(std::unique_ptr<Backend> backend, Options options);
  /// As destroy(), bounded by a second, without throwing.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  Rank rank() const;
  int size() const;
  const std::string& name() const;
  Timeout timeout() const;
  const Capabilities& capabilities() const;
  /// The rank in the world of a rank of this group.
  Rank global_rank(Rank rank) const;

  // ---- point to point
  /// Sends the buffer to one rank. Messages between two ranks with the same tag do not overtake.
  /// Shape: the receive has the same count and type, or both end with mismatch.
  void send(ConstBuffer data, Rank to, Tag tag = {}, Timeout timeout = kGroupTimeout);
  /// Receives from one rank or, with kAnySource, from whoever sends with this tag; returns who did.
  Rank recv(Buffer data, Rank from = kAnySource, Tag tag = {}, Timeout timeout = kGroupTimeout);
  WorkPtr isend(ConstBuffer data, Rank to, Tag tag = {}, Timeout timeout = kGroupTimeout);
  WorkPtr irecv(Buffer data, Rank from = kAnySource, Tag tag = {}, Timeout timeout = kGroupTimeout);
  /// Starts all of them; their order does not matter.
  WorkPtr batch_isend_irecv(std::span<const PointToPoint> batch, Timeout timeout = kGroupTimeout);

  // ---- one buffer
  /// data = the root's data.
  void broadcast(Buffer data, Rank root, Timeout timeout = kGroupTimeout);
  WorkPtr broadcast_async(Buffer data, Rank root, Timeout timeout = kGroupTimeout);

  /// data[i] = op over r of data_r[i], in rank order, with the same bits on every rank.
  void all_reduce(Buffer data, ReduceOp op = ReduceOp::kSum, Timeout timeout = kGroupTimeout);
  WorkPtr all_reduce_async(Buffer data,
                           ReduceOp op = ReduceOp::kSum,
                           Timeout timeout = kGroupTimeout);

  /// As all_reduce at the root; elsewhere data is left as it was.
  void reduce(Buffer data,
              Rank root,
              ReduceOp op = ReduceOp::kSum,
              Timeout timeout = kGroupTimeout);
  WorkPtr reduce_async(Buffer data,
                       Rank root,
                       ReduceOp op = ReduceOp::kSum,
                       Timeout timeout = kGroupTimeout);

  // ---- several buffers at once, as one operation (coalesced)
  /// As if the buffers, all of one type, were one.
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
  /// out[k] = in_0[k] in_1[k] ... ; each out[k] holds size() blocks like in[k].
  void all_gather(std::span<const ConstBuffer> in,
                  std::span<const Buffer> out,
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_gather_async(std::span<const ConstBuffer> in,
                           std::span<const Buffer> out,
                           Timeout timeout = kGroupTimeout);
  /// out[k] = block rank() of op over r of in_r[k]; each in[k] holds size() blocks like out[k].
  void reduce_scatter(std::span<const ConstBuffer> in,
                      std::span<const Buffer> out,
                      ReduceOp op = ReduceOp::kSum,
                      Timeout timeout = kGroupTimeout);
  WorkPtr reduce_scatter_async(std::span<const ConstBuffer> in,
                               std::span<const Buffer> out,
                               ReduceOp op = ReduceOp::kSum,
                               Timeout timeout = kGroupTimeout);

  // ---- a block for each rank
  // In one buffer: size() equal blocks in rank order, or blocks of `counts` elements where counts
  // is not empty. In place where the field allows it: the small buffer is the own block of the
  // large one.
  /// out = block rank() of the root's in. `in` matters at the root only; `counts`, where given, on
  /// all.
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
  /// The root's out = in_0 in_1 ... ; `out` matters at the root only; `counts`, where given, on
  /// all.
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
  void all_gather(ConstBuffer in,
                  Buffer out,
                  std::span<const Elements> counts = {},
                  Timeout timeout = kGroupTimeout);
  WorkPtr all_gather_async(ConstBuffer in,
                           Buffer out,
                           std::span<const Elements> counts = {},
                           Timeout timeout = kGroupTimeout);
  /// out = block rank() of op over r of in_r.
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
  /// block r of out = block rank() of r's in. With counts, to[r] elements go to r and from[r] come
  /// from it.
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

  // ---- a buffer for each rank, of any sizes
  /// At the root `in` holds size() buffers, elsewhere none.
  void scatter(std::span<const ConstBuffer> in,
               Buffer out,
               Rank root,
               Timeout timeout = kGroupTimeout);
  WorkPtr scatter_async(std::span<const ConstBuffer> in,
                        Buffer out,
                        Rank root,
                        Timeout timeout = kGroupTimeout);
  /// At the root `out` holds size() buffers, elsewhere none.
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

  // ---- meeting
  /// Returns when all ranks have called it.
  void barrier(Timeout timeout = kGroupTimeout);
  WorkPtr barrier_async(Timeout timeout = kGroupTimeout);
  /// A barrier whose Error(timeout) at rank 0 names every rank that did not come; on the others it
  /// carries the same words. Cost: 2 (n - 1) small messages through rank 0.
  void monitored_barrier(Timeout timeout = kGroupTimeout);

  // ---- groups
  /// A group of `ranks` (of this group), in that order; called by its members only.
  std::shared_ptr<ProcessGroup> new_group(std::span<const Rank> ranks,
                                          Timeout timeout = kGroupTimeout);
  /// One group for each color, ranks ordered by (key, rank); called by all. nullptr for kNoColor.
  std::shared_ptr<ProcessGroup> split(int color, int key = 0, Timeout timeout = kGroupTimeout);

  // ---- memory and end
  /// Zeroed memory that peers of the host can reach, so that operations on it need no copy.
  Memory allocate(Bytes size);
  /// Ends every operation, here and on the peers, now and in future, with Error(peer_lost, reason).
  /// Any thread.
  void abort(const std::string& reason);
  /// Leaves the group. Later calls throw usage. Bounded by `timeout`.
  void destroy(Timeout timeout = kGroupTimeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

}  // namespace peal
