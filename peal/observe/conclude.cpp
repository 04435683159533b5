#include "peal/observe/conclude.h"

#include <utility>

#include "peal/observe/evidence.h"
#include "peal/observe/phrases.h"

namespace peal::observe {

Diagnosis conclude(const JobView& job,
                   Diagnosis::Cause cause,
                   std::vector<Rank> ranks,
                   std::string text) {
  Diagnosis diagnosis{.cause = cause,
                      .ranks = std::move(ranks),
                      .sentence = as_sentence(std::move(text)),
                      .evidence = {}};
  diagnosis.evidence = evidence(job, diagnosis.ranks);
  return diagnosis;
}

}  // namespace peal::observe
