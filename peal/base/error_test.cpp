#include "peal/base/error.h"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(ErrorTest, TheTextIsTheKindAndTheMessage) {
  const Error error(ErrorKind::kPeerLost, "rank 3 ended");
  EXPECT_EQ(error.kind(), ErrorKind::kPeerLost);
  EXPECT_STREQ(error.what(), "peer_lost: rank 3 ended");
  EXPECT_EQ(error.message(), "rank 3 ended");
}

TEST(ErrorTest, AnOperationIsAddedOnlyIfTheErrorNamesNone) {
  const Error error(ErrorKind::kPeerLost, "rank 3 ended", {.rank = 3});
  const Error named = with_operation(error, "all_reduce #1");
  EXPECT_EQ(named.details().operation, "all_reduce #1");
  EXPECT_EQ(named.details().rank, 3);
  EXPECT_STREQ(named.what(), error.what());
  EXPECT_EQ(with_operation(named, "barrier #2").details().operation, "all_reduce #1");
}

TEST(ErrorTest, EachKindHasItsName) {
  EXPECT_EQ(name_of(ErrorKind::kUsage), "usage");
  EXPECT_EQ(name_of(ErrorKind::kMismatch), "mismatch");
  EXPECT_EQ(name_of(ErrorKind::kPeerLost), "peer_lost");
  EXPECT_EQ(name_of(ErrorKind::kTimeout), "timeout");
  EXPECT_EQ(name_of(ErrorKind::kUnsupported), "unsupported");
  EXPECT_EQ(name_of(ErrorKind::kResource), "resource");
  EXPECT_EQ(name_of(ErrorKind::kBug), "bug");
  EXPECT_EQ(name_of(ErrorKind::kAborted), "aborted");
  for (std::size_t number = kErrorKinds; number < 256; ++number) {
    EXPECT_EQ(name_of(ErrorKind{static_cast<std::uint8_t>(number)}), "invalid") << number;
  }
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

TEST(ErrorTest, EachCauseHasItsNameAndNumber) {
  EXPECT_EQ(name_of(ErrorCause::kUnknown), "unknown");
  EXPECT_EQ(name_of(ErrorCause::kKilled), "killed");
  EXPECT_EQ(name_of(ErrorCause::kExited), "exited");
  EXPECT_EQ(name_of(ErrorCause::kThrew), "threw");
  EXPECT_EQ(name_of(ErrorCause::kAborted), "aborted");
  EXPECT_EQ(name_of(ErrorCause::kLeft), "left");
  EXPECT_EQ(name_of(ErrorCause::kStopped), "stopped");
  EXPECT_EQ(name_of(ErrorCause::kUnreachable), "unreachable");
  EXPECT_EQ(name_of(ErrorCause::kMismatch), "mismatch");
  EXPECT_EQ(name_of(ErrorCause::kInterrupted), "interrupted");
  for (std::size_t number = 0; number < 256; ++number) {
    const auto byte = static_cast<std::uint8_t>(number);
    EXPECT_EQ(error_cause_of(byte).has_value(), number < kErrorCauses) << number;
    EXPECT_EQ(name_of(ErrorCause{byte}) == "invalid", number >= kErrorCauses) << number;
  }
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
