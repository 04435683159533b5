#include "peal/system/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/system/mapping.h"

namespace peal {
namespace {

TEST(SharedFileTest, AFileCanGrowAndCannotShrink) {
  const Fd file = make_shared_file("peal test", 8_KiB);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  grow_shared_file(file.get(), 8_KiB, 9_MiB);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 9 << 20);
  EXPECT_NO_THROW(check_shared_file(file.get(), 9_MiB));
}

TEST(SharedFileTest, AFileIsOpenedAndEnlargedByItsPath) {
  const Fd file = make_shared_file("peal test", 64_B);
  const std::string path = path_of_shared_file(file);
  const Mapping small = Mapping::of_file(open_shared_file(path, 64_B).get(), 64_B);
  small.bytes()[63] = std::byte{7};
  const Mapping large = Mapping::of_file(open_shared_file(path, 8_KiB).get(), 8_KiB);
  EXPECT_EQ(large.bytes()[63], std::byte{7});
  EXPECT_EQ(large.bytes()[8191], std::byte{0});
}

TEST(SharedFileTest, AFileThatCouldShrinkIsNotTrusted) {
  const Fd file = make_shared_file("peal test", 8_KiB);
  const Fd unsealed(::memfd_create("peal test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8192), 0);
  const Fd other(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(error_of([&] { check_shared_file(file.get(), 9_KiB); }).kind(), ErrorKind::kMismatch);
  EXPECT_EQ(error_of([&] { check_shared_file(unsealed.get(), 8_KiB); }).kind(),
            ErrorKind::kMismatch);
  EXPECT_EQ(error_of([&] { check_shared_file(other.get(), 0_B); }).kind(), ErrorKind::kMismatch);
}

TEST(SharedFileTest, AFileCannotGrowWithoutMemory) {
  const Fd full(::memfd_create("peal test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(full.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_EQ(error_of([&] { grow_shared_file(full.get(), 0_B, 8_KiB); }).kind(),
            ErrorKind::kResource);
}

}  // namespace
}  // namespace peal
