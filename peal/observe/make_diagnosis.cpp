#include "peal/observe/make_diagnosis.h"

#include <utility>

#include <fmt/format.h>

#include "peal/observe/evidence.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// Names the ranks that still run or are stopped, if the job is not over:
/// "; ranks 0 and 2 run now, rank 1 is stopped (suspended by a signal)".
std::string at_present(const JobView& job) {
  std::vector<Rank> running, still;
  for (const RankView& view : job.ranks()) {
    if (view.end == nullptr || (view.flight != nullptr && view.flight->departure)) continue;
    if (view.end->state == RankEnd::State::kRuns) running.push_back(view.rank);
    if (view.end->state == RankEnd::State::kStopped) still.push_back(view.rank);
  }
  std::string text;
  if (!running.empty()) {
    text = fmt::format("; {} {} now", ranks_text(running), running.size() == 1 ? "runs" : "run");
  }
  if (still.empty()) return text;
  return text + (text.empty() ? "; " : ", ") + ranks_text(still) +
         (still.size() == 1 ? " is stopped (suspended by a signal)"
                            : " are stopped (suspended by a signal)");
}

}  // namespace

Diagnosis make_diagnosis(const JobView& job,
                         Diagnosis::Cause cause,
                         std::vector<Rank> ranks,
                         const std::string& text) {
  Diagnosis diagnosis{.cause = cause,
                      .ranks = std::move(ranks),
                      .sentence = as_sentence(text + at_present(job)),
                      .evidence = {}};
  diagnosis.evidence = evidence(job, diagnosis.ranks);
  return diagnosis;
}

}  // namespace peal::observe
