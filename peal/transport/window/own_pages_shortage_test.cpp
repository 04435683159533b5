// Adopting memory in place under a shortage: of descriptors, room in the file, address space, or
// the arena. The contents must survive, and nothing may be lost for good without need.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/sanitized.h"
#include "peal/transport/testing/lone_window.h"
#include "peal/transport/testing/private_pages.h"
#include "peal/transport/window/own_pages.h"

namespace peal::transport {
namespace {

using testing::damage;
using testing::fill;
using ::testing::HasSubstr;
using testing::map_private;
using testing::page;
using testing::SingleRankWindow;
using testing::unmap;

/// Changes a limit of this process while it lives.
class SoftLimit {
 public:
  SoftLimit(__rlimit_resource which, rlim_t limit) : which_(which) {
    ::getrlimit(which, &before_);
    const rlimit other{limit, before_.rlim_max};
    EXPECT_EQ(::setrlimit(which, &other), 0);
  }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;
  ~SoftLimit() { ::setrlimit(which_, &before_); }

 private:
  __rlimit_resource which_;
  rlimit before_{};
};

/// Ignores a signal in this process while it lives.
class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number) : number_(number), before_(std::signal(number, SIG_IGN)) {}
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;
  ~IgnoredSignal() { std::signal(number_, before_); }

 private:
  int number_;
  void (*before_)(int);
};

Error error_of_registering(SingleRankWindow& window, std::span<std::byte> memory) {
  return error_of([&] { window->register_memory(memory); });
}

TEST(OwnPagesShortageTest, ReleasedMemoryOccupiesNoMoreMemory) {
  SingleRankWindow window(64_MiB);
  const auto pages = map_private(16 << 20);
  const auto memory = pages.subspan(64, pages.size() - 128);
  const std::uint64_t before = window->generation();
  window->register_memory(memory);
  EXPECT_GE(window.taken(), 15_MiB);
  EXPECT_NE(window->generation(), before);
  window->deregister_memory(memory.data());
  EXPECT_EQ(window.taken(), 0_B);
  unmap(pages);
}

TEST(OwnPagesShortageTest, NothingChangesIfTheMappedAreasCannotBeRead) {
  SingleRankWindow window(64_MiB);
  const auto memory = map_private(16 << 20);
  const auto other = map_private(16 << 20);
  fill(memory);
  window->register_memory(memory);
  {
    const SoftLimit no_more_files(RLIMIT_NOFILE, 0);
    const Error error = error_of_registering(window, other);
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr("/proc/self/maps"));
    window->deregister_memory(memory.data());
  }
  EXPECT_EQ(damage(memory), 0);
  EXPECT_FALSE(window->locate(memory.data(), 1_B));
  EXPECT_THROW(window->allocate(64_MiB), Error);  // the place is still taken
  std::memset(window->allocate(48_MiB), 1, 48 << 20);
  EXPECT_EQ(damage(memory), 0);
  unmap(memory);
  unmap(other);
}

TEST(OwnPagesShortageTest, MemoryThatDoesNotFitIntoTheFileBecomesPrivateAgain) {
  SingleRankWindow window(64_MiB);
  const auto memory = map_private(40 << 20);
  fill(memory);
  const IgnoredSignal too_large(SIGXFSZ);
  {
    const SoftLimit two_steps(RLIMIT_FSIZE, (24 + 35) << 20);
    EXPECT_EQ(error_of_registering(window, memory).kind(), ErrorKind::kResource);
  }
  EXPECT_EQ(damage(memory), 0);
  EXPECT_EQ(window.taken(), 0_B);
  window->register_memory(memory);  // all of it is private again, and its place is free
  EXPECT_EQ(damage(memory), 0);
  window->deregister_memory(memory.data());
  unmap(memory);
}

/// The number of mapped pages of this process.
rlim_t mapped_pages() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages;
}

TEST(OwnPagesShortageTest, MemoryThatCannotBecomePrivateKeepsItsPlaceAndContents) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  SingleRankWindow window(64_MiB);
  const auto memory = map_private(40 << 20);
  fill(memory);
  const IgnoredSignal too_large(SIGXFSZ);
  {
    const SoftLimit two_steps(RLIMIT_FSIZE, (24 + 35) << 20);
    const SoftLimit no_way_back(RLIMIT_AS, mapped_pages() * page() + (4 << 20));
    EXPECT_EQ(error_of_registering(window, memory).kind(), ErrorKind::kResource);
  }
  EXPECT_EQ(damage(memory), 0);
  EXPECT_FALSE(window->locate(memory.data(), 1_B));
  std::memset(window->allocate(24_MiB), 1, 24 << 20);
  EXPECT_THROW(window->allocate(1_MiB), Error);  // all other memory is taken
  EXPECT_EQ(damage(memory), 0);
  unmap(memory);
}

TEST(OwnPagesShortageTest, AStepOfTheFileGetsMemoryAfterTheStepBeforeIsMapped) {
  SingleRankWindow window(64_MiB,
                          Fd(::memfd_create("peal arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  // The file cannot be mapped any more, so the first step is the last. Its memory is not released
  // either, so its size shows how far the step came.
  ASSERT_EQ(::fcntl(window.file(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  const auto memory = map_private(40 << 20);
  EXPECT_EQ(error_of_registering(window, memory).kind(), ErrorKind::kResource);
  EXPECT_EQ(window.taken(), 16_MiB);
  unmap(memory);
}

TEST(OwnPagesShortageTest, AFullArenaAdoptsNothing) {
  SingleRankWindow window(64_MiB);
  const auto memory = map_private(48 << 20);
  fill(memory);
  std::byte* const allocated = window->allocate(32_MiB);
  EXPECT_THROW(window->register_memory(memory), Error);
  EXPECT_FALSE(window->locate(memory.data(), 1_B));
  EXPECT_EQ(damage(memory), 0);
  window->deallocate(allocated);
  window->register_memory(memory);  // at a place of earlier allocations: it stays committed
  window->deregister_memory(memory.data());
  EXPECT_EQ(damage(memory), 0);
  EXPECT_NO_THROW(std::memset(window->allocate(64_MiB), 1, 64 << 20));
  unmap(memory);
}

}  // namespace
}  // namespace peal::transport
