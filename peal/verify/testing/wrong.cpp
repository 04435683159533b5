#include "peal/verify/testing/wrong.h"

#include <gtest/gtest.h>

#include "peal/schedule/text.h"

namespace peal::verify {

std::vector<std::string> words(const std::vector<Violation>& violations) {
  std::vector<std::string> all;
  for (const Violation& violation : violations) all.push_back(describe(violation));
  return all;
}

std::vector<std::string> wrong_with(std::string_view text) {
  return words(verify(schedule::parse_schedule(text)));
}

std::string changed(std::string_view text, std::string_view old, std::string_view by) {
  std::string result(text);
  const std::size_t at = result.find(old);
  EXPECT_NE(at, std::string::npos) << "\"" << old << "\" is not in the schedule";
  EXPECT_EQ(result.find(old, at + 1), std::string::npos) << "\"" << old << "\" is there twice";
  return result.replace(at, old.size(), by);
}

std::vector<std::string> wrong_after(std::string_view text,
                                     std::string_view old,
                                     std::string_view by) {
  EXPECT_THAT(wrong_with(text), testing::IsEmpty());
  return wrong_with(changed(text, old, by));
}

}  // namespace peal::verify
