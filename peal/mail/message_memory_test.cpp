#include "peal/mail/message_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace peal::mail {
namespace {

constexpr Bytes kSlab(std::int64_t{MessageMemory::kSlabSize});

/// Fills a block with its own value, which is checked before the block is given back.
struct Block {
  unsigned char* data;
  std::size_t size;
  unsigned char value;

  Block(MessageMemory& memory, std::size_t bytes, unsigned char v)
      : data(static_cast<unsigned char*>(memory.allocate(bytes))), size(bytes), value(v) {
    std::memset(data, value, size);
  }
  void give_back(MessageMemory& memory) const {
    EXPECT_EQ(std::count(data, data + size, value), static_cast<std::ptrdiff_t>(size));
    memory.deallocate(data, size);
  }
};

TEST(MailMemoryTest, BlocksOfAllSizesDoNotOverlap) {
  MessageMemory memory;
  std::mt19937 random(1);
  std::vector<Block> blocks;
  for (int i = 0; i < 30'000; ++i) {
    if (blocks.empty() || random() % 5 < (i < 15'000 ? 3 : 2)) {
      const std::size_t size = random() % 3 == 0 ? random() % 17'000 : random() % 300;
      blocks.emplace_back(memory, size, static_cast<unsigned char>(i));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data) % 16, 0U);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      blocks.back().give_back(memory);
      blocks.pop_back();
    }
  }
  EXPECT_GT(memory.mapped(), kSlab);
  for (const Block& block : blocks) block.give_back(memory);
  EXPECT_LE(memory.mapped(), kSlab);
}

TEST(MailMemoryTest, BlocksAreAtMostAQuarterLargerThanRequested) {
  for (const std::size_t size : {65, 216, 1'000, 4'097, 8'192, 16'384}) {
    MessageMemory memory;
    std::vector<Block> blocks;
    const std::size_t count = (std::size_t{8} << 20) / size;
    for (std::size_t i = 0; i < count; ++i) blocks.emplace_back(memory, size, 1);
    EXPECT_LT(memory.mapped(), 8_MiB * 4 / 3) << size;
    for (const Block& block : blocks) block.give_back(memory);
  }
}

TEST(MailMemoryTest, AQueueKeepsSomeMemoryAndReturnsTheRestToTheSystem) {
  MessageMemory memory;
  std::vector<Block> blocks;
  for (int i = 0; i < 2'000; ++i) blocks.emplace_back(memory, 8'192, 7);
  const Bytes full = memory.mapped();
  std::size_t first = 0;
  for (; first < 1'000; ++first) {  // one block comes for each that goes
    blocks[first].give_back(memory);
    blocks.emplace_back(memory, 8'192, 7);
  }
  EXPECT_LE(memory.mapped(), full + kSlab);
  for (; first < 2'500; ++first) blocks[first].give_back(memory);
  EXPECT_LT(memory.mapped(), full / 2);
  for (; first < blocks.size(); ++first) blocks[first].give_back(memory);
  EXPECT_LE(memory.mapped(), kSlab);
}

TEST(MailMemoryTest, MapsNoMemoryBeforeItIsNeeded) {
  MessageMemory memory;
  EXPECT_EQ(memory.mapped(), 0_B);
  Block(memory, 20'000, 3).give_back(memory);  // a large block comes from new
  EXPECT_EQ(memory.mapped(), 0_B);
  Block(memory, 16'384, 3).give_back(memory);
  EXPECT_EQ(memory.mapped(), kSlab);  // the slab is kept for later
}

}  // namespace
}  // namespace peal::mail
