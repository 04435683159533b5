// Which sanitizers are active. With sanitizers everything takes ten times as long. Tests that
// otherwise try all combinations then try only some of them, at least one of each kind.
#pragma once

#include <string_view>

namespace peal {

/// For example "address,undefined"; empty without sanitizers. Set by CMake, since compilers differ.
constexpr std::string_view kSanitizers = PEAL_SANITIZERS;
constexpr bool kSanitized = !kSanitizers.empty();

}  // namespace peal
