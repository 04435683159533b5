#include "peal/group/monitored_barrier.h"

#include <array>
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

WorkPtr start_token(Backend& backend,
                    Operation operation,
                    std::uint8_t& token,
                    Rank peer,
                    Tag tag,
                    Timeout timeout) {
  const std::array<ConstBuffer, 1> in = {ConstBuffer(&token, Elements(1), DType::kU8)};
  const std::array<Buffer, 1> out = {Buffer(&token, Elements(1), DType::kU8)};
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
  return backend.start({&request, 1}, timeout);
}

/// Waits for every rank's token and returns those that did not come.
std::vector<Rank> missing_after(Backend& backend,
                                std::vector<std::uint8_t>& tokens,
                                Timeout timeout) {
  const Deadline deadline = Deadline::after(timeout);
  std::vector<WorkPtr> arrivals(tokens.size());
  for (Rank r = 1; r < backend.size(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    arrivals[i] =
        start_token(backend, Operation::kRecv, tokens[i], r, kArrival, timeout + 2 * kGrace);
  }
  std::vector<Rank> missing;
  for (Rank r = 1; r < backend.size(); ++r) {
    const WorkPtr& arrival = arrivals[static_cast<std::size_t>(r)];
    try {
      arrival->wait(deadline.left());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout || arrival->is_completed()) throw;
      missing.push_back(r);
    }
  }
  return missing;
}

void release_all(Backend& backend, const std::string& group, Timeout timeout) {
  std::vector<std::uint8_t> tokens(static_cast<std::size_t>(backend.size()));
  if (const auto missing = missing_after(backend, tokens, timeout); !missing.empty()) {
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
  std::vector<WorkPtr> releases;
  for (Rank r = 1; r < backend.size(); ++r) {
    releases.push_back(start_token(
        backend, Operation::kSend, tokens[static_cast<std::size_t>(r)], r, kRelease, timeout));
  }
  for (const WorkPtr& release : releases) release->wait();
}

}  // namespace

void monitored_barrier(Backend& backend, const std::string& group, Timeout timeout) {
  if (backend.rank() == 0) {
    release_all(backend, group, timeout);
    return;
  }
  std::uint8_t token = 0;
  start_token(backend, Operation::kSend, token, 0, kArrival, timeout + kGrace)->wait();
  start_token(backend, Operation::kRecv, token, 0, kRelease, timeout + kGrace)->wait();
}

}  // namespace peal
