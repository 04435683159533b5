// Which sanitizers look on. Under them everything takes ten times as long, so tests that try all
// combinations take a share of them, with every kind of case in it.
#pragma once

#include <string_view>

namespace peal {

/// As in "address,undefined"; empty if there are none. CMake says it: compilers do not agree how.
constexpr std::string_view kSanitizers = PEAL_SANITIZERS;
constexpr bool kSanitized = !kSanitizers.empty();

}  // namespace peal
