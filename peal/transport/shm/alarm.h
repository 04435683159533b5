// Wakes a thread that sleeps for the channels of many groups at once. The peers of all groups of
// this process ring one event. The end of a peer's process also wakes the thread. mail_thread.h
// sleeps on it.
#pragma once

#include <poll.h>

#include <memory>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/transport/liveness/peer_process.h"
#include "peal/transport/shm/doorbell.h"

namespace peal::transport {

/// Threads: any, but `wait` from one at a time.
class Alarm {
 public:
  /// Throws Error(resource).
  Alarm() : event_(std::make_shared<Event>()) {}

  const std::shared_ptr<Event>& event() const { return event_; }
  /// From now on the end of the process ends a `wait`, as long as the caller keeps `process`.
  void watch(const std::shared_ptr<PeerProcess>& process);

  /// Sleeps until the event is rung, a process ends, or the deadline passes. Returns false if the
  /// deadline has passed. Cost: a poll(2) of the event and of each process.
  bool wait(Deadline deadline);

 private:
  void list_processes();

  std::shared_ptr<Event> event_;
  // The processes whose end has not made a `wait` return yet.
  Guarded<std::vector<std::weak_ptr<PeerProcess>>> watched_;

  // Used by the waiting thread.
  std::vector<std::shared_ptr<PeerProcess>> processes_;
  std::vector<pollfd> entries_;
};

}  // namespace peal::transport
