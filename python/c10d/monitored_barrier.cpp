// monitoredBarrier. Its errors begin with gloo's words, for which scripts and torch itself search.
#include "peal/group/monitored_barrier.h"

#include <string>

#include "peal/base/error.h"

#include "python/c10d/backend.h"
#include "python/common/signals.h"

namespace peal::python {
namespace {

std::string in_ms(Timeout timeout) { return c10::str(timeout.count(), " ms"); }

/// What gloo says on rank 0.
std::string words_for(const RanksMissing& error, Timeout timeout, bool wait_all_ranks) {
  const std::vector<Rank>& missing = error.ranks();
  if (wait_all_ranks) {
    return c10::str("[Rank 0]: Ranks ",
                    c10::Join(", ", missing),
                    " failed to pass monitoredBarrier in ",
                    in_ms(timeout));
  }
  const std::string first = c10::str(
      "[Rank 0]: Rank ", missing.front(), " failed to pass monitoredBarrier in ", in_ms(timeout));
  if (timeout > Timeout(0)) return first;
  return c10::str(first, ". Rank 0 timed out in monitoredBarrier after ", in_ms(timeout));
}

/// What gloo says on the other ranks.
std::string words_for(Rank rank) {
  return c10::str("Rank ",
                  rank,
                  " successfully reached monitoredBarrier, but received errors while waiting for "
                  "send/recv from rank 0. Please check rank 0 logs for faulty rank");
}

Error with_words(const std::string& words, const Error& error) {
  return Error(error.kind(), c10::str(words, ". ", error.message()));
}

}  // namespace

void TorchBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const Timeout timeout = resolve(options.timeout);
  ProcessGroup& all = group();
  interruptible([&] {
    try {
      all.monitored_barrier(timeout);
    } catch (const RanksMissing& error) {
      throw with_words(rank_ == 0 ? words_for(error, timeout, wait_all_ranks) : words_for(rank_),
                       error);
    } catch (const Error& error) {
      if (rank_ == 0 || error.kind() == ErrorKind::kUsage) throw;
      throw with_words(words_for(rank_), error);
    }
  });
}

}  // namespace peal::python
