// Detects the end of a peer's process on this host. All groups that two processes have in common
// share one object. Used by the channels over rings, and by the alarm that watches the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "peal/system/fd.h"

namespace peal::transport {

/// Threads: any number at once.
class PeerProcess {
 public:
  /// `sign`: a descriptor that poll(2) calls readable or hung up once the process has ended,
  /// however it ended. `pid` as this process sees it; 0 if this process cannot see it.
  PeerProcess(Fd sign, std::int64_t pid) : sign_(std::move(sign)), pid_(pid) {}

  int sign() const { return sign_.get(); }
  std::int64_t pid() const { return pid_; }

  /// Whether a thread has noticed that the process has ended. Cost: a load.
  bool is_known_to_have_ended() const noexcept { return ended_.load(); }
  /// Whether the process has ended. Cost: a system call, unless the end is known.
  bool has_ended() noexcept;
  /// Called by a thread that has noticed the end in poll(2).
  void note_end() noexcept { ended_.store(true); }

 private:
  Fd sign_;
  std::int64_t pid_;
  std::atomic<bool> ended_ = false;
};

}  // namespace peal::transport
