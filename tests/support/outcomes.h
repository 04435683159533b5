// How the ranks of a group end when ranks fail or leave. Used by failures_test.cpp and
// leaving_test.cpp in tests/collectives.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"

#include "tests/support/fabric.h"

namespace peal::testing {

/// A timeout that passes long before the timeout of the group.
inline constexpr auto kSoon = std::chrono::milliseconds(300);

/// The data of a rank: `count` ones.
inline std::vector<float> some(std::int64_t count = 100) {
  return std::vector<float>(static_cast<std::size_t>(count), 1);
}

using Ended = std::vector<Outcome<std::string>>;

/// An error text if the call does not throw.
template <class Call>
std::string missing_error(const std::string& name, Call call) {
  try {
    call();
  } catch (const Error&) {
    return "";
  }
  return name + " ended well";
}

/// A test that runs over every fabric.
class OutcomesTest : public ::testing::TestWithParam<Fabric> {
 protected:
  /// Runs the body on every rank and returns how each ended: with the text that the body returns,
  /// or with an error.
  template <class Body>
  static Ended outcomes(int ranks, Body body) {
    Job job(GetParam(), ranks);
    return on_ranks(ranks, [&](Rank rank) -> std::string {
      const ProcessGroupPtr group = job.join(rank);
      if constexpr (std::is_void_v<decltype(body(*group))>) {
        body(*group);
        return "";
      } else {
        return body(*group);
      }
    });
  }
};

}  // namespace peal::testing
