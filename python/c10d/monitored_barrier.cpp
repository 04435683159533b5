// monitoredBarrier. Its errors begin with gloo's text, because scripts and torch search for that.
#include "peal/group/monitored_barrier.h"

#include <string>

#include "peal/base/error.h"

#include "python/c10d/backend.h"
#include "python/common/signals.h"

namespace peal::python {
namespace {

std::string in_ms(Timeout timeout) { return c10::str(timeout.count(), " ms"); }

/// gloo's text on rank 0 with wait_all_ranks.
std::string words_for_all(const RanksMissing& error, Timeout timeout) {
  return c10::str("[Rank 0]: Ranks ",
                  c10::Join(", ", error.ranks()),
                  " failed to pass monitoredBarrier in ",
                  in_ms(timeout));
}

/// gloo's text on rank 0 without wait_all_ranks.
std::string words_for_first(const RanksMissing& error, Timeout timeout) {
  const std::string first = c10::str("[Rank 0]: Rank ",
                                     error.ranks().front(),
                                     " failed to pass monitoredBarrier in ",
                                     in_ms(timeout));
  if (timeout > Timeout(0)) return first;
  return c10::str(first, ". Rank 0 timed out in monitoredBarrier after ", in_ms(timeout));
}

/// gloo's text on the other ranks.
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
      all.monitored_barrier({.timeout = timeout});
    } catch (const RanksMissing& error) {
      if (rank_ != 0) throw with_words(words_for(rank_), error);
      throw with_words(
          wait_all_ranks ? words_for_all(error, timeout) : words_for_first(error, timeout), error);
    } catch (const Error& error) {
      if (rank_ == 0 || error.kind() == ErrorKind::kUsage) throw;
      throw with_words(words_for(rank_), error);
    }
  });
}

}  // namespace peal::python
