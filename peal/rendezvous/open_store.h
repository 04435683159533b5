// From the place where the ranks meet to a store that all of them share. Used by `meet`.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/config.h"
#include "peal/base/interrupt.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/place.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Rank 0, which serves the store, as the list of ranks that EndedRanks and error texts take.
inline constexpr std::array<Rank, 1> kRank0 = {0};

/// Rank 0 serves the store for as long as it keeps it, and when it lets go waits up to 0.3 s for
/// the others to let go too; the others come patiently. A store that is served already at a port
/// that rank 0 should serve is joined: the meeting then finds a rank that was given twice, or one
/// that was here before.
/// A name that is not known yet is asked for again until the deadline, by every rank.
/// Errors: usage (an unknown host, an address of another machine, another secret, a stranger at the
/// port), resource (a taken port), peer_lost (rank 0 has ended), timeout (nobody answers where
/// rank 0 is to serve, the file serves another job, or the name service does not answer). Throws
/// Interrupted.
std::shared_ptr<store::Store> open_store(const Place& place,
                                         const Launch& launch,
                                         const Config& config,
                                         const EndedRanks& ended,
                                         Deadline deadline,
                                         const Report& report,
                                         const Interrupt& interrupt = {});

}  // namespace peal::rendezvous
