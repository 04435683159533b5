#include "peal/engine/collective.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/schedule/problem.h"
#include "peal/transport/window.h"

namespace peal::engine {
namespace {

using schedule::Access;

/// Smaller operations are staged even where their memory is registered: agreeing on that takes a
/// round of looking at each other that a small copy does not repay.
constexpr Bytes kRegisteredFrom = 16_KiB;

/// Order-dependent mix of 64-bit words (the finalizer of splitmix64; Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash += word + 0x9e37'79b9'7f4a'7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d0'49bb'1331'11ebu;
  return hash ^ (hash >> 31);
}

/// Whether every rank knows every count: then the counts must agree as a whole.
bool counts_are_common(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter;
}

/// `before`: of the operation before. Ranks that were in different ones may not have noticed, as
/// roots do not that only send; so the next operation in which they meet tells them.
std::uint64_t detail_of(const schedule::Problem& problem, const Fingerprint& before) {
  std::uint64_t hash = mixed(before.detail, static_cast<std::uint64_t>(before.root));
  for (const auto word : {static_cast<std::uint64_t>(before.operation),
                          static_cast<std::uint64_t>(before.dtype),
                          static_cast<std::uint64_t>(before.reduce),
                          static_cast<std::uint64_t>(before.count.value),
                          static_cast<std::uint64_t>(problem.stage_limit.value)}) {
    hash = mixed(hash, word);
  }
  hash = mixed(hash, problem.counts.empty() ? 0 : 1);
  if (counts_are_common(problem.operation)) {
    for (const Elements count : problem.counts)
      hash = mixed(hash, static_cast<std::uint64_t>(count.value));
  }
  return hash;
}

}  // namespace

Collective::Collective(
    Rank self, int ranks, transport::Transport& transport, Planner& planner, Bytes stage)
    : self_(self),
      ranks_(ranks),
      transport_(transport),
      window_(transport.window()),
      planner_(planner),
      stage_(stage),
      walk_(self, ranks, transport) {
  places_.self = self;
  places_.stages.resize(static_cast<std::size_t>(ranks));
  if (window_ == nullptr) return;
  stage_ = Bytes(static_cast<std::int64_t>(window_->stage(self).size()));
  for (Rank rank = 0; rank < ranks; ++rank) {
    places_.stages[static_cast<std::size_t>(rank)] = window_->stage(rank).data();
  }
}

void Collective::begin(const Task& task) {
  problem_ = task.problem;
  problem_.access = Access::kForeign;
  problem_.ranks_per_host = window_ != nullptr ? ranks_ : 1;
  problem_.stage_limit = Elements(stage_ / size_of(task.dtype));
  fill_places(task);

  const std::uint64_t sequence = fingerprint_.sequence + 1;
  fingerprint_ = {.sequence = sequence,
                  .operation = problem_.operation,
                  .dtype = task.dtype,
                  .reduce = task.reduce,
                  .algorithm = planner_.choose(problem_, size_of(task.dtype)),
                  .root = problem_.root,
                  .count = problem_.count,
                  .detail = detail_of(problem_, fingerprint_)};
  walk_.enter(fingerprint_, [this](Rank peer) { check_entry(peer); });
  if (window_ == nullptr) {
    start_walk(Access::kForeign);
    return;
  }
  post_entry();
  // Uneven blocks are known in part only, so ranks could not agree on what is large.
  const Bytes size = bytes_of(problem_.count, task.dtype);
  const bool worth_meeting = problem_.counts.empty() && size >= kRegisteredFrom;
  if (worth_meeting) walk_.announce();
  const bool registered = (own_entry_.input || own_entry_.input_count.value == 0) &&
                          (own_entry_.output || own_entry_.output_count.value == 0);
  if (worth_meeting && registered) {
    phase_ = Phase::kMeeting;
  } else {
    start_walk(Access::kForeign);
  }
}

Progress Collective::advance() {
  if (phase_ == Phase::kMeeting) {
    if (!walk_.all_have_announced()) return Progress::kBlocked;
    start_walk(find_peer_buffers() ? Access::kRegistered : Access::kForeign);
  }
  return walk_.advance();
}

