// Memory that a window registers in place: its contents, the bytes beside it, and its addresses if
// its owner remaps them. own_pages_shortage_test.cpp tests shortages.
#include "peal/transport/window/own_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/in_child.h"
#include "peal/base/testing/sanitized.h"
#include "peal/system/mapping.h"
#include "peal/system/shared_file.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/private_pages.h"
#include "peal/transport/window/window.h"

namespace peal::transport {
namespace {

using testing::damage;
using testing::fill;
using ::testing::HasSubstr;
using testing::map_private;
using testing::page;
using testing::unmap;
using testing::value_at;

class OwnPagesTest : public ::testing::Test {
 protected:
  Window& window() { return *ranks_[0]->window(); }
  /// The same place as seen by the other rank.
  std::byte* seen(const std::byte* memory) {
    const auto place = window().locate(memory, 1_B);
    return place ? ranks_[1]->window()->address(0, place->offset, 1_B) : nullptr;
  }
  Error refusal(std::span<std::byte> memory) {
    return error_of([&] { window().register_memory(memory); });
  }

  std::vector<std::unique_ptr<Transport>> ranks_ = make_memory_transports(2);
};

TEST_F(OwnPagesTest, MemoryKeepsItsAddressesAndContents) {
  const auto memory = map_private(64 * page());
  fill(memory);
  window().register_memory(memory);
  EXPECT_EQ(damage(memory), 0);
  EXPECT_EQ(damage({seen(memory.data()), memory.size()}), 0);
  seen(memory.data())[5 * page()] = std::byte{99};  // a peer writes
  EXPECT_EQ(memory[5 * page()], std::byte{99});
  memory[5 * page()] = value_at(5 * page());  // and the owner
  EXPECT_EQ(seen(memory.data())[5 * page()], value_at(5 * page()));
  window().deregister_memory(memory.data());
  EXPECT_EQ(damage(memory), 0);
  EXPECT_EQ(seen(memory.data()), nullptr);
  unmap(memory);
}

TEST_F(OwnPagesTest, PeersCannotReachAReleasedPiece) {
  const auto memory = map_private(4 * page());
  window().register_memory(memory);
  std::byte* const peers = seen(memory.data());
  window().deregister_memory(memory.data());
  fill(memory);
  peers[0] = std::byte{99};
  EXPECT_EQ(damage(memory), 0);
  unmap(memory);
}

TEST_F(OwnPagesTest, OtherBytesOfItsPagesAreNotShared) {
  const auto pages = map_private(8 * page());
  fill(pages);
  const auto memory = pages.subspan(100, 6 * page());
  window().register_memory(memory);
  const auto place =
      window().locate(memory.data(), Bytes(static_cast<std::int64_t>(memory.size())));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->head, page_size() - 100_B);
  EXPECT_EQ(place->tail, 100_B);
  EXPECT_EQ(place->offset.value % page(), 100u);
  std::byte* const peers = seen(memory.data());
  EXPECT_EQ(peers[page()], memory[page()]);
  EXPECT_EQ(peers[-1], std::byte{0});
  EXPECT_EQ(peers[0], std::byte{0});  // until an operation copies it
  peers[-1] = peers[memory.size()] = std::byte{99};
  EXPECT_EQ(damage(pages), 0);
  window().deregister_memory(memory.data());
  EXPECT_EQ(damage(pages), 0);
  unmap(pages);
}

TEST_F(OwnPagesTest, EdgesAreTheBytesThatAreNotInTheArena) {
  const auto pages = map_private(8 * page());
  const auto memory = pages.subspan(100, 6 * page());
  window().register_memory(memory);
  const auto edges = [&](std::size_t from, std::size_t size) {
    const auto place =
        window().locate(memory.data() + from, Bytes(static_cast<std::int64_t>(size)));
    return place ? std::pair(place->head.value, place->tail.value) : std::pair(-1l, -1l);
  };
  const auto head = static_cast<std::int64_t>(page()) - 100;
  EXPECT_EQ(edges(10, 20), std::pair(20l, 0l));  // all of it lies in the first page
  EXPECT_EQ(edges(10, 2 * page()), std::pair(head - 10, 0l));
  EXPECT_EQ(edges(page(), 2 * page()), std::pair(0l, 0l));
  EXPECT_EQ(edges(page(), 5 * page()), std::pair(0l, 100l));
  EXPECT_EQ(edges(6 * page() - 50, 50), std::pair(0l, 50l));
  EXPECT_EQ(edges(6 * page() - 50, 51), std::pair(-1l, -1l));
  window().deregister_memory(memory.data());
  unmap(pages);
}

TEST_F(OwnPagesTest, APieceOfTheHeapLeavesItsNeighboursUnchanged) {
  constexpr std::size_t kSize = 40'000;  // less than the size for which malloc maps pages
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  for (int i = 0; i < 9; ++i) {
    blocks.push_back(std::make_unique<std::byte[]>(kSize));
    fill({blocks.back().get(), kSize});
  }
  for (std::size_t i = 1; i < blocks.size(); i += 2)
    window().register_memory({blocks[i].get(), kSize});
  for (const auto& block : blocks) {
    EXPECT_EQ(damage({block.get(), kSize}), 0);
    std::memset(block.get(), 0, kSize);
    fill({block.get(), kSize});
  }
  for (std::size_t i = 1; i < blocks.size(); i += 2) window().deregister_memory(blocks[i].get());
  for (const auto& block : blocks) EXPECT_EQ(damage({block.get(), kSize}), 0);
}

TEST_F(OwnPagesTest, MemoryWithoutAWholePageStaysUnchanged) {
  const auto pages = map_private(2 * page());
  const auto memory = pages.subspan(1, 2 * page() - 2);
  window().register_memory(memory);
  EXPECT_FALSE(window().locate(memory.data(), 1_B));
  window().deregister_memory(memory.data());
  unmap(pages);
}

TEST_F(OwnPagesTest, OverlappingPiecesWithoutAWholePageAreRejected) {
  const auto memory = map_private(8 * page());
  window().register_memory(memory.first(100));
  // `deregister_memory` could not tell the two pieces apart
  EXPECT_EQ(refusal(memory).kind(), ErrorKind::kUsage);
  window().register_memory(memory.subspan(100));
  window().deregister_memory(memory.data());
  EXPECT_TRUE(window().locate(memory.data() + 100, 1_B));
  window().deregister_memory(memory.data() + 100);
  window().register_memory(memory);
  EXPECT_TRUE(window().locate(memory.data(), 1_B));
  window().deregister_memory(memory.data());
  unmap(memory);
}

TEST_F(OwnPagesTest, MemoryIsNotLocatedBeforeItsPlaceHasItsContents) {
  const auto other = map_private(page());
  window().register_memory(other);
  for (int round = 0; round < 5; ++round) {
    const auto memory = map_private(32 << 20);
    std::memset(memory.data(), 1, memory.size());
    std::promise<void> watching;
    std::atomic<bool> registered = false;
    auto seen_first = std::async(std::launch::async, [&] {
      const std::byte* last = nullptr;
      watching.set_value();
      for (bool late = false; last == nullptr && !late;) {
        late = registered;
        last = seen(&memory.back());
      }
      return last == nullptr ? std::byte{0} : *last;
    });
    watching.get_future().wait();
    window().register_memory(memory);
    registered = true;
    EXPECT_EQ(seen_first.get(), std::byte{1});
    window().deregister_memory(memory.data());
    unmap(memory);
  }
  window().deregister_memory(other.data());
  unmap(other);
}

TEST_F(OwnPagesTest, ManyStepsOfMemoryBecomePrivateAgain) {
  const auto memory = map_private((40 << 20) + 3 * page());
  fill(memory);
  window().register_memory(memory);
  EXPECT_EQ(std::memcmp(seen(memory.data()), memory.data(), memory.size()), 0);
  window().deregister_memory(memory.data());
  EXPECT_EQ(damage(memory), 0);
  unmap(memory);
}

TEST_F(OwnPagesTest, MemoryOfOtherKindsIsRejectedAndStaysUnchanged) {
  const auto gone = map_private(4 * page());
  unmap(gone);
  const auto half_gone = map_private(4 * page());
  unmap(half_gone.last(page()));
  const auto read_only = map_private(4 * page(), PROT_READ);
  const Fd file = make_shared_file("some file", Bytes(static_cast<std::int64_t>(4 * page())));
  const Mapping shared = Mapping::of_file(file.get(), Bytes(static_cast<std::int64_t>(4 * page())));
  void* const copy =
      ::mmap(nullptr, 4 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  struct Case {
    std::span<std::byte> memory;
    ErrorKind kind;
    std::string text;
  };
  for (const Case& wrong :
       {Case{gone, ErrorKind::kUsage, "nothing is mapped there"},
        {half_gone, ErrorKind::kUsage, "nothing is mapped there"},
        {read_only, ErrorKind::kUnsupported, "ProcessGroup::allocate"},
        {shared.bytes(), ErrorKind::kUnsupported, "some file"},
        {{static_cast<std::byte*>(copy), 4 * page()}, ErrorKind::kUnsupported, "some file"}}) {
    const Error error = refusal(wrong.memory);
    EXPECT_EQ(error.kind(), wrong.kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(wrong.text));
    EXPECT_FALSE(window().locate(wrong.memory.data(), 1_B));
  }
  unmap(half_gone.first(3 * page()));
  unmap(read_only);
  ::munmap(copy, 4 * page());
}

TEST_F(OwnPagesTest, TheStackIsRejected) {
  if (kSanitized) GTEST_SKIP() << "sanitizers put such variables elsewhere";
  std::array<std::byte, 40'000> local{};
  EXPECT_EQ(refusal(local).kind(), ErrorKind::kUnsupported);
}

TEST_F(OwnPagesTest, MemoryThatIsSharedAlreadyIsRejected) {
  const auto pages = map_private(16 * page());
  const auto memory = pages.subspan(100, 8 * page());
  window().register_memory(memory);
  EXPECT_EQ(refusal(memory).kind(), ErrorKind::kUsage);
  // one byte of the head of the piece
  EXPECT_EQ(refusal(pages.first(101)).kind(), ErrorKind::kUsage);
  EXPECT_EQ(refusal(pages.subspan(8 * page() + 99, page())).kind(), ErrorKind::kUsage);
  EXPECT_THROW(ranks_[1]->window()->register_memory(memory),
               Error);  // like a window of another group
  std::byte* const allocated = window().allocate(1_MiB);
  const Error error = refusal({allocated, 1 << 20});
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("shared already"));
  window().register_memory(pages.subspan(8 * page() + 100, 4 * page()));  // next to the piece
  window().deregister_memory(pages.data() + 8 * page() + 100);
  window().deregister_memory(memory.data());
  EXPECT_NO_THROW(ranks_[1]->window()->register_memory(memory));
  ranks_[1]->window()->deregister_memory(memory.data());
  unmap(pages);
}

TEST_F(OwnPagesTest, AdoptedMemoryOutlivesTheTransport) {
  const auto memory = map_private(8 * page());
  fill(memory);
  Window kept = window();
  kept.register_memory(memory);
  ranks_.clear();
  EXPECT_EQ(damage(memory), 0);
  kept.deregister_memory(memory.data());
  EXPECT_EQ(damage(memory), 0);
  unmap(memory);
}

TEST_F(OwnPagesTest, MemoryThatWasMappedMeanwhileIsLeftUnchanged) {
  const auto memory = map_private(8 * page());
  window().register_memory(memory);
  ::munmap(memory.data() + page(), 2 * page());
  void* const other = ::mmap(memory.data() + page(),
                             page(),
                             PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                             -1,
                             0);
  ASSERT_EQ(other, memory.data() + page());
  std::memset(other, 77, page());
  memory[0] = std::byte{1};
  memory[7 * page()] = std::byte{2};
  window().deregister_memory(memory.data());
  EXPECT_EQ(memory[page()], std::byte{77});
  EXPECT_EQ(memory[0], std::byte{1});
  EXPECT_EQ(memory[7 * page()], std::byte{2});
  EXPECT_EQ(refusal(memory.subspan(2 * page(), page())).kind(), ErrorKind::kUsage);  // still a gap
  ::munmap(memory.data(), memory.size());
}

TEST_F(OwnPagesTest, AForkedChildThatEndsDoesNotReleaseTheMemory) {
  const auto memory = map_private(8 * page());
  fill(memory);
  window().register_memory(memory);
  EXPECT_TRUE(holds_in_child([&] {
    window().deregister_memory(memory.data());
    return damage(memory) == 0;
  }));
  EXPECT_EQ(damage(memory), 0);
  window().deregister_memory(memory.data());
  EXPECT_EQ(damage(memory), 0);
  unmap(memory);
}

}  // namespace
}  // namespace peal::transport
