#include "peal/group/process_group.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/stack_frames.h"
#include "peal/group/state.h"

namespace peal {

GroupState::GroupState(std::unique_ptr<Backend> b, GroupOptions o)
    : backend(std::move(b)),
      rank(backend->rank()),
      size(backend->size()),
      capabilities(backend->capabilities()),
      options(std::move(o)) {
  if (!options.global_ranks.empty()) return;
  options.global_ranks.resize(static_cast<std::size_t>(size));
  std::iota(options.global_ranks.begin(), options.global_ranks.end(), 0);
}

void GroupState::check_alive() const {
  if (!owner.is_current()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("this process was forked from rank {} of the group {}, and is not in "
                            "the group itself: it may make its own group",
                            rank,
                            options.name));
  }
  if (destroyed.load(std::memory_order_relaxed)) throw destroyed_error(options.name);
}

Error destroyed_error(const std::string& group) {
  return Error(ErrorKind::kUsage,
               fmt::format("the group {} has been destroyed: make a new group", group));
}

ProcessGroup::ProcessGroup(std::unique_ptr<Backend> backend, Options options)
    : ProcessGroup(std::make_unique<GroupState>(std::move(backend), std::move(options))) {}

/// The base classes borrow the state that this object owns.
ProcessGroup::ProcessGroup(std::unique_ptr<GroupState> state)
    : Messages(*state), Collectives(*state), state_(std::move(state)) {}

ProcessGroup::~ProcessGroup() {
  if (!state_->owner.is_current()) {
    leave_to_parent(std::move(state_));
    return;
  }
  if (state_->destroyed.exchange(true)) return;
  try {
    state_->backend->shutdown(
        state_->departure(), Deadline::after(std::chrono::seconds(1)), Interrupts::kIgnored);
  } catch (const std::exception&) {
    // Call destroy() to get this error.
  }
}

Rank ProcessGroup::rank() const { return state_->rank; }
int ProcessGroup::size() const { return state_->size; }
const std::string& ProcessGroup::name() const { return state_->options.name; }
Timeout ProcessGroup::timeout() const { return state_->options.timeout; }
const Capabilities& ProcessGroup::capabilities() const { return state_->capabilities; }
std::shared_ptr<FlightNotes> ProcessGroup::flight_notes() const {
  return state_->backend->flight_notes();
}

// ---- stopping

bool GroupState::has_stop_request() {
  return stop_requests.with([&](auto& noted) {
    if (!noted) noted = std::make_unique<StopRequests>(options.stop_flag);
    return noted->has_come();
  });
}

bool ProcessGroup::should_stop(Timeout timeout) {
  state_->check_alive();
  std::uint8_t is_asked = state_->has_stop_request() ? 1 : 0;
  all_reduce(std::span(&is_asked, 1), {.op = ReduceOp::kMax, .timeout = timeout});
  return is_asked != 0;
}

std::unique_ptr<StopRequests> ProcessGroup::note_stop_requests() const {
  return std::make_unique<StopRequests>(state_->options.stop_flag);
}

Rank ProcessGroup::global_rank(Rank rank) const {
  if (rank < 0 || rank >= size()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("rank {} is not in the group {} of {} ranks", rank, name(), size()));
  }
  return state_->options.global_ranks[static_cast<std::size_t>(rank)];
}

// ---- groups

ProcessGroupPtr ProcessGroup::new_group(std::span<const Rank> ranks, Timeout timeout) {
  state_->check_alive();
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::kUsage, fmt::format("new_group of {}: {}", name(), why));
  };
  std::vector<Rank> members(ranks.begin(), ranks.end());
  std::vector<Rank> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw refuse(fmt::format("a rank is given twice in {}", fmt::join(members, ",")));
  }
  Options options;
  options.timeout = state_->options.timeout;
  options.stop_flag = state_->options.stop_flag;
  for (const Rank member : members) options.global_ranks.push_back(global_rank(member));
  if (!std::binary_search(sorted.begin(), sorted.end(), rank())) {
    throw refuse(fmt::format(
        "rank {} is not among {}, and only members may call it", rank(), fmt::join(members, ",")));
  }
  // The number grows even if the group then fails, because its keys stay in the store.
  const int serial = state_->groups_made.with([&](auto& made) { return made[members]++; });
  options.name = fmt::format("{}/{}.{}", name(), fmt::join(members, ","), serial);
  auto backend = state_->backend->subgroup(members, options.name, state_->resolve(timeout));
  return std::make_shared<ProcessGroup>(std::move(backend), std::move(options));
}

ProcessGroupPtr ProcessGroup::split(int color, int key, Timeout timeout) {
  if (color < 0 && color != kNoColor) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("split of {}: color {} is negative; kNoColor joins no group", name(), color));
  }
  const std::array<std::int32_t, 2> own = {color, key};
  std::vector<std::int32_t> all(own.size() * static_cast<std::size_t>(size()));
  all_gather(std::span(own), all, {.timeout = timeout});
  if (color == kNoColor) return nullptr;

  std::vector<std::pair<std::int32_t, Rank>> members;  // (key, rank)
  for (Rank r = 0; r < size(); ++r) {
    const auto at = static_cast<std::size_t>(r) * own.size();
    if (all[at] == color) members.emplace_back(all[at + 1], r);
  }
  std::sort(members.begin(), members.end());
  std::vector<Rank> ranks;
  for (const auto& member : members) ranks.push_back(member.second);
  return new_group(ranks, timeout);
}

// ---- memory and end

Memory ProcessGroup::allocate(Bytes size) {
  if (size.value < 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("allocate of {} bytes: the size must be 0 or more", size.value));
  }
  state_->check_alive();
  return state_->backend->allocate(size);
}

Registration ProcessGroup::register_memory(void* memory, Bytes size) {
  if (size.value < 0 || (memory == nullptr && size.value > 0)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("register_memory of {} bytes at {}: pass a pointer that is not null, "
                            "and a size of 0 or more",
                            size.value,
                            fmt::ptr(memory)));
  }
  state_->check_alive();
  if (size.value == 0) return {};
  return state_->backend->register_memory(
      {static_cast<std::byte*>(memory), static_cast<std::size_t>(size.value)});
}

void ProcessGroup::abort(const std::string& reason) {
  if (!state_->owner.is_current()) return;
  state_->backend->abort(
      Error(ErrorKind::kAborted,
            fmt::format(
                "the group {} was aborted by rank {}: {}", name(), global_rank(rank()), reason),
            {.rank = global_rank(rank()), .cause = ErrorCause::kAborted, .reason = reason}),
      Departure::kNormal);
}

void ProcessGroup::abort_by_exception(const std::string& what) {
  if (!state_->owner.is_current()) return;
  const Rank self = global_rank(rank());
  const std::string text = without_stack_frames(what);
  state_->backend->abort(Error(ErrorKind::kPeerLost,
                               fmt::format("rank {} threw: {}", self, text),
                               {.rank = self, .cause = ErrorCause::kThrew, .reason = text}),
                         Departure::kByException);
}

void ProcessGroup::destroy(Timeout timeout) {
  if (!state_->owner.is_current()) return;
  if (state_->destroyed.load()) return;
  state_->backend->check_may_end();
  if (state_->destroyed.exchange(true)) return;
  state_->stop_requests.with([](auto& noted) { noted.reset(); });
  state_->backend->shutdown(
      state_->departure(), Deadline::after(state_->resolve(timeout)), Interrupts::kAsked);
}

}  // namespace peal
