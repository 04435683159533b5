// Choosing an algorithm: by the first row of a table that fits, else by the least estimate.
#pragma once

#include "peal/plan/table.h"

namespace peal::plan {

/// What is best by measurement; see choose.cpp, which is to be read.
const Table& built_in_choices();

/// The user's rows, then the built-in ones.
Table tuned(Table rows);

/// The algorithm of the first row that fits and whose algorithm applies; else of those that apply
/// the one with the least estimate (estimate.h). Every problem has one. Looks only at what all
/// ranks know, so that all choose alike where all have the same table. `element` is the size of one
/// element.
const Algorithm& choose(const Table& table, const schedule::Problem&, Bytes element);

/// Whether there is a problem that fits the row and that its algorithm can do, with such a stage. A
/// row without one never counts. Cost: some hundred looks at `applies`.
bool may_count(const Row& row, Bytes stage);

}  // namespace peal::plan
