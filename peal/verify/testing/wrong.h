// Helpers that compare the violations that the verifier reports with the expected ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "peal/verify/verify.h"

namespace peal::verify {

std::vector<std::string> words(const std::vector<Violation>& violations);

std::vector<std::string> wrong_with(std::string_view text);

/// The text with its only `old` replaced, so that it has a single error.
std::string changed(std::string_view text, std::string_view old, std::string_view by);

/// The violations after the change. Expects no violation before it.
std::vector<std::string> wrong_after(std::string_view text,
                                     std::string_view old,
                                     std::string_view by);

/// Matches if one of the texts contains both.
inline auto has(std::string_view rank_and_step, std::string_view what) {
  return testing::Contains(testing::AllOf(testing::HasSubstr(std::string(rank_and_step)),
                                          testing::HasSubstr(std::string(what))));
}

}  // namespace peal::verify
