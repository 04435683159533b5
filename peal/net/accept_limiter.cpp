#include "peal/net/accept_limiter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace peal::net {
namespace {

constexpr auto kSecond = std::chrono::seconds(1);
/// More hosts than this fail in one second only if their addresses are forged. Further hosts are
/// then not counted.
constexpr std::size_t kMostHosts = 4096;

/// The host of an address, without the connection's port. All processes that connect to a unix
/// socket count as one host.
std::string host_key(const Address& address) { return address.with_port(0).to_string(); }

}  // namespace

AcceptLimiter::AcceptLimiter(const AcceptLimits& limits, std::string listener, Report report)
    : limits_(limits), listener_(std::move(listener)), report_(std::move(report)) {}

bool AcceptLimiter::may_accept(std::size_t half_open, TimePoint now) const {
  return half_open < limits_.half_open && now >= pause_until_;
}

Timeout AcceptLimiter::proof_timeout(std::size_t half_open) const {
  return half_open < limits_.half_open ? limits_.proof : limits_.proof_in_a_crowd;
}

bool AcceptLimiter::is_paused(const Address& from, TimePoint now) const {
  if (failures_.empty() || now - second_ >= kSecond) return false;
  const auto found = failures_.find(host_key(from));
  return found != failures_.end() && found->second >= limits_.failures;
}

void AcceptLimiter::hung_up(const Address& from, TimePoint now) {
  if (now - second_ >= kSecond) {
    second_ = now;
    failures_.clear();
  }
  const auto host = host_key(from);
  if (failures_.size() < kMostHosts || failures_.contains(host)) ++failures_[host];
}

void AcceptLimiter::dropped(const Address& from, std::string_view why, TimePoint now) {
  hung_up(from, now);
  closed_unread(why, now);
}

void AcceptLimiter::closed_unread(std::string_view why, TimePoint now) {
  ++unreported_;
  if (reported_ != TimePoint{} && now - reported_ < limits_.report_every) return;
  reported_ = now;
  const long count = std::exchange(unreported_, 0);
  const std::string more =
      count > 1 ? fmt::format(", and {} before it since the last report", count - 1) : "";
  report_(fmt::format("dropped a connection to {}: {}{}", listener_, why, more));
}

void AcceptLimiter::accept_failed(TimePoint now) {
  pause_until_ = std::max(pause_until_, now + std::chrono::milliseconds(100));
}

}  // namespace peal::net
