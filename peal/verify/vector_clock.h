// The happens-before order, by vector clocks. Two accesses to the same place must be ordered by it;
// otherwise their order is undefined.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace peal::verify {

/// An independent actor: a rank, or the sender that empties a rank's link to a peer. Numbered from
/// 0.
using Actor = int;

/// A moment in an actor's life. Time 0 is before everything.
struct Event {
  Actor actor = 0;
  std::int64_t time = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

/// The events that happened before, of all actors.
class VectorClock {
 public:
  bool knows(const Event& event) const {
    return event.time == 0 || (index(event) < times_.size() && event.time <= times_[index(event)]);
  }

  void learn(const Event& event) {
    if (index(event) >= times_.size()) times_.resize(index(event) + 1);
    times_[index(event)] = std::max(times_[index(event)], event.time);
  }

  void learn(const VectorClock& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
    for (std::size_t i = 0; i < other.times_.size(); ++i) {
      times_[i] = std::max(times_[i], other.times_[i]);
    }
  }

 private:
  static std::size_t index(const Event& event) { return static_cast<std::size_t>(event.actor); }

  std::vector<std::int64_t> times_;  // by actor; shorter means 0
};

}  // namespace peal::verify
