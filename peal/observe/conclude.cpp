#include "peal/observe/conclude.h"

#include <utility>

#include <fmt/format.h>

#include "peal/observe/evidence.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// "; ranks 0 and 2 run now, rank 1 stands still (its process is stopped)", of a job that is not
/// over.
std::string at_present(const JobView& job) {
  std::vector<Rank> running, still;
  for (const RankView& view : job.ranks()) {
    if (view.end == nullptr || (view.flight != nullptr && view.flight->departure)) continue;
    if (view.end->fate == RankEnd::Fate::kRuns) running.push_back(view.rank);
    if (view.end->fate == RankEnd::Fate::kStandsStill) still.push_back(view.rank);
  }
  std::string text;
  if (!running.empty()) {
    text = fmt::format("; {} {} now", ranks_text(running), running.size() == 1 ? "runs" : "run");
  }
  if (still.empty()) return text;
  return text + (text.empty() ? "; " : ", ") + ranks_text(still) +
         (still.size() == 1 ? " stands still (its process is stopped)"
                            : " stand still (their processes are stopped)");
}

}  // namespace

Diagnosis conclude(const JobView& job,
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
