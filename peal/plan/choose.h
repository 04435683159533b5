// Chooses an algorithm by the first row of a table that fits.
#pragma once

#include "peal/plan/table.h"

namespace peal::plan {

/// The best choices by measurement; choose.cpp lists them.
const Table& built_in_choices();

/// The user's rows, then the built-in ones.
Table tuned(Table rows);

/// The algorithm of the first row that fits the problem and whose algorithm applies. For ranks of
/// one host without such a row, the rows for several hosts follow; finally pairwise, which can do
/// every operation of two or more ranks. Some operations need a stage limit of 2 or more.
/// Uses only what all ranks know, so all ranks with the same table choose the same algorithm.
/// `element` is the size of one element.
const Algorithm& choose(const Table& table, const schedule::Problem&, Bytes element);

/// Whether any problem can select this row: the problem fits the row, and the row's algorithm
/// applies with this stage.
/// Cost: some hundred calls of `applies`.
bool may_count(const Row& row, Bytes stage);

}  // namespace peal::plan
