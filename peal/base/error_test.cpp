#include "peal/base/error.h"

#include <cerrno>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(ErrorTest, WhatIsTheKindAndTheMessage) {
  const Error error(ErrorKind::kPeerLost, "rank 3 ended");
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_STREQ(error.what(), "peer_lost: rank 3 ended");
  EXPECT_EQ(error.message(), "rank 3 ended");
}

TEST(ErrorTest, EachKindHasADifferentName) {
  std::set<std::string_view> names;
  for (std::uint8_t number = 0; number < kErrorKinds; ++number)
    names.insert(name_of(ErrorKind{number}));
  EXPECT_EQ(names.size(), kErrorKinds);
  EXPECT_FALSE(names.contains("invalid"));
  EXPECT_EQ(name_of(static_cast<ErrorKind>(200)), "invalid");
}

TEST(ErrorTest, AKindIsFoundByItsNumber) {
  for (std::uint8_t number = 0; number < kErrorKinds; ++number) {
    EXPECT_EQ(error_kind_of(number), ErrorKind{number});
  }
}

TEST(ErrorTest, AnUnknownNumberIsNotAKind) {
  for (std::size_t number = kErrorKinds; number < 256; ++number) {
    EXPECT_EQ(error_kind_of(static_cast<std::uint8_t>(number)), std::nullopt) << number;
  }
}

TEST(ErrorTest, EachCauseHasADifferentNameAndNumber) {
  std::set<std::string_view> names;
  for (std::uint8_t number = 0; number < kErrorCauses; ++number) {
    names.insert(name_of(ErrorCause{number}));
    EXPECT_EQ(error_cause_of(number), ErrorCause{number});
  }
  EXPECT_EQ(names.size(), kErrorCauses);
  EXPECT_FALSE(names.contains("invalid"));
  EXPECT_EQ(name_of(static_cast<ErrorCause>(200)), "invalid");
  EXPECT_EQ(error_cause_of(200), std::nullopt);
}

TEST(ErrorTest, DetailsAreCopied) {
  const ErrorDetails details{.rank = 3, .host = "node-7", .cause = ErrorCause::kKilled};
  const Error error(ErrorKind::kPeerLost, "rank 3 was lost", details);
  Error copy(ErrorKind::kBug, "another");
  copy = error;
  EXPECT_EQ(copy.details(), details);
  EXPECT_EQ(Error(copy).details(), details);
}

TEST(ErrorTest, ASystemErrorIsAResourceErrorWithTheTextOfTheSystem) {
  const Error error = system_error("opening /x", ENOENT);
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), testing::EndsWith("opening /x: No such file or directory"));
}

TEST(ErrorTest, AnyCaughtExceptionBecomesAnErrorThatNamesTheActivity) {
  const auto caught = [](const auto& thrown) {
    try {
      throw thrown;
    } catch (...) {
      return current_error("dinner");
    }
  };
  EXPECT_EQ(caught(Error(ErrorKind::kTimeout, "late")).kind(), ErrorKind::kTimeout);
  EXPECT_EQ(caught(std::bad_alloc()).kind(), ErrorKind::kResource);
  EXPECT_EQ(caught(std::system_error(EAGAIN, std::generic_category())).kind(),
            ErrorKind::kResource);
  EXPECT_EQ(caught(std::out_of_range("far")).kind(), ErrorKind::kBug);
  EXPECT_EQ(std::string(caught(std::out_of_range("far")).message()), "dinner threw: far");
  EXPECT_EQ(caught(7).kind(), ErrorKind::kBug);
}

}  // namespace
}  // namespace peal
