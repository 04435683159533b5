#include "peal/train/horovod/process_set_state.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "peal/base/error.h"

namespace peal::hvd {
namespace {

Rank place_of(const std::vector<Rank>& ranks, Rank rank) {
  const auto found = std::ranges::lower_bound(ranks, rank);
  return found != ranks.end() && *found == rank ? static_cast<Rank>(found - ranks.begin()) : -1;
}

/// Modules and optimizers may keep references to the group.
void leave(const ProcessGroupPtr& group) {
  if (!group) return;
  try {
    group->destroy(std::chrono::seconds(1));
  } catch (const std::exception&) {
    // The group has failed before.
  }
}

}  // namespace

ProcessSetState::ProcessSetState(int id,
                                 std::vector<Rank> ranks,
                                 Rank own_rank,
                                 ProcessGroupPtr group,
                                 const named::Options& options)
    : id_(id), ranks_(std::move(ranks)), rank_(place_of(ranks_, own_rank)) {
  if (group == nullptr) return;
  parts_.with([&](Parts& parts) {
    parts.operations = std::make_shared<named::NamedOperations>(group, options);
    parts.group = std::move(group);
  });
}

Rank ProcessSetState::rank_of_global(Rank global) const { return place_of(ranks_, global); }

std::shared_ptr<named::NamedOperations> ProcessSetState::operations() const {
  return parts_.with([](const Parts& parts) { return parts.operations; });
}

ProcessGroupPtr ProcessSetState::group() const {
  return parts_.with([](const Parts& parts) { return parts.group; });
}

ProcessGroupPtr ProcessSetState::other_group() {
  const auto [group, other] =
      parts_.with([](const Parts& parts) { return std::pair(parts.group, parts.other_group); });
  if (other || !group) return other;
  std::vector<Rank> all(ranks_.size());
  std::iota(all.begin(), all.end(), 0);
  ProcessGroupPtr made = group->new_group(all);
  parts_.with([&](Parts& parts) { parts.other_group = made; });
  return made;
}

std::uint64_t ProcessSetState::next_number(named::Kind kind) {
  return numbers_.at(static_cast<std::size_t>(kind)).fetch_add(1, std::memory_order_relaxed);
}

void ProcessSetState::restart_numbers(std::uint64_t joins) {
  joins_.with([&](std::uint64_t& known) {
    if (joins <= known) return;
    known = joins;
    for (auto& number : numbers_) number.store(joins << 32, std::memory_order_relaxed);
  });
}

void ProcessSetState::keep(std::unique_ptr<InFlight> operation) {
  std::vector<std::unique_ptr<InFlight>> ended;  // destroyed without the lock
  kept_.with([&](std::vector<std::unique_ptr<InFlight>>& kept) {
    const auto rest = std::ranges::stable_partition(
        kept, [](const std::unique_ptr<InFlight>& one) { return !one->has_ended(); });
    std::ranges::move(rest, std::back_inserter(ended));
    kept.erase(rest.begin(), rest.end());
    kept.push_back(std::move(operation));
  });
}

void ProcessSetState::close() {
  Parts parts = parts_.with([](Parts& all) { return std::exchange(all, {}); });
  parts.operations.reset();  // before its group
  kept_.with([](auto& kept) { return std::exchange(kept, {}); });
  leave(parts.other_group);
  leave(parts.group);
}

}  // namespace peal::hvd
