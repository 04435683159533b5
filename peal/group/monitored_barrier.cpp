#include "peal/group/monitored_barrier.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/interrupt.h"

namespace peal {
namespace {

/// The tags of users count from 0, so users never use these tags.
constexpr Tag kArrival{-1};
constexpr Tag kRelease{-2};
constexpr Tag kPresence{-3};  // of rank 0

/// How much longer than the timeout, counted from rank 0's arrival, the ranks wait for rank 0 to
/// report the missing ranks.
constexpr Timeout kGrace = std::chrono::seconds(1);

Timeout with_grace(Timeout timeout) {
  return timeout > Timeout::max() - kGrace ? timeout : timeout + kGrace;
}

/// Messages of one byte to or from each rank. Their memory lives until the last of them has ended,
/// also after an exception.
class Tokens {
 public:
  explicit Tokens(Backend& backend)
      : backend_(backend),
        bytes_(static_cast<std::size_t>(backend.size())),
        works_(static_cast<std::size_t>(backend.size())) {}

  ~Tokens() {
    for (const WorkPtr& work : works_) {
      try {
        if (work) work->wait();
      } catch (const std::exception&) {
        // The message has ended; its error does not matter here.
      }
    }
  }

  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  void start(Operation operation, Rank peer, Tag tag, Timeout timeout) {
    std::uint8_t& byte = bytes_[static_cast<std::size_t>(peer)];
    const std::array<ConstBuffer, 1> in = {ConstBuffer(&byte, Elements(1), DType::kU8)};
    const std::array<Buffer, 1> out = {Buffer(&byte, Elements(1), DType::kU8)};
    Request request;
    request.operation = operation;
    request.dtype = DType::kU8;
    request.root = peer;
    request.tag = tag;
    request.count = Elements(1);
    if (operation == Operation::kSend) {
      request.input = in;
    } else {
      request.output = out;
    }
    works_[static_cast<std::size_t>(peer)] = backend_.start({&request, 1}, timeout);
  }

  /// Whether the message has ended within the time. Its Work continues.
  bool is_there_within(Rank peer, Timeout timeout) {
    const Deadline deadline = Deadline::after(timeout);
    while (!is_there_at(peer, deadline.within(kInterruptEvery))) {
      if (deadline.passed()) return false;
      backend_.ask_interrupt();
    }
    return true;
  }

  /// Waits until the message has ended. Its own timeout ends the wait.
  void await(Rank peer) {
    while (!is_there_within(peer, kInterruptEvery)) {
    }
  }

 private:
  bool is_there_at(Rank peer, Deadline deadline) {
    Work& work = *works_[static_cast<std::size_t>(peer)];
    try {
      work.wait(deadline.left());
    } catch (const Error& error) {
      if (!work.is_completed()) {
        if (error.kind() == ErrorKind::kTimeout) return false;
        throw;
      }
      work.wait();  // it has ended since; throws its error, if any
    }
    return true;
  }

  Backend& backend_;
  std::vector<std::uint8_t> bytes_;
  std::vector<WorkPtr> works_;
};

RanksMissing ranks_missing(const std::string& group, std::vector<Rank> missing, Timeout timeout) {
  const std::string text =
      fmt::format("monitored_barrier of the group {}: rank{} {} did not come within {} ms",
                  group,
                  missing.size() == 1 ? "" : "s",
                  fmt::join(missing, ", "),
                  timeout.count());
  return {text, std::move(missing)};
}

[[noreturn]] void abort_with(Backend& backend, const RanksMissing& error) {
  backend.abort(error, Departure::kNormal);
  throw error;
}

/// Waits for every rank's message. Returns the ranks whose message did not come.
std::vector<Rank> missing_after(Tokens& arrivals, int ranks, Timeout timeout) {
  const Deadline deadline = Deadline::after(timeout);
  for (Rank r = 1; r < ranks; ++r) {
    arrivals.start(Operation::kRecv, r, kArrival, with_grace(with_grace(timeout)));
  }
  std::vector<Rank> missing;
  for (Rank r = 1; r < ranks; ++r) {
    if (!arrivals.is_there_within(r, deadline.left())) missing.push_back(r);
  }
  return missing;
}

void tell_all(Tokens& tokens, int ranks, Tag tag, Timeout timeout) {
  for (Rank r = 1; r < ranks; ++r) tokens.start(Operation::kSend, r, tag, timeout);
}

/// Rank 0's part: it detects the missing ranks.
void gather_and_release(Backend& backend, const std::string& group, Timeout timeout) {
  const int ranks = backend.size();
  Tokens presences(backend);
  tell_all(presences, ranks, kPresence, with_grace(timeout));
  Tokens arrivals(backend);
  if (auto missing = missing_after(arrivals, ranks, timeout); !missing.empty()) {
    abort_with(backend, ranks_missing(group, std::move(missing), timeout));
  }
  Tokens releases(backend);
  tell_all(releases, ranks, kRelease, with_grace(timeout));
  for (Rank r = 1; r < ranks; ++r) releases.await(r);
}

void arrive_and_wait(Backend& backend, const std::string& group, Timeout timeout) {
  Tokens arrival(backend);
  arrival.start(Operation::kSend, 0, kArrival, with_grace(timeout));
  Tokens presence(backend);
  presence.start(Operation::kRecv, 0, kPresence, with_grace(with_grace(timeout)));
  if (!presence.is_there_within(0, timeout))
    abort_with(backend, ranks_missing(group, {0}, timeout));
  Tokens release(backend);
  release.start(Operation::kRecv, 0, kRelease, with_grace(timeout));
  release.await(0);
}

}  // namespace

void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout) {
  if (backend.rank() == 0) {
    gather_and_release(backend, group, timeout);
  } else {
    arrive_and_wait(backend, group, timeout);
  }
}

}  // namespace peal
