// Which ranks watch each other by heartbeats. Ranks of one host are lost together when it is, so
// one line between two hosts is enough; and where there are many hosts, each is watched by some of
// them: whoever notices a loss tells everybody. Pure; connect.cpp asks.
#pragma once

#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::transport {

/// Up to so many hosts all watch all; beyond, each watches half as many before and after it in a
/// ring. So a rank's beats cost the same however large the job.
inline constexpr int kWatchedHosts = 32;

/// The ranks that `self` exchanges beats with, ascending. `hosts[r]` is the number of the host of
/// rank r, which are counted from 0 without a gap.
///   Symmetric: if a watches b, b watches a.
///   Complete: between two hosts that watch each other there are lines, to each rank of the host
///   that has more ranks, at least to one of the other.
std::vector<Rank> watched_by(Rank self, std::span<const int> hosts);

}  // namespace peal::transport
