// One collective in the flight recorder, from its beginning to its end: when it got past waiting
// for peers, and which ranks it waited for. `CollectiveLoop` reports progress to it.
#pragma once

#include <cstdint>

#include "peal/base/cycles.h"
#include "peal/engine/fingerprint.h"
#include "peal/observe/group_recorder.h"

namespace peal::native {

/// Threads: one at a time. One that has not been told `done` has failed.
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

  /// The operation cannot go on.
  void blocked() { has_blocked_ = true; }
  /// The operation waits for `rank`: it is about to sleep, or has failed.
  void waits_for(Rank rank) {
    const std::uint64_t now = cycles();
    if (!is_waiting_) since_ = now;
    is_waiting_ = true;
    recorder_.waits_for(place_, rank, waited_);
  }
  /// The operation has gone on.
  void moved() {
    if (is_waiting_) waits_no_more();
    if (!has_blocked_ || has_got_past_) return;
    has_got_past_ = true;
    recorder_.got_past_waiting(place_);
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
  const observe::GroupRecorder::Place place_;
  std::uint64_t waited_ = 0;  // cycles
  std::uint64_t since_ = 0;
  bool has_blocked_ = false;
  bool has_got_past_ = false;
  bool is_waiting_ = false;
  bool is_done_ = false;
};

}  // namespace peal::native
