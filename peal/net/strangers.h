// The limits of a listener against connections that do not prove the job's secret: how many may be
// half open and for how long, how often an address may fail, and what is reported. Pure: time comes
// as an argument. Used by the store's server and by the ranks while a group connects, so that all
// listeners of a job behave alike.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/report.h"
#include "peal/net/address.h"

namespace peal::net {

struct StrangerLimits {
  /// Connections that have not proved anything yet. Whoever comes beyond them waits in the system.
  std::size_t half_open = 128;
  /// How long one may take for its proof, and how long where `half_open` are at it.
  Timeout proof = std::chrono::seconds(10);
  Timeout proof_in_a_crowd = std::chrono::seconds(1);
  /// Failures of one address within a second. Its connections are closed unheard from then until
  /// the second is over; a rank there dials again. Other addresses are unaffected.
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
  /// Whether connections from this address are to be closed unheard.
  bool is_paused(const Address& from, TimePoint now) const;
  /// How long a connection may be unproved while so many are.
  Timeout patience(std::size_t half_open) const;

  /// A connection was dropped before its handshake was over. Counts against its address.
  void dropped(const Address& from, std::string_view why, TimePoint now);
  /// The other end hung up before. Counts against its address, and is not reported: ranks do so,
  /// too.
  void hung_up(const Address& from, TimePoint now);
  /// A connection was closed before any byte of it was read. Is reported, and counts against no
  /// address.
  void turned_away(std::string_view why, TimePoint now);

  /// No connection could be accepted, for want of a descriptor: some will close.
  void could_not_let_in(TimePoint now);

  /// Until when no connection is accepted, however few are half open.
  TimePoint pause_until() const { return pause_until_; }

 private:
  StrangerLimits limits_;
  std::string door_;
  Report report_;
  TimePoint second_{};                   // the begin of the second of failures_
  std::map<std::string, int> failures_;  // by host
  TimePoint pause_until_{};
  TimePoint reported_{};
  long unreported_ = 0;
};

}  // namespace peal::net
