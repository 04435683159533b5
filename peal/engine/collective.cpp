#include "peal/engine/collective.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/mixed.h"
#include "peal/schedule/problem.h"
#include "peal/system/cpus.h"
#include "peal/transport/window/window.h"

namespace peal::engine {
Collective::Collective(
    Rank self, int ranks, transport::Transport& transport, Planner& planner, Bytes stage)
    : self_(self),
      transport_(transport),
      window_(transport.window()),
      execution_(self, ranks, transport, [this](Rank peer) { check_entry(peer); }),
      plan_cache_({.self = self,
                   .ranks = ranks,
                   .ranks_per_host = window_ != nullptr ? window_->ranks() : 1,
                   .stage = execution_.stage_limit().value_or(stage),
                   .cache = last_cache()},
                  planner),
      addresses_(self, ranks) {}

void Collective::begin(const Task& task) {
  enter(task);
  const PlannedPart& part = plan_cache_.part(*plan_, first_host_memory());
  is_opening_ = part.opening > 0;
  execution_.begin(*plan_, part, addresses_);
}

HostMemory Collective::first_host_memory() const {
  if (window_ == nullptr || !plan_->opens) return HostMemory::kForeign;
  return is_registered(own_entry_.input, own_entry_.output, self_) ? HostMemory::kRegistered
                                                                   : HostMemory::kForeign;
}

Progress Collective::advance() {
  if (is_opening_) {
    if (!execution_.open()) return Progress::kBlocked;
    is_opening_ = false;
    const HostMemory host_memory =
        find_peer_buffers() ? HostMemory::kRegistered : HostMemory::kMixed;
    execution_.go_on(plan_cache_.part(*plan_, host_memory), addresses_);
  }
  const Progress progress = execution_.advance();
  if (progress == Progress::kDone && lent_output_) take_back(*lent_output_);
  return progress;
}

void Collective::enter(const Task& task) {
  const std::uint64_t sequence = fingerprint().sequence + 1;
  const std::uint64_t before = fingerprint().detail;
  if (task.kind == 0 || task.kind != kind_) {
    plan_ = &plan_cache_.find(task.problem, task.dtype, task.reduce);
    kind_ = task.kind;
  }
  Fingerprint& entered = history_.next();
  entered = plan_->fingerprint;
  entered.sequence = sequence;
  entered.detail = mixed(before, plan_->digest);
  addresses_.set_own(task.dtype, task.input, task.output);
  lent_output_.reset();
  // The fingerprint does not include how much each rank contributes to an uneven gather.
  const schedule::Problem& problem = plan_->problem;
  const bool gathers = problem.operation == Operation::kGather && !problem.counts.empty();
  const Compare compare = gathers ? Compare::kEntries : Compare::kChecks;
  execution_.enter(entered, window_ != nullptr ? post_entry() : 0, compare);
}

std::uint64_t Collective::post_entry() {
  own_entry_.fingerprint = fingerprint();
  own_entry_.input_count = addresses_.input().size();
  own_entry_.output_count = addresses_.output().size();
  if (!plan_->opens) {
    own_entry_.input = own_entry_.output = std::nullopt;
    window_->post(own_entry_.encode());
    return 0;
  }
  own_entry_.input = offer(schedule::Space::kInput, addresses_.input());
  own_entry_.output = offer(schedule::Space::kOutput, addresses_.output());
  window_->post(own_entry_.encode());
  return PackedPlace(own_entry_.input, own_entry_.output).word();
}

std::optional<transport::ArenaOffset> Collective::offer(schedule::Space space,
                                                        const Regions& regions) {
  Located& last = space == schedule::Space::kInput ? located_input_ : located_output_;
  const std::optional<transport::Location>& place = locate(regions, last);
  if (!place) return std::nullopt;
  if (place->has_edges()) {
    if (!addresses_.in_one_piece())
      return std::nullopt;  // the execution would use the original memory
    const Bytes size = bytes_of(regions.size(), addresses_.dtype());
    std::byte* const shared = window_->address(self_, place->offset, size);
    transport::copy_edges(*place, size, regions.data(), shared);
    addresses_.set(space, self_, shared);
    if (space == schedule::Space::kOutput) lent_output_ = place;
  }
  return place->offset;
}

void Collective::take_back(const transport::Location& output) {
  const Regions& regions = addresses_.output();
  const Bytes size = bytes_of(regions.size(), addresses_.dtype());
  transport::copy_edges(output, size, window_->address(self_, output.offset, size), regions.data());
}

const std::optional<transport::Location>& Collective::locate(const Regions& regions,
                                                             Located& last) {
  static constexpr std::optional<transport::Location> kNowhere;
  if (!regions.is_one_piece() || regions.size().value == 0) return kNowhere;
  const Bytes size = bytes_of(regions.size(), addresses_.dtype());
  const std::uint64_t generation = window_->generation();
  if (last.memory != regions.data() || last.size != size || last.generation != generation) {
    last = {regions.data(), size, generation, window_->locate(regions.data(), size)};
  }
  return last.place;
}

/// `peer` is in this operation or past it. A peer that is far past it has compared its entry with
/// this rank's entry itself.
void Collective::check_entry(Rank peer) const {
  const std::optional<Entry> theirs = entry_of(peer);
  const bool gathers =
      plan_->problem.operation == Operation::kGather && self_ == plan_->problem.root;
  if (!theirs || plan_->problem.counts.empty() || !gathers) return;
  const Elements expected = plan_->problem.counts[static_cast<std::size_t>(peer)];
  if (theirs->input_count != expected) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("{}: rank {} gives {} elements where the root, rank {}, expects {}",
                            describe(),
                            peer,
                            theirs->input_count.value,
                            self_,
                            expected.value),
                {.operation = describe(), .cause = ErrorCause::kMismatch});
  }
}

