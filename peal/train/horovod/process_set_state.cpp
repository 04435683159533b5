#include "peal/train/horovod/process_set_state.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <utility>

#include "peal/base/clock.h"
#include "peal/base/error.h"

namespace peal::hvd {
namespace {

/// How long close() waits for other threads, which the end of the group wakes at once. It has a
/// limit because close() may run inside such a wait: in a signal handler of the program.
constexpr std::chrono::seconds kPatience{5};

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
  const auto release = [kept = kept_](const named::NamedOperations* operations) {
    delete operations;
    const auto ended = kept->update([](auto& all) { return std::exchange(all, {}); });
  };
  parts_.with([&](Parts& parts) {
    parts.operations = {new named::NamedOperations(group, options), release};
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
  kept_->with([&](std::vector<std::unique_ptr<InFlight>>& kept) {
    // Not std::ranges, whose result clang-tidy cannot read.
    const auto rest = std::stable_partition(
        kept.begin(), kept.end(), [](const auto& one) { return !one->has_ended(); });
    std::move(rest, kept.end(), std::back_inserter(ended));
    kept.erase(rest, kept.end());
    kept.push_back(std::move(operation));
  });
}

void ProcessSetState::close() {
  Parts parts = parts_.with([](Parts& all) { return std::exchange(all, {}); });
  const std::weak_ptr<named::NamedOperations> used = parts.operations;
  parts.operations.reset();  // before its group
  if (!used.expired()) {     // another thread waits in the operations
    parts.group->abort("Horovod has been shut down while operations were pending");
    kept_->wait(
        Deadline(Clock::now() + kPatience),
        [&](const auto&) { return used.expired(); },
        [](const auto&) {});
  }
  leave(parts.other_group);
  leave(parts.group);
}

}  // namespace peal::hvd
