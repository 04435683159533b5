// The operations that are measured, and their properties. Used by all files of this folder.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "peal/base/operation.h"

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

/// peal's operation; a send for kSendRecv.
Operation operation_of(Op op);

/// "all_reduce", ..., "send_recv", "barrier"
std::string_view name_of(Op op);
std::optional<Op> op_named(std::string_view name);

/// Whether the operation has a buffer with a block for each rank.
bool has_blocks(Op op);

/// Bus bandwidth divided by algorithm bandwidth: the fraction of the bytes that the busiest link of
/// a perfect network must carry. 0 for a barrier. Source: NCCL's tests, doc/PERFORMANCE.md.
double bus_factor(Op op, int ranks);

}  // namespace peal::bench