std::optional<Entry> Collective::entry_of(Rank peer) const {
  const auto notice = window_->notice(peer, fingerprint().sequence);
  if (!notice) return std::nullopt;
  const Entry theirs = Entry::decode(*notice);
  if (theirs.fingerprint != fingerprint()) {
    throw mismatch(self_, fingerprint(), peer, theirs.fingerprint);
  }
  return theirs;
}

bool Collective::is_registered(const std::optional<transport::ArenaOffset>& input,
                               const std::optional<transport::ArenaOffset>& output,
                               Rank rank) const {
  const SharedBuffers& shared = plan_->shared[static_cast<std::size_t>(rank)];
  return (input || !shared.input) && (output || !shared.output);
}

bool Collective::find_peer_buffers() {
  for (int i = 0; i < window_->ranks(); ++i) {
    if (!find_buffers_of(window_->first() + i)) return false;
  }
  return true;
}

bool Collective::find_buffers_of(Rank rank) {
  const bool needs_nothing = is_registered({}, {}, rank);
  if (needs_nothing) return true;
  if (rank == self_) return is_registered(own_entry_.input, own_entry_.output, rank);
  const std::optional<std::uint64_t> word = execution_.place_of(rank);
  if (!word) return false;  // the rank has left, so no other rank touches its memory
  const PackedPlace place(*word);
  auto input = place.input();
  auto output = place.output();
  if (!place.is_whole()) {
    const std::optional<Entry> entry = entry_of(rank);
    if (!entry) return false;
    input = entry->input;
    output = entry->output;
  }
  using schedule::Space;
  const auto find = [&](Space space, transport::ArenaOffset offset, Elements size) {
    addresses_.set(space, rank, window_->address(rank, offset, bytes_of(size, addresses_.dtype())));
  };
  if (input) find(Space::kInput, *input, input_size(plan_->problem, rank));
  if (output) find(Space::kOutput, *output, output_size(plan_->problem, rank));
  return is_registered(input, output, rank);
}

void Collective::compare_entries() const {
  if (window_ == nullptr) return;
  for (int i = 0; i < window_->ranks(); ++i) {
    const Rank rank = window_->first() + i;
    if (rank != self_) static_cast<void>(entry_of(rank));
  }
}

std::string Collective::describe_missing() const {
  std::string text;
  for (const Rank rank : waiting_for()) {
    text += fmt::format(
        "{}rank {} ({}), which ", text.empty() ? "" : "; ", rank, transport_.describe(rank));
    const bool is_near = window_ != nullptr && window_->reaches(rank);
    const std::uint64_t last = is_near ? window_->posted(rank) : 0;
    if (is_near ? last >= fingerprint().sequence : execution_.has_seen(rank)) {
      text += "has entered the operation";
    } else if (is_near) {
      text += last == 0 ? "has entered no operation of the group yet"
                        : fmt::format("has not entered the operation: its last one is #{}", last);
    } else {
      text += "has sent nothing in this operation";
    }
    const std::string presence = transport::describe(transport_.presence(rank));
    if (!presence.empty()) text += fmt::format(", and {}", presence);
  }
  return text;
}

}  // namespace peal::engine
