// A group's side of its rank's recorder: it speaks of the group's ranks where the record speaks of
// the world's. Where there is no recorder it does nothing, so that its callers need not ask.
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
  using Place = FlightRecorder::Place;
  using Ending = FlightRecorder::Ending;

  /// `world_ranks`: of the group's ranks, in order.
  GroupRecorder(std::shared_ptr<FlightRecorder> recorder,
                std::string_view name,
                std::span<const Rank> world_ranks)
      : recorder_(std::move(recorder)), world_ranks_(world_ranks.begin(), world_ranks.end()) {
    if (recorder_) number_ = recorder_->add_group(name, world_ranks_);
  }

  /// As the recorder's, with `kind.root` in the group; its group is filled in here.
  Place begin(OperationKind kind, std::uint64_t sequence, Elements count) const noexcept {
    return recorder_ ? recorder_->begin(of_world(kind), sequence, count) : Place();
  }
  void note(OperationKind kind, std::uint64_t sequence, Elements count) const noexcept {
    if (recorder_) recorder_->note(of_world(kind), sequence, count);
  }
  void got_past_waiting(const Place& place) const noexcept {
    if (recorder_) recorder_->got_past_waiting(place);
  }
  void waits_for(const Place& place, Rank rank, std::uint64_t waited) const noexcept {
    if (recorder_) recorder_->waits_for(place, world_rank(rank), waited);
  }
  void has_waited(const Place& place, std::uint64_t waited) const noexcept {
    if (recorder_) recorder_->has_waited(place, waited);
  }
  void end(const Place& place, Ending ending) const noexcept {
    if (recorder_) recorder_->end(place, ending);
  }

  void failed(const Error& cause) const noexcept {
    if (recorder_) recorder_->failed(number_, cause);
  }
  /// The rank leaves this group: that is recorded of the world alone.
  void left(Departure departure) const noexcept {
    if (recorder_ && number_ == 0) recorder_->left(departure);
  }

  /// The latest of this group that has begun and not ended; empty if there is none, or no recorder.
  std::string current() const { return recorder_ ? recorder_->current(number_) : ""; }

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
