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

/// To be called by a rank of a group of `ranks` that cannot join it, while its connections to the
/// others are still open. Returns what it should throw: its own error, or, where it knows no more
/// than that others left or did not come, what the first of them to fail has said.
/// `group`: the group's part of the store. Cost: up to kStayAfterLoss and a moment.
Error agree_on_failure(store::Store& group, const Error& own, Rank self, int ranks);

/// Throws what a rank has said that cannot join the group, if one has. Errors: of the store.
void check_for_failure(store::Store& group);

}  // namespace peal::rendezvous
