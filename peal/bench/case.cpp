#include "peal/bench/case.h"

#include <algorithm>

#include <fmt/format.h>

namespace peal::bench {
namespace {

/// The part of the data that a rank has as input or output.
enum class Share : std::uint8_t { kNothing, kBlock, kWhole, kWholeAtRoot, kWholeAtEnds };

struct Shares {
  Share input;
  Share output;
};

Shares shares_of(Op op) {
  switch (op) {
    case Op::kAllReduce:
    case Op::kAllToAll:
      return {Share::kWhole, Share::kWhole};
    case Op::kReduceScatter:
      return {Share::kWhole, Share::kBlock};
    case Op::kAllGather:
      return {Share::kBlock, Share::kWhole};
    case Op::kBroadcast:
      return {Share::kWholeAtRoot, Share::kWhole};
    case Op::kReduce:
      return {Share::kWhole, Share::kWholeAtRoot};
    case Op::kScatter:
      return {Share::kWholeAtRoot, Share::kBlock};
    case Op::kGather:
      return {Share::kBlock, Share::kWholeAtRoot};
    case Op::kSendRecv:
      return {Share::kWholeAtEnds, Share::kWholeAtEnds};
    case Op::kBarrier:
      break;
  }
  return {Share::kNothing, Share::kNothing};
}

Elements count_of(Share share, const Case& c, Rank rank) {
  const bool is_root = rank == kRoot;
  const bool is_end = rank == 0 || rank == c.ranks - 1;
  switch (share) {
    case Share::kBlock:
      return c.count;
    case Share::kWhole:
      return whole_count(c);
    case Share::kWholeAtRoot:
      return is_root ? whole_count(c) : Elements(0);
    case Share::kWholeAtEnds:
      return is_end ? whole_count(c) : Elements(0);
    case Share::kNothing:
      break;
  }
  return Elements(0);
}

}  // namespace

Case make_case(Op op, DType dtype, int ranks, Bytes bytes, BlockPlace place) {
  Case made{.op = op, .dtype = dtype, .ranks = ranks, .count = {}, .place = place};
  if (op == Op::kBarrier) return made;
  const Bytes unit = size_of(dtype) * (has_blocks(op) ? ranks : 1);
  made.count = Elements(std::max<std::int64_t>(1, (bytes.value + unit.value - 1) / unit.value));
  return made;
}

Elements whole_count(const Case& c) { return has_blocks(c.op) ? c.count * c.ranks : c.count; }

Bytes bytes_of(const Case& c) { return peal::bytes_of(whole_count(c), c.dtype); }

std::string describe(const Case& c) {
  if (c.op == Op::kBarrier) return fmt::format("barrier on {} ranks", c.ranks);
  return fmt::format(
      "{} of {} B of {} on {} ranks", name_of(c.op), bytes_of(c).value, name_of(c.dtype), c.ranks);
}

Elements input_count(const Case& c, Rank rank) { return count_of(shares_of(c.op).input, c, rank); }

Elements output_count(const Case& c, Rank rank) {
  return count_of(shares_of(c.op).output, c, rank);
}

Placement placement(const Case& c, Rank rank) {
  const bool in_place = c.place == BlockPlace::kIn;
  const Elements own = c.count * rank;
  switch (c.op) {
    case Op::kAllReduce:
    case Op::kBroadcast:
    case Op::kReduce:
      return {.sharing = Sharing::kOneMemory};
    case Op::kAllGather:
      if (in_place) return {.sharing = Sharing::kOneMemory, .input = own};
      return {};
    case Op::kReduceScatter:
      if (in_place) return {.sharing = Sharing::kOneMemory, .output = own};
      return {};
    case Op::kGather:
    case Op::kScatter:  // the root is rank 0, so its block is the first
      if (in_place && rank == kRoot) return {.sharing = Sharing::kOneMemory};
      return {};
    case Op::kAllToAll:
    case Op::kSendRecv:
    case Op::kBarrier:
      return {};
  }
  return {};
}

BlockPlace place_of(const Case& c) {
  return placement(c, kRoot).sharing == Sharing::kOneMemory ? BlockPlace::kIn : BlockPlace::kOut;
}

}  // namespace peal::bench
