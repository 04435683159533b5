#include "peal/system/file_size.h"

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"

namespace peal {
namespace {

using testing::HasSubstr;

/// Changes only the soft limit, so that it can be restored.
class Limit {
 public:
  explicit Limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~Limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  rlimit before_{};
};

TEST(FileSizeTest, WithoutALimitAnySizeIsAllowed) {
  const Limit none(RLIM_INFINITY);
  EXPECT_NO_THROW(check_file_size(Bytes(INT64_MAX), "a test"));
}

TEST(FileSizeTest, AFileAsLargeAsTheLimitIsAllowed) {
  const Limit limit(1 << 20);
  EXPECT_NO_THROW(check_file_size(1_MiB, "a test"));
}

TEST(FileSizeTest, ALargerFileIsAnErrorThatNamesTheLimit) {
  const Limit limit(1 << 20);
  const auto error = error_of([] { check_file_size(1_MiB + 1_B, "a test"); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(std::string(error.message()),
              testing::AllOf(HasSubstr("a test needs a file of 1048577 bytes"),
                             HasSubstr("1048576 bytes"),
                             HasSubstr("ulimit -f")));
}

}  // namespace
}  // namespace peal
