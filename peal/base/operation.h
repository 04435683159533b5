// The operations of a process group.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class Operation : std::uint8_t {
  kBroadcast = 0,
  kReduce,
  kAllReduce,
  kScatter,
  kGather,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kRecv,
};

inline constexpr std::array kAllCollectives = {Operation::kBroadcast,
                                               Operation::kReduce,
                                               Operation::kAllReduce,
                                               Operation::kScatter,
                                               Operation::kGather,
                                               Operation::kAllGather,
                                               Operation::kReduceScatter,
                                               Operation::kAllToAll,
                                               Operation::kBarrier};

/// "broadcast", "reduce", "all_reduce", ...; "invalid" for a number that is not an operation.
constexpr std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduce:
      return "reduce";
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kScatter:
      return "scatter";
    case Operation::kGather:
      return "gather";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kAllToAll:
      return "all_to_all";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kSend:
      return "send";
    case Operation::kRecv:
      return "recv";
  }
  return "invalid";
}

constexpr bool reduces(Operation operation) {
  return operation == Operation::kReduce || operation == Operation::kAllReduce ||
         operation == Operation::kReduceScatter;
}

constexpr bool has_root(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce ||
         operation == Operation::kScatter || operation == Operation::kGather;
}

}  // namespace peal
