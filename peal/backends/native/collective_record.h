// One collective in the flight recorder, from begin to end: when all peers had arrived, and which
// peer it waited for long. `CollectiveLoop` reports the progress of the execution.
#pragma once

#include <cstdint>

#include "peal/engine/fingerprint.h"
#include "peal/observe/group_recorder.h"
#include "peal/system/cycles.h"

namespace peal::native {

/// Threads: one at a time. Without a call of `done` the collective has failed.
class CollectiveRecord final {
 public:
  CollectiveRecord(const observe::GroupRecorder& recorder, const engine::Fingerprint& fingerprint)
      : recorder_(recorder),
        place_(recorder.begin({.operation = fingerprint.operation,
                               .dtype = fingerprint.dtype,
                               .reduce = fingerprint.reduce,
                               .algorithm = fingerprint.algorithm,
                               .root = fingerprint.root},
                              fingerprint.sequence,
                              fingerprint.count)) {}
  ~CollectiveRecord() {
    if (is_waiting_) waits_no_more();
    recorder_.end(place_, is_done_ ? Ending::kWell : Ending::kFailed);
  }
  CollectiveRecord(const CollectiveRecord&) = delete;
  CollectiveRecord& operator=(const CollectiveRecord&) = delete;

  /// The execution cannot go on.
  void blocked() { has_blocked_ = true; }
  /// The execution waits for `rank`: it is about to sleep, or has failed.
  void waits_for(Rank rank) {
    const std::uint64_t now = cycles();
    if (!is_waiting_) since_ = now;
    is_waiting_ = true;
    recorder_.waits_for(place_, rank, waited_);
  }
  /// The execution makes progress again.
  void moved() {
    if (is_waiting_) waits_no_more();
    if (!has_blocked_ || has_got_past_) return;
    has_got_past_ = true;
    recorder_.note_progress(place_);
  }
  void done() { is_done_ = true; }

 private:
  using Ending = observe::GroupRecorder::Ending;

  void waits_no_more() {
    is_waiting_ = false;
    waited_ += cycles() - since_;
    recorder_.has_waited(place_, waited_);
  }

  const observe::GroupRecorder& recorder_;
  const observe::GroupRecorder::Slot place_;
  std::uint64_t waited_ = 0;  // cycles
  std::uint64_t since_ = 0;
  bool has_blocked_ = false;
  bool has_got_past_ = false;
  bool is_waiting_ = false;
  bool is_done_ = false;
};

}  // namespace peal::native
