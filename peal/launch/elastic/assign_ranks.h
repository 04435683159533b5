// The ranks of the workers of a round. Pure. Called by `decide`.
#pragma once

#include <vector>

#include "peal/launch/elastic/state.h"

namespace peal::launch::elastic {

/// The members of the round after `state.round`.
///   Hosts: those with workers of the current round come first, in the order of their lowest ranks;
///     then the others, the oldest first. The ranks of a host follow each other.
///   Inside a host: workers of the current round in the order of their ranks, then the others by
///     slot.
/// So workers that stay keep their order, rank 0 is one of them if there is any, and old hosts keep
/// low ranks. The local rank counts the slots of the host that are in use.
/// `workers`: numbers of living workers.
std::vector<Member> assign_ranks(const State& state, const std::vector<int>& workers);

}  // namespace peal::launch::elastic