void Collective::fill_places(const Task& task) {
  places_.dtype = task.dtype;
  places_.input = task.input;
  places_.output = task.output;
}

void Collective::post_entry() {
  const auto located = [&](const Regions& regions) {
    return regions.is_one_piece() && regions.size().value > 0
               ? window_->locate(regions.data(), bytes_of(regions.size(), places_.dtype))
               : std::nullopt;
  };
  own_entry_ = {.fingerprint = fingerprint_,
                .input = located(places_.input),
                .output = located(places_.output),
                .input_count = places_.input.size(),
                .output_count = places_.output.size()};
  window_->post(own_entry_.encode());
}

/// `peer` is known to be in this operation or past it. One long past it has compared its entry with
/// ours.
void Collective::check_entry(Rank peer) {
  const std::optional<Entry> theirs = entry_of(peer);
  const bool gathers = problem_.operation == Operation::kGather && self_ == problem_.root;
  if (!theirs || problem_.counts.empty() || !gathers) return;
  const Elements expected = problem_.counts[static_cast<std::size_t>(peer)];
  if (theirs->input_count != expected) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("{}: rank {} gives {} elements where the root, rank {}, expects {}",
                            describe(),
                            peer,
                            theirs->input_count.value,
                            self_,
                            expected.value));
  }
}

std::optional<Entry> Collective::entry_of(Rank peer) const {
  const auto notice = window_->notice(peer, fingerprint_.sequence);
  if (!notice) return std::nullopt;
  const Entry theirs = Entry::decode(*notice);
  if (theirs.fingerprint != fingerprint_) {
    throw mismatch(self_, fingerprint_, peer, theirs.fingerprint);
  }
  return theirs;
}

void Collective::start_walk(Access access) {
  problem_.access = access;
  phase_ = Phase::kWalking;
  const PlannedPart& planned = planner_.plan(fingerprint_.algorithm, problem_);
  if (window_ == nullptr && planned.part.stage.value > 0) {
    const auto needed = static_cast<std::size_t>(bytes_of(planned.part.stage, places_.dtype).value);
    if (own_stage_.size() < needed) own_stage_.resize(needed);
    places_.stages[static_cast<std::size_t>(self_)] = own_stage_.data();
  }
  walk_.begin(planned, places_);
}

bool Collective::find_peer_buffers() {
  places_.peer_inputs.assign(static_cast<std::size_t>(ranks_), nullptr);
  places_.peer_outputs.assign(static_cast<std::size_t>(ranks_), nullptr);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    Entry entry = own_entry_;
    if (rank != self_) {
      const std::optional<Entry> theirs = entry_of(rank);
      if (!theirs) return false;
      entry = *theirs;
    }
    const auto r = static_cast<std::size_t>(rank);
    if (entry.input) places_.peer_inputs[r] = window_->address(rank, *entry.input);
    if (entry.output) places_.peer_outputs[r] = window_->address(rank, *entry.output);
    if ((entry.input_count.value > 0 && !entry.input) ||
        (entry.output_count.value > 0 && !entry.output)) {
      return false;
    }
  }
  return true;
}

void Collective::compare_entries() const {
  if (window_ == nullptr) return;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank != self_) static_cast<void>(entry_of(rank));
  }
}

std::string Collective::describe_missing() const {
  std::string text;
  for (const Rank rank : waiting_for()) {
    text += fmt::format(
        "{}rank {} ({}), which ", text.empty() ? "" : "; ", rank, transport_.describe(rank));
    const std::uint64_t last = window_ != nullptr ? window_->posted(rank) : 0;
    if (window_ != nullptr ? last >= fingerprint_.sequence : walk_.heard_from(rank)) {
      text += "has entered the operation";
    } else if (window_ != nullptr) {
      text += last == 0 ? "has entered no operation of the group yet"
                        : fmt::format("has not come: the last that it entered was #{}", last);
    } else {
      text += "has not been heard of in this operation";
    }
  }
  return text;
}

}  // namespace peal::engine
