#include "peal/launch/spawn.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace peal::launch {
namespace {

/// Threads that allocate memory without a pause: at each fork one of them is inside the allocator.
class Allocators {
 public:
  Allocators() {
    for (std::thread& thread : threads_) thread = std::thread([this] { allocate(); });
  }
  ~Allocators() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Allocators(const Allocators&) = delete;
  Allocators& operator=(const Allocators&) = delete;

 private:
  void allocate() const {
    for (std::size_t size = 1; !ends_; size = size % 100'000 + 997) {
      std::make_unique<char[]>(size).swap(kept_);
    }
  }

  std::atomic<bool> ends_ = false;
  inline static thread_local std::unique_ptr<char[]> kept_;
  std::vector<std::thread> threads_ = std::vector<std::thread>(2);
};

// A process that forks while another thread holds a lock of the allocator has a child that can
// never take it: between fork and exec the child must not allocate. An instrumented build may do so
// unseen.
TEST(SpawnTest, AProcessStartsWhileOtherThreadsAllocate) {
  const Allocators allocators;
  const RankProcess rank{
      .program = "/bin/true", .arguments = {"true"}, .environment = {}, .cpus = {}};
  Placement placement{.in = 0, .out = 1, .err = 2};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &placement.mask);
  for (int time = 0; time < 100; ++time) {
    const Spawned spawned = spawn(rank, placement);
    ASSERT_EQ(spawned.error, 0);
    int status = -1;
    ASSERT_EQ(::waitpid(spawned.pid, &status, 0), spawned.pid);
    ASSERT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace peal::launch
