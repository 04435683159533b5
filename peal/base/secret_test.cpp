#include "peal/base/secret.h"

#include <ostream>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

namespace peal {
namespace {

static_assert(!std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_convertible_v<std::string, Secret>);

template <class T>
concept CanBePrinted = requires(std::ostream& stream, const T& value) {
  stream << value;
};
static_assert(!CanBePrinted<Secret>);

TEST(SecretTest, ASecretHoldsATextOfAnyLength) {
  for (const std::size_t size : {1U, 16U, 4095U, 4096U, 4097U, 100000U}) {
    std::string text(size, 's');
    text.front() = 'b';
    text.back() = 'e';
    const Secret secret(text);
    EXPECT_FALSE(secret.empty());
    EXPECT_EQ(secret.text(), text);
  }
}

TEST(SecretTest, AnEmptyTextIsAnEmptySecret) {
  EXPECT_TRUE(Secret().empty());
  EXPECT_TRUE(Secret("").empty());
  EXPECT_EQ(Secret().text(), "");
  EXPECT_EQ(Secret(), Secret(""));
}

TEST(SecretTest, CopiesShareOneTextUntilTheLastIsDestroyed) {
  Secret first("the job's secret");
  const Secret second = first;
  EXPECT_EQ(second.text().data(), first.text().data());
  first = Secret("another secret");
  EXPECT_EQ(second.text(), "the job's secret");
  EXPECT_EQ(first.text(), "another secret");
}

TEST(SecretTest, SecretsAreEqualByTheirTexts) {
  EXPECT_EQ(Secret("the job's secret"), Secret("the job's secret"));
  EXPECT_NE(Secret("the job's secret"), Secret("the job's Secret"));
  EXPECT_NE(Secret("the job's secret"), Secret());
}

TEST(SecretTest, WipingOverwritesTheCharacters) {
  for (const std::size_t size : {0U, 3U, 100U}) {
    std::string secret(size, 's');
    wipe(secret);
    EXPECT_TRUE(secret.empty());
  }
  std::string text(100, 's');
  const char* const memory = text.data();
  {
    const Wiped wiped(text);
    EXPECT_EQ(text.size(), 100U);
  }
  EXPECT_TRUE(text.empty());
  ASSERT_EQ(text.data(), memory);  // the string still owns the memory
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(memory[i], '\0') << i;
}

}  // namespace
}  // namespace peal
