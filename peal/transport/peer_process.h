// The process of a peer on this host, as far as its end matters: one for all groups that two
// processes have in common. Used by the channels over rings, and by the alarm that watches it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "peal/base/fd.h"

namespace peal::transport {

/// Threads: any number at once.
class PeerProcess {
 public:
  /// `sign`: a descriptor that poll(2) calls readable or hung up once the process has ended,
  /// however it ended. `pid` as it is seen from here; 0 where it is not.
  PeerProcess(Fd sign, std::int64_t pid) : sign_(std::move(sign)), pid_(pid) {}

  int sign() const { return sign_.get(); }
  std::int64_t pid() const { return pid_; }

  /// Whether anybody has seen that it has ended. Cost: a load.
  bool is_known_to_have_ended() const noexcept { return ended_.load(); }
  /// Whether it has. Cost: a system call, unless it is known.
  bool has_ended() noexcept;
  /// By whoever has seen it in poll(2).
  void note_end() noexcept { ended_.store(true); }

 private:
  Fd sign_;
  std::int64_t pid_;
  std::atomic<bool> ended_ = false;
};

}  // namespace peal::transport
