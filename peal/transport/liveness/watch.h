// Which ranks watch each other by heartbeats. Ranks of one host are lost together with it, so one
// line between two hosts is enough. Among many hosts each is watched by some: the rank that notices
// a loss notifies all others. Pure; called by connect.cpp.
#pragma once

#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::transport {

/// Up to this number of other hosts, every host watches all. Beyond it, each host watches half as
/// many before and after it in a ring. So the beats of a rank cost the same in a job of any size.
inline constexpr int kWatchedHosts = 32;

/// The ranks that `self` exchanges beats with, ascending. `hosts[r]` is the number of the host of
/// rank r; hosts are counted from 0 without a gap.
///   Symmetric: if a watches b, b watches a.
///   Complete: between two hosts that watch each other, every rank of the host with more ranks has
///     a line, and at least one rank of the other.
std::vector<Rank> watched_by(Rank self, std::span<const int> hosts);

}  // namespace peal::transport
