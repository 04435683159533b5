// Shared by the tests of the planners: problems of every kind, and their proof.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// The stage has room for everything, or only for pieces.
enum class Stage : std::uint8_t { kAmple, kTight };

/// Problems of an operation for a number of ranks: each kind of host, registered memory on all
/// ranks or on none, root (first, middle, last), in place or not, and every interesting size and
/// unevenness.
std::vector<schedule::Problem> problems(Operation operation, int ranks);
std::vector<schedule::Problem> problems(Operation operation, int ranks, Stage stage);

/// One line that names every field.
std::string describe(const schedule::Problem&);

/// Whether `verify` finds nothing wrong with the operations in a row.
::testing::AssertionResult is_right(std::span<const schedule::Schedule>);
::testing::AssertionResult is_right(const schedule::Schedule&);

}  // namespace peal::plan
