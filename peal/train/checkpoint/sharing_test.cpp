#include "peal/train/checkpoint/sharing.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::thrown_text;

OfferedPart whole(const std::string& name, std::int64_t size) {
  return {.file = "model",
          .name = name,
          .type = "Float",
          .shape = {size},
          .box = whole_box({size}),
          .size = Bytes(4 * size)};
}

OfferedPart rows(const std::string& name, std::int64_t from, std::int64_t count, std::int64_t all) {
  return {.file = "model",
          .name = name,
          .type = "Float",
          .shape = {all},
          .box = {{from}, {count}},
          .size = Bytes(4 * count)};
}

TEST(ShareOut, EachPartIsWrittenOnce) {
  const OfferedParts all = {whole("a", 5), whole("b", 3), whole("c", 0), whole("d", 9)};
  for (std::size_t ranks = 1; ranks <= 6; ++ranks) {
    const SharingPlan plan = share_out(std::vector(ranks, all));
    std::multiset<std::size_t> written;
    for (const auto& writes : plan.writes) written.insert(writes.begin(), writes.end());
    EXPECT_THAT(written, ElementsAre(0, 1, 2, 3)) << ranks;
    EXPECT_EQ(plan.tensors, (std::map<std::string, std::int64_t>{{"model", 4}}));
  }
}

TEST(ShareOut, RanksWriteAboutTheSameBytes) {
  OfferedParts all;
  for (int i = 1; i <= 30; ++i) all.push_back(whole("t" + std::to_string(i), i));
  const SharingPlan plan = share_out(std::vector(4, all));
  for (const auto& writes : plan.writes) {
    std::int64_t elements = 0;
    for (const std::size_t index : writes) elements += all[index].shape[0];
    EXPECT_NEAR(static_cast<double>(elements), 30 * 31 / 2 / 4.0, 3);
  }
}

TEST(ShareOut, APartIsWrittenByARankThatHasIt) {
  const SharingPlan plan =
      share_out({{rows("a", 0, 2, 5), whole("b", 1)}, {}, {rows("a", 2, 3, 5)}});
  EXPECT_THAT(plan.writes, ElementsAre(ElementsAre(0, 1), SizeIs(0), ElementsAre(0)));
  EXPECT_EQ(plan.tensors.at("model"), 2);
}

TEST(ShareOut, PartsThatDoNotFitAreNamed) {
  const auto error = [](const std::vector<OfferedParts>& ranks) {
    return thrown_text([&] { share_out(ranks); });
  };
  EXPECT_THAT(error({{rows("a", 0, 2, 5)}, {}}),
              HasSubstr("the tensor \"a\" of model together: its parts have 2 elements"));
  EXPECT_THAT(error({{rows("a", 0, 3, 5)}, {rows("a", 2, 3, 5)}}), HasSubstr("overlap"));
  EXPECT_THAT(error({{whole("a", 5)}, {}, {whole("a", 6)}}),
              HasSubstr("its type or shape on rank 2 is not that on rank 0"));
  OfferedPart other = whole("a", 5);
  other.type = "Half";
  EXPECT_THAT(error({{whole("a", 5)}, {other}}), HasSubstr("its type or shape on rank 1"));
}

TEST(ShareOut, TheSameNameInTwoFilesIsTwoTensors) {
  OfferedPart optimizer = whole("a", 7);
  optimizer.file = "optimizer";
  const SharingPlan plan = share_out({{whole("a", 5), optimizer}});
  EXPECT_EQ(plan.tensors, (std::map<std::string, std::int64_t>{{"model", 1}, {"optimizer", 1}}));
}

TEST(OfferedParts, DecodeToTheSame) {
  const OfferedParts parts = {rows("a\n", 2, 3, 5), whole("b", 0), {}};
  EXPECT_EQ(decode_offered_parts(encode(parts)), parts);
  EXPECT_EQ(decode_offered_parts(encode(OfferedParts{})), OfferedParts{});
  const std::string bytes = encode(parts);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(thrown_text([&] { decode_offered_parts(std::string_view(bytes).substr(0, size)); }),
                HasSubstr("list of tensors"));
  }
}

}  // namespace
}  // namespace peal::train
