#include "peal/observe/name_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "peal/observe/operation_text.h"
#include "peal/system/cycles.h"

namespace peal::observe {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

void NameTable::clear() noexcept {
  std::uninitialized_value_construct(records_.begin(), records_.end());
}

/// Searches from the place after the latest one, so that ended operations stay readable for long.
NameTable::Place NameTable::take_place() noexcept {
  const std::size_t words = taken_.size();
  const std::size_t first = submitted_.load(memory_order_relaxed) % kNames;
  std::uint64_t skipped = (std::uint64_t{1} << first % 64) - 1;
  for (std::size_t i = 0; i <= words; ++i, skipped = 0) {
    const std::size_t word = (first / 64 + i) % words;
    std::uint64_t taken = taken_[word].load(memory_order_relaxed);
    while ((taken | skipped) != ~std::uint64_t{0}) {
      const int bit = std::countr_one(taken | skipped);
      if (taken_[word].compare_exchange_weak(
              taken, taken | std::uint64_t{1} << bit, memory_order_acquire)) {
        return static_cast<Place>(word * 64) + static_cast<Place>(bit);
      }
    }
  }
  return kNone;
}

NameTable::Place NameTable::submitted(std::uint8_t group, std::string_view text) noexcept {
  const Place place = take_place();
  const std::uint64_t ordinal = submitted_.fetch_add(1, memory_order_relaxed) + 1;
  if (place == kNone) return place;
  NameRecord& record = records_[place];
  const std::uint64_t now = cycles();
  std::array<std::uint64_t, kNameWords> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), kNameSize));
  record.stamp.store(0, memory_order_release);
  record.submitted.store(now, memory_order_relaxed);
  record.started.store(0, memory_order_relaxed);
  record.end.store(0, memory_order_relaxed);
  record.group.store(group, memory_order_relaxed);
  for (std::size_t i = 0; i < kNameWords; ++i) record.text[i].store(words[i], memory_order_relaxed);
  record.stamp.store(name_stamp_of(ordinal, now, group, words), memory_order_release);
  return place;
}

void NameTable::started(Place place) noexcept {
  if (place != kNone) records_[place].started.store(cycles(), memory_order_relaxed);
}

void NameTable::ended(Place place, Ending ending) noexcept {
  if (place == kNone) return;
  const std::uint64_t now = cycles() & ~kFailedBit;
  records_[place].end.store(ending == Ending::kWell ? now : now | kFailedBit, memory_order_release);
  taken_[place / 64].fetch_and(~(std::uint64_t{1} << place % 64), memory_order_release);
}

std::string NameTable::in_flight(std::uint8_t group) const {
  struct Found {
    std::uint64_t ordinal;
    std::string text;
  };
  std::vector<Found> submitted, started;
  for (const NameRecord& record : records_) {
    const std::uint64_t stamp = record.stamp.load(memory_order_acquire);
    if (stamp == 0 || record.end.load(memory_order_acquire) != 0 ||
        record.group.load(memory_order_relaxed) != group) {
      continue;
    }
    std::array<std::uint64_t, kNameWords> words{};
    for (std::size_t i = 0; i < kNameWords; ++i)
      words[i] = record.text[i].load(memory_order_relaxed);
    const std::uint64_t ordinal = stamp >> 16;
    if (stamp != name_stamp_of(ordinal, record.submitted.load(memory_order_relaxed), group, words))
      continue;
    std::string text(kNameSize, '\0');
    std::memcpy(text.data(), words.data(), kNameSize);
    text.resize(std::min(text.find('\0'), text.size()));
    (record.started.load(memory_order_relaxed) != 0 ? started : submitted)
        .push_back({ordinal, text});
  }
  std::vector<Found>& found = started.empty() ? submitted : started;
  std::ranges::sort(found, {}, &Found::ordinal);
  std::vector<std::string> names;
  for (Found& one : found) names.push_back(std::move(one.text));
  return names_text(names);
}

}  // namespace peal::observe
