#include "peal/transport/shm/segment_layout.h"

#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

std::unique_ptr<std::byte, decltype(&std::free)> memory_for(const SegmentLayout& layout) {
  constexpr std::int64_t kPage = 4096;
  const std::int64_t pages = layout.size().value / kPage + 1;
  auto* const memory = std::aligned_alloc(kPage, static_cast<std::size_t>(pages * kPage));
  return {static_cast<std::byte*>(memory), &std::free};
}

TEST(SegmentLayoutTest, ARankSharesLittleMemoryHoweverManyRanksThereAre) {
  const auto size = [](int ranks) { return SegmentLayout{.ranks = ranks}.bounded().size(); };
  for (int ranks = 1; ranks <= 2048; ++ranks) EXPECT_LE(size(ranks), 20_MiB) << ranks;
  // From here on rings have their smallest size.
  for (int ranks = 2049; ranks <= 3363; ++ranks) EXPECT_LE(size(ranks), 32'000'000_B) << ranks;
  EXPECT_LE(size(10'000) - size(9'000), Bytes(1'000 * 8'600));
}

TEST(SegmentLayoutTest, PartsOfASegmentDoNotOverlap) {
  for (const int ranks : {1, 2, 3, 256}) {
    SegmentLayout layout{.ranks = ranks, .stage = 5000_B};
    layout = layout.bounded();
    EXPECT_GE(layout.stage, 5000_B);
    const auto memory = memory_for(layout);
    std::byte* const begin = memory.get();
    const std::byte* end = layout.control_in(begin).data() + layout.control_in(begin).size();
    for (const ChannelKind kind : kChannelKinds) {
      const auto* const bell = reinterpret_cast<std::byte*>(&layout.doorbell_in(begin, kind));
      EXPECT_GE(bell, end);
      end = bell + sizeof(BellState);
    }
    for (int from = 0; from < ranks; ++from) {
      for (const ChannelKind kind : kChannelKinds) {
        const auto* const header =
            reinterpret_cast<std::byte*>(&layout.ring_header_in(begin, kind, from));
        EXPECT_GE(header, end);
        end = header + sizeof(RingHeader);
      }
    }
    for (int from = 0; from < ranks; ++from) {
      for (const ChannelKind kind : kChannelKinds) {
        EXPECT_GE(layout.ring_in(begin, kind, from), end);
        end = layout.ring_in(begin, kind, from) + layout.ring(kind).value;
      }
    }
    EXPECT_GE(layout.stage_in(begin).data(), end);
    EXPECT_EQ(Bytes(layout.stage_in(begin).data() - begin) + layout.stage, layout.size());
  }
}

TEST(SegmentLayoutTest, ThePartsThatEveryGroupTouchesLieInTwoPages) {
  const SegmentLayout layout = SegmentLayout{.ranks = 8}.bounded();
  const auto memory = memory_for(layout);
  std::byte* const begin = memory.get();
  const auto* const last =
      reinterpret_cast<std::byte*>(&layout.ring_header_in(begin, ChannelKind::kMail, 7));
  EXPECT_LE(Bytes(last + sizeof(RingHeader) - begin), 8_KiB);
}

}  // namespace
}  // namespace peal::transport
