// Looks in the store for the marks of several ranks, and makes the errors that name the missing
// ranks. Used by the meeting, by contacts and by meeting results.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// The key under which a rank leaves its mark: the prefix and the rank's number.
std::string key_of_rank(std::string_view prefix, Rank rank);
std::vector<std::string> keys_of_ranks(std::string_view prefix, std::span<const Rank> ranks);

/// How often a rank of a group of `ranks` looks for the marks of the others. Every rank looks at
/// all, so in a large group each looks less often: the store must have time for other work.
Timeout look_every(std::size_t ranks);

/// Advice about ranks that never wrote to the store.
inline constexpr std::string_view kAdviceIfNotStarted =
    "check that they were started, and read their output";
/// Advice about ranks that wrote to the store and then did not go on.
inline constexpr std::string_view kAdviceIfStuck =
    "check whether they are stopped or have ended, and read their output";

/// The ranks of `ranks` that have no mark now.
std::vector<Rank> absent_ranks(store::Store& store,
                               std::string_view prefix,
                               std::span<const Rank> ranks);

/// Error(timeout) for a store that does not answer. `timeout`: of the last call. Ask `answers()`
/// before any other call: calls without a deadline wait for the store's own timeout.
Error store_unresponsive_error(const Error& timeout);

/// "no rank of node 1 came; " for the nodes of which all ranks are absent. Empty if there is no
/// such node, or if `ranks_per_node` is 0.
std::string absent_nodes_text(std::span<const Rank> absent, int ranks_per_node);

/// timeout: "<n> of <all> ranks <did what>: rank <numbers>; <advice>".
Error missing_ranks_error(std::span<const Rank> absent,
                          std::size_t all,
                          std::string_view did_what,
                          std::string_view advice);

}  // namespace peal::rendezvous
