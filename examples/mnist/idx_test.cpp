#include "mnist/idx.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"

namespace mnist {
namespace {

using testing::HasSubstr;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

std::string idx_refusal(const std::vector<std::byte>& file) {
  try {
    parse_idx(file);
  } catch (const peal::Error& error) {
    EXPECT_EQ(error.kind(), peal::ErrorKind::kUsage);
    return error.what();
  }
  return "accepted";
}

const std::vector<std::byte> kTwoByThree =
    bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 11, 12, 20, 21, 22});

TEST(IdxTest, ReadsShapeAndValues) {
  EXPECT_EQ(parse_idx(kTwoByThree), (Idx{{2, 3}, {10, 11, 12, 20, 21, 22}}));
}

TEST(IdxTest, AnEmptyArrayIsValid) {
  EXPECT_EQ(parse_idx(bytes({0, 0, 8, 1, 0, 0, 0, 0})), (Idx{{0}, {}}));
}

TEST(IdxTest, EveryTruncationIsRejected) {
  for (std::size_t size = 0; size < kTwoByThree.size(); ++size) {
    const std::vector<std::byte> part(kTwoByThree.begin(),
                                      kTwoByThree.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(idx_refusal(part), HasSubstr("not a valid IDX file")) << size << " bytes";
  }
}

TEST(IdxTest, ExtraBytesAreRejected) {
  std::vector<std::byte> longer = kTwoByThree;
  longer.push_back(std::byte{0});
  EXPECT_THAT(idx_refusal(longer), HasSubstr("need 6 bytes, but 7 follow"));
}

TEST(IdxTest, AWrongMagicNumberIsRejected) {
  EXPECT_THAT(idx_refusal(bytes({1, 0, 8, 1, 0, 0, 0, 0})), HasSubstr("magic number"));
  EXPECT_THAT(idx_refusal(bytes({0, 0, 0x0d, 1, 0, 0, 0, 0})), HasSubstr("0x0d"));
  EXPECT_THAT(idx_refusal(bytes({0, 0, 8, 0})), HasSubstr("no dimensions"));
}

TEST(IdxTest, SizesWhoseProductOverflowsAreRejectedWithoutAllocation) {
  std::vector<std::byte> huge = bytes({0, 0, 8, 255});
  huge.resize(4 + 255 * 4, std::byte{0xff});
  EXPECT_THAT(idx_refusal(huge), HasSubstr("need more than the 0 bytes"));
  // 2^32 - 1 to the power of three, followed by a zero.
  EXPECT_THAT(
      idx_refusal(bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 1})),
      HasSubstr("need more than the 1 bytes"));
}

TEST(IdxTest, ErrorsNameTheFile) {
  const peal::PrivateFolder folder("peal-test.");
  const std::filesystem::path path = folder.write("peal_idx_test", "not IDX at all");
  try {
    read_idx(path);
    FAIL() << "accepted";
  } catch (const peal::Error& error) {
    EXPECT_EQ(error.kind(), peal::ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("peal_idx_test"));
  }
  std::filesystem::remove(path);
  try {
    read_idx(path);
    FAIL() << "accepted";
  } catch (const peal::Error& error) {
    EXPECT_EQ(error.kind(), peal::ErrorKind::kResource);
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("peal_idx_test"), HasSubstr("No such file")));
  }
}

}  // namespace
}  // namespace mnist
