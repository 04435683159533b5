#include "peal/named/rounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "peal/base/reduce_op.h"
#include "peal/named/unlimited.h"

namespace peal::named {
namespace {

/// Of each rank: the size of its announcements, and their beginning.
constexpr std::size_t kSlot = 512;
constexpr std::size_t kHeader = sizeof(std::uint64_t);

std::span<std::uint8_t> bytes_of(std::string& text) {
  return {reinterpret_cast<std::uint8_t*>(text.data()), text.size()};
}

std::vector<std::string> gather_long(ProcessGroup& group,
                                     std::string mine,
                                     std::span<const std::uint64_t> sizes) {
  std::vector<Elements> counts;
  std::size_t total = 0;
  for (const std::uint64_t size : sizes) {
    counts.emplace_back(static_cast<std::int64_t>(size));
    total += size;
  }
  std::string all(total, '\0');
  group.all_gather(bytes_of(mine), bytes_of(all), {.counts = counts, .timeout = kUnlimited});
  std::vector<std::string> result;
  std::size_t at = 0;
  for (const std::uint64_t size : sizes) {
    result.push_back(all.substr(at, size));
    at += size;
  }
  return result;
}

std::vector<std::string> gather(ProcessGroup& group, std::string mine) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::string slot(kSlot, '\0');
  const std::uint64_t size = mine.size();
  std::memcpy(slot.data(), &size, kHeader);
  std::memcpy(slot.data() + kHeader, mine.data(), std::min(mine.size(), kSlot - kHeader));
  std::string slots(kSlot * ranks, '\0');
  group.all_gather(bytes_of(slot), bytes_of(slots), {.timeout = kUnlimited});

  std::vector<std::uint64_t> sizes(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::memcpy(&sizes[rank], slots.data() + rank * kSlot, kHeader);
  }
  if (std::ranges::any_of(sizes, [](std::uint64_t one) { return one > kSlot - kHeader; })) {
    return gather_long(group, std::move(mine), sizes);
  }
  std::vector<std::string> result;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    result.push_back(slots.substr(rank * kSlot + kHeader, sizes[rank]));
  }
  return result;
}

}  // namespace

std::vector<Decision> run_round(ProcessGroup& group, Agreement& agreement) {
  std::vector<std::uint64_t> votes = agreement.votes();
  const std::span words(reinterpret_cast<std::int64_t*>(votes.data()), votes.size());
  group.all_reduce(words, {.op = ReduceOp::kBor, .timeout = kUnlimited});
  if (!agreement.accept(votes)) return agreement.decide({});
  return agreement.decide(gather(group, agreement.announcements()));
}

}  // namespace peal::named
