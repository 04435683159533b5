#include "peal/launch/job/references.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::launch {
namespace {

std::optional<std::string> a_and_b(const std::string& name) {
  if (name == "A") return "1";
  if (name == "B") return "$(A)";
  return std::nullopt;
}

std::string expanded(std::string_view text) { return expand_references(text, a_and_b); }

TEST(ReferencesTest, AReferenceIsReplacedOnce) {
  EXPECT_EQ(expanded("x$(A)y$(A)"), "x1y1");
  EXPECT_EQ(expanded("$(B)"), "$(A)");
  EXPECT_EQ(expanded(""), "");
}

TEST(ReferencesTest, UnknownAndIncompleteReferencesStay) {
  EXPECT_EQ(expanded("$(C) $(A $ $HOME ${A} (A)"), "$(C) $(A $ $HOME ${A} (A)");
  EXPECT_EQ(expanded("$()$"), "$()$");
}

TEST(ReferencesTest, TwoDollarsStandForOne) {
  EXPECT_EQ(expanded("$$(A)"), "$(A)");
  EXPECT_EQ(expanded("$$$(A)"), "$1");
  EXPECT_EQ(expanded("$$$$"), "$$");
}

TEST(ReferencesTest, EscapedReferencesComeBackUnchanged) {
  const auto all = [](const std::string& /*name*/) { return true; };
  for (const std::string text : {"$(A)", "$$(A)", "x$(B)$(A", "$", "$$$(A)"}) {
    const std::string escaped = escape_references(text, all);
    EXPECT_EQ(expand_references(escaped, a_and_b),
              expand_references(text, [](const std::string&) { return std::nullopt; }))
        << text;
  }
}

TEST(ReferencesTest, VariablesAreReplacedByEachOtherAndByOuterOnes) {
  const std::map<std::string, std::string> env = {
      {"X", "$(Y)/x"}, {"Y", "$(A)/y"}, {"C", "$(D)"}, {"D", "$(C)"}, {"S", "$(S)"}};
  const auto result = expand_variables(env, a_and_b);
  EXPECT_EQ(result.at("X"), "1/y/x");
  EXPECT_EQ(result.at("Y"), "1/y");
  EXPECT_EQ(result.at("C"), "$(C)");
  EXPECT_EQ(result.at("S"), "$(S)");
}

TEST(ReferencesTest, ValuesThatRepeatEachOtherAreBounded) {
  std::map<std::string, std::string> doubles = {{"V00", "0123456789"}};
  std::map<std::string, std::string> chain = {{"V00", "x"}};
  for (int i = 1; i < 60; ++i) {
    const std::string name = fmt::format("V{:02}", i);
    const std::string before = fmt::format("$(V{:02})", i - 1);
    if (i < 40) doubles[name] = before + before;
    chain[name] = before;
  }
  EXPECT_THAT(usage_error_of([&] { expand_variables(doubles, a_and_b); }),
              testing::HasSubstr("longer than 1 MiB"));
  const std::map<std::string, std::string> deep = [&] {
    std::map<std::string, std::string> reversed;  // so that the first name is the deepest
    for (int i = 0; i < 60; ++i)
      reversed[fmt::format("V{:02}", i)] = fmt::format("$(V{:02})", i + 1);
    return reversed;
  }();
  EXPECT_EQ(expand_variables(chain, a_and_b).at("V59"), "x");
  EXPECT_THAT(usage_error_of([&] { expand_variables(deep, a_and_b); }),
              testing::HasSubstr("nested more than 50 deep"));
}

}  // namespace
}  // namespace peal::launch
