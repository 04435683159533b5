// One end of the connection between the launcher and an agent: frames in both directions, without
// blocking, and heartbeats. Used by agent.cpp and agent_guard.cpp.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/launch/agents/agent_protocol.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

/// How often each side sends a heartbeat if it has sent nothing else.
inline constexpr Timeout kBeatPause{400};

/// The most that a busy peer gets: see AgentLink::patience.
inline constexpr Timeout kMostPatience{10'000};

/// Threads: one.
class AgentLink final {
 public:
  /// Makes the descriptors non-blocking.
  AgentLink(Fd in, Fd out, TimePoint now);

  int in() const { return in_.get(); }
  int out() const { return out_.get(); }
  bool wants_to_write() const { return !queue_.empty(); }
  /// Whether the queue is full: the caller should produce no more frames now.
  bool is_full() const { return queued_ > kFull; }

  void send(FrameKind kind, std::string_view payload = {});
  /// Writes as much as is possible without blocking.
  void write_some();
  /// Reads what is there, at most `kMostRead` bytes.
  void read_some(TimePoint now);
  /// The next frame that was read; heartbeats are not returned. Errors: mismatch.
  std::optional<Frame> try_next();
  /// Reads like `read_some`, but keeps the bytes as text, for the banner.
  std::string read_text(TimePoint now);
  /// Gives back bytes of `read_text` that are not text.
  void unread(std::string_view bytes) { frames_.feed(bytes); }

  /// Whether the peer has closed its end, or the connection is broken.
  bool is_closed() const { return is_closed_; }
  void close();

  /// Sends a heartbeat if one is due.
  void beat(TimePoint now);
  /// How long the peer has been silent. Time in which this process did not run does not count,
  /// because this process could not read then. Call `beat` at least once a second.
  Duration silence(TimePoint now) const { return now - heard_; }
  /// The silence after which the peer is lost: `least`, or four times the longest silence of the
  /// last ten seconds, up to kMostPatience. On a busy host, the peer and the processes that carry
  /// its frames get little CPU time, but the host is not lost.
  Duration patience(Duration least) const {
    return std::max(least, std::min<Duration>(4 * longest_, kMostPatience));
  }
  /// Restarts the measurement of the silence. Call it after a time in which this side did not read.
  void hear(TimePoint now);

 private:
  static constexpr std::size_t kFull = 1 << 20;
  static constexpr std::size_t kMostRead = 1 << 18;

  std::optional<std::string> receive(TimePoint now);
  Duration own_pause(TimePoint now) const;
  void end_silence(TimePoint now);

  Fd in_;
  Fd out_;
  FrameReader frames_;
  std::deque<std::string> queue_;
  std::size_t queued_ = 0;   // bytes in queue_
  std::size_t written_ = 0;  // bytes of the first text that are written
  bool is_closed_ = false;
  TimePoint heard_;
  Duration longest_{};  // of the silences that have ended lately
  TimePoint longest_at_;
  TimePoint sent_;
  TimePoint beat_;  // the last call of `beat`
};

}  // namespace peal::launch::agents
