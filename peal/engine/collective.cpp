#include "peal/engine/collective.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "peal/base/cpus.h"
#include "peal/base/error.h"
#include "peal/schedule/problem.h"
#include "peal/transport/window.h"

namespace peal::engine {
namespace {

using schedule::Access;

}  // namespace

Collective::Collective(
    Rank self, int ranks, transport::Transport& transport, Planner& planner, Bytes stage)
    : self_(self),
      transport_(transport),
      window_(transport.window()),
      walk_(self, ranks, transport, [this](Rank peer) { check_entry(peer); }),
      book_({.ranks = ranks,
             .ranks_per_host = window_ != nullptr ? window_->ranks() : 1,
             .stage = walk_.stage_limit().value_or(stage),
             .cache = last_cache()},
            planner),
      places_(self, ranks) {}

void Collective::begin(const Task& task) {
  enter(task);
  if (window_ == nullptr) return start_walk(Access::kForeign);
  const Decides decides = recipe_->decides;
  if (decides == Decides::kNobody) return start_walk(Access::kForeign);
  const bool i_decide = decides == Decides::kEverybody || self_ == recipe_->problem.root;
  if (i_decide) {
    walk_.announce();
    if (!is_registered(own_entry_.input, own_entry_.output, self_))
      return start_walk(Access::kForeign);
    if (decides == Decides::kRoot) return start_walk(Access::kRegistered);
  }
  phase_ = Phase::kMeeting;
}

Progress Collective::advance() {
  if (phase_ == Phase::kMeeting) {
    const bool met = recipe_->decides == Decides::kRoot ? walk_.has_begun(recipe_->problem.root)
                                                        : walk_.all_have_begun();
    if (!met) return Progress::kBlocked;
    start_walk(find_peer_buffers() ? Access::kRegistered : Access::kForeign);
  }
  const Progress progress = walk_.advance();
  if (progress == Progress::kDone && lent_output_) take_back(*lent_output_);
  return progress;
}

void Collective::enter(const Task& task) {
  const std::uint64_t sequence = fingerprint().sequence + 1;
  const std::uint64_t before = fingerprint().detail;
  if (task.kind == 0 || task.kind != kind_) {
    recipe_ = &book_.find(task.problem, task.dtype, task.reduce);
    kind_ = task.kind;
  }
  Fingerprint& entered = history_.next();
  entered = recipe_->fingerprint;
  entered.sequence = sequence;
  entered.detail = mixed(before, recipe_->digest);
  places_.set_own(task.dtype, task.input, task.output);
  lent_output_.reset();
  // What each rank gives to an uneven gather is not in the fingerprint.
  const schedule::Problem& problem = recipe_->problem;
  const bool gathers = problem.operation == Operation::kGather && !problem.counts.empty();
  const Compare compare = gathers ? Compare::kEntries : Compare::kChecks;
  walk_.enter(entered, window_ != nullptr ? post_entry() : 0, compare);
}

std::uint64_t Collective::post_entry() {
  own_entry_.fingerprint = fingerprint();
  own_entry_.input_count = places_.input().size();
  own_entry_.output_count = places_.output().size();
  if (recipe_->decides == Decides::kNobody) {
    own_entry_.input = own_entry_.output = std::nullopt;
    window_->post(own_entry_.encode());
    return 0;
  }
  own_entry_.input = offer(schedule::Space::kInput, places_.input());
  own_entry_.output = offer(schedule::Space::kOutput, places_.output());
  window_->post(own_entry_.encode());
  return PackedPlace(own_entry_.input, own_entry_.output).word();
}

std::optional<transport::ArenaOffset> Collective::offer(schedule::Space space,
                                                        const Regions& regions) {
  Located& last = space == schedule::Space::kInput ? located_input_ : located_output_;
  const std::optional<transport::Location>& place = locate(regions, last);
  if (!place) return std::nullopt;
  if (place->has_edges()) {
    if (!places_.in_one_piece()) return std::nullopt;  // the walk would work where it lies
    const Bytes size = bytes_of(regions.size(), places_.dtype());
    std::byte* const shared = window_->address(self_, place->offset, size);
    transport::copy_edges(*place, size, regions.data(), shared);
    places_.set(space, self_, shared);
    if (space == schedule::Space::kOutput) lent_output_ = place;
  }
  return place->offset;
}

void Collective::take_back(const transport::Location& output) {
  const Regions& regions = places_.output();
  const Bytes size = bytes_of(regions.size(), places_.dtype());
  transport::copy_edges(output, size, window_->address(self_, output.offset, size), regions.data());
}

const std::optional<transport::Location>& Collective::locate(const Regions& regions,
                                                             Located& last) {
  static constexpr std::optional<transport::Location> kNowhere;
  if (!regions.is_one_piece() || regions.size().value == 0) return kNowhere;
  const Bytes size = bytes_of(regions.size(), places_.dtype());
  const std::uint64_t generation = window_->generation();
  if (last.memory != regions.data() || last.size != size || last.generation != generation) {
    last = {regions.data(), size, generation, window_->locate(regions.data(), size)};
  }
  return last.place;
}

/// `peer` is known to be in this operation or past it. One long past it has compared its entry with
/// ours.
void Collective::check_entry(Rank peer) const {
  const std::optional<Entry> theirs = entry_of(peer);
  const bool gathers =
      recipe_->problem.operation == Operation::kGather && self_ == recipe_->problem.root;
  if (!theirs || recipe_->problem.counts.empty() || !gathers) return;
  const Elements expected = recipe_->problem.counts[static_cast<std::size_t>(peer)];
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
  const schedule::Problem& problem = recipe_->problem;
  const bool has_input = input || input_size(problem, rank) == Elements(0);
  const bool has_output = output || output_size(problem, rank) == Elements(0);
  if (recipe_->decides != Decides::kRoot) return has_input && has_output;
  return problem.operation == Operation::kGather ? has_output : has_input;
}

bool Collective::find_peer_buffers() {
  if (recipe_->decides == Decides::kRoot) return find_buffers_of(recipe_->problem.root);
  for (int i = 0; i < window_->ranks(); ++i) {
    if (!find_buffers_of(window_->first() + i)) return false;
  }
  return true;
}

bool Collective::find_buffers_of(Rank rank) {
  if (rank == self_) return is_registered(own_entry_.input, own_entry_.output, rank);
  const std::optional<std::uint64_t> word = walk_.place_of(rank);
  if (!word) return false;  // it has gone on, as nobody does whose memory others touch
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
    places_.set(space, rank, window_->address(rank, offset, bytes_of(size, places_.dtype())));
  };
  if (input) find(Space::kInput, *input, input_size(recipe_->problem, rank));
  if (output) find(Space::kOutput, *output, output_size(recipe_->problem, rank));
  return is_registered(input, output, rank);
}

void Collective::start_walk(Access access) {
  phase_ = Phase::kWalking;
  Walk::Done done;
  if (access == Access::kRegistered) {
    done.steps = meeting_steps(recipe_->decides);
  } else if (recipe_->decides != Decides::kNobody) {
    done.signals = 1;
  }
  walk_.begin(*recipe_, book_.part(*recipe_, access), places_, done);
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
    if (is_near ? last >= fingerprint().sequence : walk_.heard_from(rank)) {
      text += "has entered the operation";
    } else if (is_near) {
      text += last == 0 ? "has entered no operation of the group yet"
                        : fmt::format("has not come: the last that it entered was #{}", last);
    } else {
      text += "has not been heard of in this operation";
    }
    const std::string presence = transport::describe(transport_.presence(rank));
    if (!presence.empty()) text += fmt::format(", and {}", presence);
  }
  return text;
}

}  // namespace peal::engine
