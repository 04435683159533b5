#include "peal/bench/op.h"

namespace peal::bench {

std::string_view name_of(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kAllGather:
      return "all_gather";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kReduce:
      return "reduce";
    case Op::kGather:
      return "gather";
    case Op::kScatter:
      return "scatter";
    case Op::kAllToAll:
      return "all_to_all";
    case Op::kSendRecv:
      return "send_recv";
    case Op::kBarrier:
      return "barrier";
  }
  return "invalid";
}

std::optional<Op> op_named(std::string_view name) {
  for (const Op op : kAllOps) {
    if (name == name_of(op)) return op;
  }
  return std::nullopt;
}

bool has_blocks(Op op) {
  switch (op) {
    case Op::kReduceScatter:
    case Op::kAllGather:
    case Op::kGather:
    case Op::kScatter:
    case Op::kAllToAll:
      return true;
    case Op::kAllReduce:
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kSendRecv:
    case Op::kBarrier:
      return false;
  }
  return false;
}

bool reduces(Op op) {
  return op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kReduce;
}

double bus_factor(Op op, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (op) {
    case Op::kAllReduce:
      return 2 * others;
    case Op::kReduceScatter:
    case Op::kAllGather:
    case Op::kGather:
    case Op::kScatter:
    case Op::kAllToAll:
      return others;
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kSendRecv:
      return 1;
    case Op::kBarrier:
      return 0;
  }
  return 0;
}

}  // namespace peal::bench
