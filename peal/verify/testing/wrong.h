// What the verifier says of a schedule in text, and what it ought to say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "peal/verify/verify.h"

namespace peal::verify {

std::vector<std::string> words(const std::vector<Violation>& violations);

std::vector<std::string> wrong_with(std::string_view text);

/// The text with its only `old` replaced: what is wrong is one thing.
std::string changed(std::string_view text, std::string_view old, std::string_view by);

/// What is wrong after the change, and that nothing was before.
std::vector<std::string> wrong_after(std::string_view text,
                                     std::string_view old,
                                     std::string_view by);

/// Matches where one of the words names both.
inline auto has(std::string_view rank_and_step, std::string_view what) {
  return testing::Contains(testing::AllOf(testing::HasSubstr(std::string(rank_and_step)),
                                          testing::HasSubstr(std::string(what))));
}

}  // namespace peal::verify
