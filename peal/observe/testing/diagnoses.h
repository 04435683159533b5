// Diagnoses of flights that a test has made.
#pragma once

#include <string>
#include <vector>

#include "peal/observe/testing/flights.h"
#include "peal/observe/why.h"

namespace peal::observe {

using Cause = Diagnosis::Cause;
using State = RankEnd::State;
inline constexpr auto kAllReduce = Operation::kAllReduce;
inline constexpr auto kBarrier = Operation::kBarrier;

inline Diagnosis diagnosis_of(const std::vector<Flight>& flights,
                              const std::vector<RankEnd>& ends = {}) {
  return diagnose(flights, ends);
}

/// A rank that has done an all_reduce and failed in a second one, which began at 20 ms.
inline FlightOf fails(Rank rank, int ranks, int at, ErrorKind kind, const std::string& text = "") {
  return FlightOf(rank, ranks).did(kAllReduce, 10, 15).failed_in(kAllReduce, 20, at, kind, text);
}

}  // namespace peal::observe
