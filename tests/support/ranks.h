// Ranks as threads: each runs the same body and returns what it found; the main thread judges.
#pragma once

#include <exception>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/units.h"

namespace peal::testing {

/// Counts the latch down when it goes out of scope, whether the rank ended well or not.
class Arrival {
 public:
  explicit Arrival(std::latch& latch) : latch_(latch) {}
  ~Arrival() { latch_.count_down(); }
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

 private:
  std::latch& latch_;
};

/// What one rank came to: its result, or the error that it ended with.
template <class Result>
struct Outcome {
  Result result{};
  std::string error;  // what() of the exception; empty if it ended well
  ErrorKind kind = ErrorKind::kBug;
};

/// Calls body(rank) on a thread of its own for each rank and collects what they return.
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
      } catch (const std::exception& error) {
        outcome.error = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// What the ranks complain of, where each returns a text that is empty if all is well.
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
