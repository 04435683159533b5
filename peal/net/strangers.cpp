#include "peal/net/strangers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace peal::net {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);
/// More hosts than that fail in no second unless they are made up, and then none is counted.
constexpr std::size_t kMostHosts = 4096;

/// The host of an address, without the port that the system gave to the connection. All processes
/// of this machine that come to a unix socket are one host.
std::string host_key(const Address& address) { return address.with_port(0).to_string(); }

}  // namespace

Strangers::Strangers(const StrangerLimits& limits, std::string door, Report report)
    : limits_(limits), door_(std::move(door)), report_(std::move(report)) {}

bool Strangers::lets_in(std::size_t half_open, TimePoint now) const {
  return half_open < limits_.half_open && now >= pause_until_;
}

Timeout Strangers::patience(std::size_t half_open) const {
  return half_open < limits_.half_open ? limits_.proof : limits_.proof_in_a_crowd;
}

bool Strangers::is_paused(const Address& from, TimePoint now) const {
  if (failures_.empty() || now - second_ >= kSecond) return false;
  const auto found = failures_.find(host_key(from));
  return found != failures_.end() && found->second >= limits_.failures;
}

void Strangers::hung_up(const Address& from, TimePoint now) {
  if (now - second_ >= kSecond) {
    second_ = now;
    failures_.clear();
  }
  if (failures_.size() < kMostHosts) ++failures_[host_key(from)];
}

void Strangers::dropped(const Address& from, std::string_view why, TimePoint now) {
  hung_up(from, now);
  turned_away(why, now);
}

void Strangers::turned_away(std::string_view why, TimePoint now) {
  ++unreported_;
  if (reported_ != TimePoint{} && now - reported_ < limits_.report_every) return;
  reported_ = now;
  const long count = std::exchange(unreported_, 0);
  const std::string more =
      count > 1 ? fmt::format(", and {} before it since the last report", count - 1) : "";
  report_(Severity::kWarning, fmt::format("dropped a connection to {}: {}{}", door_, why, more));
}

void Strangers::could_not_let_in(TimePoint now) {
  pause_until_ = std::max(pause_until_, now + std::chrono::milliseconds(100));
}

}  // namespace peal::net
