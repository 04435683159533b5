#include "peal/system/fd.h"

#include <fcntl.h>

#include <gtest/gtest.h>

namespace peal {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
Fd open_null() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FdTest, TheDestructorClosesTheDescriptor) {
  int number = -1;
  {
    const Fd fd = open_null();
    number = fd.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FdTest, MovingTransfersTheDescriptor) {
  Fd from = open_null();
  const int number = from.get();
  Fd to = open_null();
  const int old = to.get();
  to = std::move(from);
  EXPECT_EQ(to.get(), number);
  EXPECT_FALSE(is_open(old));
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): the test is that it is empty
}

TEST(FdTest, MovingToItselfChangesNothing) {
  Fd fd = open_null();
  Fd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(FdTest, AReleasedDescriptorStaysOpen) {
  Fd fd = open_null();
  const Fd again(fd.release());
  EXPECT_FALSE(fd);
  EXPECT_TRUE(is_open(again.get()));
}

}  // namespace
}  // namespace peal
