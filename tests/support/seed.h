// The seed of a test's random choices.
#pragma once

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace peal::testing {

/// The same number throughout the program. The first call prints it as "PEAL_TEST_SEED=...". It is
/// another number in every run; the variable PEAL_TEST_SEED repeats a run.
inline unsigned seed() {
  static const unsigned seed = [] {
    const char* const given = std::getenv("PEAL_TEST_SEED");
    const unsigned chosen =
        given != nullptr ? static_cast<unsigned>(std::stoul(given)) : std::random_device()();
    std::cout << "PEAL_TEST_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return seed;
}

}  // namespace peal::testing
