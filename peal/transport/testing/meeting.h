// For tests of how ranks connect: ranks with open transports, which a test may change before they
// connect.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/transport/link/connect.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport::testing {

inline ConnectOptions options_of(Rank rank,
                                 int size,
                                 TransportChoice choice = TransportChoice::kAuto) {
  return {.rank = rank,
          .size = size,
          .choice = choice,
          .listen_on = {net::Address::parse("127.0.0.1:0")},
          .arena = 16_MiB};
}

/// The result of a rank's connect.
struct Outcome {
  std::unique_ptr<Transport> transport;
  std::optional<Error> error;
  Duration took{};
};

/// Ranks that are open and not yet connected. A test may change each of them before.
class Meeting {
 public:
  explicit Meeting(const std::vector<ConnectOptions>& options) {
    for (const ConnectOptions& each : options) {
      pending_.push_back(open(each));
      contacts_.push_back(pending_.back()->contact());
    }
  }

  std::unique_ptr<PendingTransport>& pending(Rank rank) {
    return pending_[static_cast<std::size_t>(rank)];
  }
  Contact& contact(Rank rank) { return contacts_[static_cast<std::size_t>(rank)]; }

  /// Connects the ranks that are still there. A rank that fails is destroyed at once, as a process
  /// would be.
  std::vector<Outcome> connect(Timeout timeout = std::chrono::minutes(10)) {
    return run_ranks(static_cast<int>(pending_.size()), [&](Rank rank) {
      Outcome outcome;
      if (!pending(rank)) return outcome;
      const TimePoint begin = Clock::now();
      try {
        outcome.transport = pending(rank)->connect(contacts_, Deadline::after(timeout));
      } catch (const Error& error) {
        outcome.error = error;
        pending(rank).reset();
      }
      outcome.took = Clock::now() - begin;
      return outcome;
    });
  }

 private:
  std::vector<std::unique_ptr<PendingTransport>> pending_;
  std::vector<Contact> contacts_;
};

/// Collects the reports of a rank. Any thread may report.
class Reports {
 public:
  Report sink() {
    return [this](std::string_view message) {
      all_.update([&](auto& all) { all.emplace_back(message); });
    };
  }
  std::vector<std::string> all() {
    return all_.with([](const auto& all) { return all; });
  }
  /// Waits for a report; returns whether one came.
  bool wait(Deadline deadline) {
    return all_.wait(
        deadline, [](const auto& all) { return !all.empty(); }, [](const auto&) {});
  }

 private:
  Guarded<std::vector<std::string>> all_;
};

inline std::vector<ConnectOptions> options_of_all(int size,
                                                  TransportChoice choice = TransportChoice::kAuto) {
  std::vector<ConnectOptions> all;
  for (Rank rank = 0; rank < size; ++rank) all.push_back(options_of(rank, size, choice));
  return all;
}

}  // namespace peal::transport::testing
