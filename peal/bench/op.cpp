#include "peal/bench/op.h"

namespace peal::bench {

Operation operation_of(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return Operation::kAllReduce;
    case Op::kReduceScatter:
      return Operation::kReduceScatter;
    case Op::kAllGather:
      return Operation::kAllGather;
    case Op::kBroadcast:
      return Operation::kBroadcast;
    case Op::kReduce:
      return Operation::kReduce;
    case Op::kGather:
      return Operation::kGather;
    case Op::kScatter:
      return Operation::kScatter;
    case Op::kAllToAll:
      return Operation::kAllToAll;
    case Op::kSendRecv:
      return Operation::kSend;
    case Op::kBarrier:
      return Operation::kBarrier;
  }
  return Operation::kBarrier;
}

std::string_view name_of(Op op) {
  return op == Op::kSendRecv ? "send_recv" : name_of(operation_of(op));
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

double bus_factor(Op op, int ranks) {
  if (op == Op::kBarrier) return 0;
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (op == Op::kAllReduce) return 2 * others;
  return has_blocks(op) ? others : 1;
}

}  // namespace peal::bench
