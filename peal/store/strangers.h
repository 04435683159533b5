// What a server makes of those who connect and cannot prove the job's secret: how often they may
// try, and what is said of them. Pure: time comes as an argument. Used by TcpStoreServer.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/report.h"

namespace peal::store {

/// Where a server says in its own table whom it has dropped (`Strangers::summary`), for clients
/// that wait in vain; nothing is there while that is nobody.
inline constexpr std::string_view kStrangersKey = "strangers";

struct StrangerLimits {
  /// In a second; then nobody new is let in until it is over. The connections of whoever comes
  /// meanwhile wait in the system.
  int attempts = 200;
  /// Between two reports.
  Timeout report_every = std::chrono::seconds(10);
};

/// Threads: one at a time.
class Strangers {
 public:
  Strangers(const StrangerLimits& limits, Report report)
      : limits_(limits), report_(std::move(report)) {}

  /// A connection was dropped that had proved nothing.
  void dropped(std::string_view why, TimePoint now);

  /// "2 connections to the job's store were dropped, the last one: <why>"; of one or more.
  std::string summary() const;

  /// Until when nobody new is to be let in.
  TimePoint pause_until() const { return pause_until_; }

 private:
  StrangerLimits limits_;
  Report report_;
  TimePoint second_{};  // when the one began in which attempts_ were counted
  int attempts_ = 0;
  TimePoint pause_until_{};
  TimePoint reported_{};
  long unreported_ = 0;
  long all_ = 0;
  std::string last_;  // why the last one was dropped
};

}  // namespace peal::store
