// Limits a listener's connections that have not proved the job's secret (strangers): how many may
// be half open and for how long, how often an address may fail, and what is reported. Pure: time is
// an argument. Used by the store's server, and by the ranks while a group connects, so that all
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

struct AcceptLimits {
  /// How many connections may be without a proof. Further ones wait in the system's queue.
  std::size_t half_open = 128;
  /// How long a connection may take for its proof: usually, and while `half_open` have no proof.
  Timeout proof = std::chrono::seconds(10);
  Timeout proof_in_a_crowd = std::chrono::seconds(1);
  /// The number of failures of one address within a second. After that its connections are closed
  /// unread until the second is over; a rank there retries. Other addresses are unaffected.
  int failures = 200;
  /// The time between two reports.
  Timeout report_every = std::chrono::seconds(10);
};

/// Threads: one at a time.
class AcceptLimiter {
 public:
  /// `listener` names the listener in messages: "the job's store".
  AcceptLimiter(const AcceptLimits& limits, std::string listener, Report report);

  /// Whether the listener may accept one more connection while `half_open` are unproved.
  bool may_accept(std::size_t half_open, TimePoint now) const;
  /// Whether connections from this address must be closed unread.
  bool is_paused(const Address& from, TimePoint now) const;
  /// How long a connection may be unproved while `half_open` are.
  Timeout proof_timeout(std::size_t half_open) const;

  /// A connection was dropped before its handshake was done. Reported, and counts against its
  /// address.
  void dropped(const Address& from, std::string_view why, TimePoint now);
  /// The other end closed a connection before its handshake was done. Counts against its address.
  /// Not reported, because ranks may do so too.
  void hung_up(const Address& from, TimePoint now);
  /// A connection was closed before any byte of it was read. Reported, but counts against no
  /// address.
  void closed_unread(std::string_view why, TimePoint now);

  /// No connection could be accepted, because descriptors or memory ran out. Pauses the listener
  /// shortly, until other connections have closed.
  void accept_failed(TimePoint now);

  /// Until when no connection is accepted, even if few are half open.
  TimePoint pause_until() const { return pause_until_; }

 private:
  AcceptLimits limits_;
  std::string listener_;
  Report report_;
  TimePoint second_{};                   // the beginning of the second that failures_ counts
  std::map<std::string, int> failures_;  // by host
  TimePoint pause_until_{};
  TimePoint reported_{};
  long unreported_ = 0;
};

}  // namespace peal::net
