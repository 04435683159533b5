// Waiting in the store for something from each of several ranks, so that a wait in vain says who is
// missing. Used by the meeting, by contacts and by
// verdicts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Where a rank leaves its mark: the prefix and its number.
std::string key_of_rank(std::string_view prefix, Rank rank);

/// Waits for the marks of all `ranks`. Errors: absence of those who left none; of the store.
void await_ranks(store::Store& store,
                 std::string_view prefix,
                 std::span<const Rank> ranks,
                 std::string_view did_what,
                 std::string_view advice,
                 Deadline deadline);

/// What to do about ranks that were not heard of, and about those that were.
inline constexpr std::string_view kLookAtTheirStart =
    "look whether they were started and what they said";
inline constexpr std::string_view kLookWhatBecameOfThem =
    "look whether they are stopped or have ended, and what they said";

/// Those of `ranks` whose mark is not there now.
std::vector<Rank> absent_ranks(store::Store& store,
                               std::string_view prefix,
                               std::span<const Rank> ranks);

/// Error(timeout) for a store that does not answer. `timeout`: of the last call. Ask `answers()`
/// before any other call: calls without a deadline wait for the store's own timeout.
Error silence(const Error& timeout);

/// timeout: "<n> of <all> ranks <did what>: rank <numbers>; <advice>".
Error absence(std::span<const Rank> absent,
              std::size_t all,
              std::string_view did_what,
              std::string_view advice);

}  // namespace peal::rendezvous
