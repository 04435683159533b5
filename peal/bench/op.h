// The operations that are measured, and what each of them moves. Used by everything in this folder.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace peal::bench {

enum class Op : unsigned char {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kSendRecv,  // ping-pong between the first and the last rank
  kBarrier,
};

inline constexpr std::array kAllOps = {Op::kAllReduce,
                                       Op::kReduceScatter,
                                       Op::kAllGather,
                                       Op::kBroadcast,
                                       Op::kReduce,
                                       Op::kGather,
                                       Op::kScatter,
                                       Op::kAllToAll,
                                       Op::kSendRecv,
                                       Op::kBarrier};

/// "all_reduce", ..., "send_recv", "barrier"
std::string_view name_of(Op op);
std::optional<Op> op_named(std::string_view name);

/// Whether each rank has a block of its own in a buffer that holds all of them.
bool has_blocks(Op op);
bool reduces(Op op);

/// Bus bandwidth over algorithm bandwidth: the share of the bytes that the busiest link of a
/// perfect network must carry. 0 for a barrier. Source: NCCL's tests, doc/PERFORMANCE.md.
double bus_factor(Op op, int ranks);

}  // namespace peal::bench
