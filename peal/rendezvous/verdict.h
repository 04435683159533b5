// How a meeting, or the making of a group, went: the same for all ranks that ask. The first to fail
// says why, in the store, and leaves when the others can have heard of it: so whoever sees a rank
// leave knows what made it leave.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/rendezvous/contact.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Nothing means well.
using Verdict = std::optional<Error>;

std::string encode(const Verdict& verdict);
/// Errors: mismatch for anything that `encode` did not make.
Verdict decode_verdict(std::string_view bytes);

/// Proposes a verdict; returns the one that counts, the first. Errors: of the store.
Verdict pass(store::Store& store, const Verdict& verdict);

/// How long those who have failed stay for others who have not heard of it: of a loss all are to
/// hear within a second.
inline constexpr Timeout kStayAfterLoss{300};

/// Counts this rank as told, and waits until so many are.
void stay_until_told(store::Store& store, int ranks, Deadline deadline);

/// The last step of a rank that joins a group of `ranks`: waits until all have come so far. So a
/// group is made by all its ranks or by none. While some are missing it calls `look` every 200 ms,
/// which may throw.
/// `group`: the group's part of the store. Errors: what the first rank to fail has said; timeout,
/// which names the missing ranks; of the store; of `look`. After an error the rank calls
/// `agree_on_failure`. Cost: three requests to the store.
void agree_on_success(
    store::Store& group, Rank self, int ranks, Deadline deadline, const Look& look);

/// To be called by a rank of a group of `ranks` that cannot join it, while its connections to the
/// others are still open. Returns the error to throw: its own or, if that only says that others
/// left or did not come, what the first rank to fail has said. Returns nothing if all ranks have
/// joined meanwhile, this one too: then the group is made.
/// `group`: the group's part of the store. Cost: up to kStayAfterLoss and a moment.
Verdict agree_on_failure(store::Store& group, const Error& own, Rank self, int ranks);

/// Throws what a rank has said that cannot join the group, if one has. Errors: of the store.
void check_for_failure(store::Store& group);

}  // namespace peal::rendezvous
