// Opens the store that all ranks share, at the place where they meet. Used by `meet`.
#pragma once

#include <array>
#include <memory>

#include "peal/base/units.h"
#include "peal/rendezvous/meet_context.h"
#include "peal/rendezvous/store_location.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Rank 0, which serves the store, as the list of ranks that EndedRanks and error texts take.
inline constexpr std::array<Rank, 1> kRank0 = {0};

/// Opens the store at `place`. Rank 0 serves the store until rank 0 releases it. The release waits
/// up to 0.3 s for the other ranks to release the store too. The other ranks retry until rank 0
/// serves.
/// If a store of this job is already served at rank 0's port, rank 0 joins it. The meeting then
/// detects a duplicate rank, or a process that has met here before.
/// Every rank retries an unknown host name until the deadline.
/// Errors: usage (an unknown host; an address of another machine; another secret; another program
///   at the port), resource (a taken port), peer_lost (rank 0 has ended),
///   timeout (rank 0's address or the name service does not answer; the file serves another job).
/// Throws Interrupted.
std::shared_ptr<store::Store> open_store(const StoreLocation& place, const MeetContext& context);

}  // namespace peal::rendezvous
