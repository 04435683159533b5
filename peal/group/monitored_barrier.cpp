#include "peal/group/monitored_barrier.h"

#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {
namespace {

/// Users' tags count from 0, so these are never theirs.
constexpr Tag kArrival{-1};
constexpr Tag kRelease{-2};

/// How much longer than the timeout the ranks stay to hear rank 0's verdict.
constexpr Timeout kGrace = std::chrono::seconds(1);

/// Messages of one byte to or from each rank. Their memory lives until the last of them has ended,
/// whatever is thrown meanwhile.
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
        // Ended, which is all that matters here.
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

  Work& of(Rank peer) { return *works_[static_cast<std::size_t>(peer)]; }

 private:
  Backend& backend_;
  std::vector<std::uint8_t> bytes_;
  std::vector<WorkPtr> works_;
};

/// Waits for every rank's token and returns those that did not come.
std::vector<Rank> missing_after(Tokens& arrivals, int ranks, Timeout timeout) {
  const Deadline deadline = Deadline::after(timeout);
  for (Rank r = 1; r < ranks; ++r) {
    arrivals.start(Operation::kRecv, r, kArrival, timeout + 2 * kGrace);
  }
  std::vector<Rank> missing;
  for (Rank r = 1; r < ranks; ++r) {
    Work& arrival = arrivals.of(r);
    try {
      arrival.wait(deadline.left());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout || arrival.is_completed()) throw;
      missing.push_back(r);
    }
  }
  return missing;
}

void release_all(Backend& backend, const std::string& group, Timeout timeout) {
  Tokens arrivals(backend);
  if (const auto missing = missing_after(arrivals, backend.size(), timeout); !missing.empty()) {
    const Error error(
        ErrorKind::kTimeout,
        fmt::format("monitored_barrier of the group {}: rank{} {} did not come within {} s",
                    group,
                    missing.size() == 1 ? "" : "s",
                    fmt::join(missing, ", "),
                    static_cast<double>(timeout.count()) / 1000.0));
    backend.abort(error);
    throw error;
  }
  Tokens releases(backend);
  for (Rank r = 1; r < backend.size(); ++r) {
    releases.start(Operation::kSend, r, kRelease, timeout);
  }
  for (Rank r = 1; r < backend.size(); ++r) releases.of(r).wait();
}

}  // namespace

void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout) {
  if (backend.rank() == 0) {
    release_all(backend, group, timeout);
    return;
  }
  Tokens tokens(backend);
  tokens.start(Operation::kSend, 0, kArrival, timeout + kGrace);
  tokens.of(0).wait();
  tokens.start(Operation::kRecv, 0, kRelease, timeout + kGrace);
  tokens.of(0).wait();
}

}  // namespace peal
