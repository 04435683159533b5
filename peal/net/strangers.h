// What whoever listens makes of those who connect and cannot prove the job's secret: how many may
// be at the door and for how long, how often they may fail, and what is said of them. Pure: time
// comes as an argument. Used by the store's server and by the ranks while a group connects, so
// that all doors of a job are kept alike.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/report.h"

namespace peal::net {

struct StrangerLimits {
  /// Connections that have not proved anything yet. Whoever comes beyond them waits in the system.
  std::size_t half_open = 128;
  /// How long one may take for its proof, and how long where `half_open` are at it.
  Timeout proof = std::chrono::seconds(10);
  Timeout proof_in_a_crowd = std::chrono::seconds(1);
  /// That fail in a second; then nobody new is let in until it is over.
  int failures = 200;
  /// Between two reports.
  Timeout report_every = std::chrono::seconds(10);
};

/// Threads: one at a time.
class Strangers {
 public:
  /// `door` for messages: what strangers connect to.
  Strangers(const StrangerLimits& limits, std::string door, Report report);

  /// Whether one more may come in while `half_open` are unproved.
  bool lets_in(std::size_t half_open, TimePoint now) const;
  /// How long a connection may be unproved while so many are.
  Timeout patience(std::size_t half_open) const;

  /// A connection was dropped before its handshake was over.
  void dropped(std::string_view why, TimePoint now);
  /// Somebody hung up before. That counts, and nothing is said of it: ranks do so, too.
  void hung_up(TimePoint now);

  /// Nobody could be let in, for want of a descriptor: some will close.
  void could_not_let_in(TimePoint now);

  /// Until when nobody is let in, however few are at the door.
  TimePoint pause_until() const { return pause_until_; }

 private:
  StrangerLimits limits_;
  std::string door_;
  Report report_;
  TimePoint second_{};  // when the one began in which failures_ were counted
  int failures_ = 0;
  TimePoint pause_until_{};
  TimePoint reported_{};
  long unreported_ = 0;
};

}  // namespace peal::net
