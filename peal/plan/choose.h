// Which algorithm is best for what: one table, to be read by people.
#pragma once

#include <string>

namespace peal::plan {

/// The table that `choose` (plan.h) goes by, one line a row:
///   "all_reduce, several hosts, up to 256 KiB, 2 to 4 ranks: pairwise"
std::string describe_choices();

}  // namespace peal::plan
