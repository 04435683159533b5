// Ranks as threads: each runs the same body and returns a result; the main thread asserts.
#pragma once

#include <exception>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/units.h"

namespace peal::testing {

/// Counts the latch down when it goes out of scope, after success and after failure.
class Arrival {
 public:
  explicit Arrival(std::latch& latch) : latch_(latch) {}
  ~Arrival() { latch_.count_down(); }
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

 private:
  std::latch& latch_;
};

/// The outcome of one rank: its result, or its error.
template <class Result>
struct Outcome {
  Result result{};
  std::string error;  // what() of the exception; empty after success
  ErrorKind kind = ErrorKind::kBug;
  ErrorDetails details = {};
};

/// Calls body(rank) on a separate thread for each rank and collects the results.
template <class Body>
auto on_ranks(int ranks, Body body) {
  using Result = decltype(body(Rank{0}));
  std::vector<Outcome<Result>> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&body, &outcome = outcomes[static_cast<std::size_t>(rank)], rank] {
      try {
        outcome.result = body(rank);
      } catch (const Error& error) {
        outcome.error = error.what();
        outcome.kind = error.kind();
        outcome.details = error.details();
      } catch (const std::exception& error) {
        outcome.error = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// The error texts of all ranks, each of which returns a text that is empty on success.
inline std::string complaints(const std::vector<Outcome<std::string>>& outcomes) {
  std::string all;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    for (const std::string& text : {outcomes[rank].result, outcomes[rank].error}) {
      if (!text.empty()) all += "rank " + std::to_string(rank) + ": " + text + "\n";
    }
  }
  return all;
}

}  // namespace peal::testing
