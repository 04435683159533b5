// A group's access to its rank's recorder: converts ranks of the group to ranks of the world.
// Without a recorder every function does nothing, so that callers need not check.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/operation.h"
#include "peal/observe/flight_recorder.h"

namespace peal::observe {

/// Threads: any number at once.
class GroupRecorder final {
 public:
  using Slot = FlightRecorder::Slot;
  using Ending = FlightRecorder::Ending;

  /// `world_ranks`: the world ranks of the group's ranks, in order.
  GroupRecorder(std::shared_ptr<FlightRecorder> recorder,
                std::string_view name,
                std::span<const Rank> world_ranks)
      : recorder_(std::move(recorder)), world_ranks_(world_ranks.begin(), world_ranks.end()) {
    if (recorder_) number_ = recorder_->add_group(name, world_ranks_);
  }

  /// Like the function of the recorder. `kind.root` is a rank of the group; `kind.group` is set
  /// here.
  Slot begin(OperationKind kind, std::uint64_t sequence, Elements count) const noexcept {
    return recorder_ ? recorder_->begin(of_world(kind), sequence, count) : Slot();
  }
  void note(OperationKind kind, std::uint64_t sequence, Elements count) const noexcept {
    if (recorder_) recorder_->note(of_world(kind), sequence, count);
  }
  void note_progress(const Slot& place) const noexcept {
    if (recorder_) recorder_->note_progress(place);
  }
  void waits_for(const Slot& place, Rank rank, std::uint64_t waited) const noexcept {
    if (recorder_) recorder_->waits_for(place, world_rank(rank), waited);
  }
  void has_waited(const Slot& place, std::uint64_t waited) const noexcept {
    if (recorder_) recorder_->has_waited(place, waited);
  }
  void end(const Slot& place, Ending ending) const noexcept {
    if (recorder_) recorder_->end(place, ending);
  }

  void failed(const Error& cause) const noexcept {
    if (recorder_) recorder_->failed(number_, cause);
  }
  /// Records that the rank leaves the group. Only leaving the world is recorded.
  void left(Departure departure) const noexcept {
    if (recorder_ && number_ == 0) recorder_->left(departure);
  }

  /// As FlightRecorder::current; empty without a recorder.
  std::string current() const { return recorder_ ? recorder_->current(number_) : ""; }
  /// The names in flight, if the group has operations by name; otherwise `operation`. For errors.
  std::string in_words(std::string operation) const {
    std::string names = recorder_ ? recorder_->names().in_flight(number_) : "";
    return names.empty() ? operation : names;
  }

  std::uint8_t number() const { return number_; }

  const std::shared_ptr<FlightRecorder>& recorder() const { return recorder_; }

 private:
  OperationKind of_world(OperationKind kind) const noexcept {
    kind.group = number_;
    if (kind.root != kAnySource) kind.root = world_rank(kind.root);
    return kind;
  }
  Rank world_rank(Rank rank) const noexcept { return world_ranks_[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<FlightRecorder> recorder_;
  std::vector<Rank> world_ranks_;
  std::uint8_t number_ = 0;
};

}  // namespace peal::observe
