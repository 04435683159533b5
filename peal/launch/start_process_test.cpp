#include "peal/launch/start_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace peal::launch {
namespace {

/// Threads that allocate memory without a pause: at a fork, one of them is often in the allocator.
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
    std::vector<std::unique_ptr<char[]>> kept(100);
    for (std::size_t size = 1; !ends_; size = size % 5'000 + 97) {
      kept[size % kept.size()] = std::make_unique_for_overwrite<char[]>(size);
    }
  }

  std::atomic<bool> ends_ = false;
  std::vector<std::thread> threads_ = std::vector<std::thread>(2);
};

// If another thread holds the allocator's lock at fork, the child can never take that lock. So the
// child must not allocate before exec. Instrumented builds may allocate without any line in the
// source.
TEST(StartProcessTest, AProcessStartsWhileOtherThreadsAllocate) {
  const Allocators allocators;
  const RankCommand rank{
      .program = "/bin/true", .arguments = {"true"}, .environment = {}, .cpus = {}};
  Placement placement{.in = 0, .out = 1, .err = 2};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &placement.mask);
  for (int time = 0; time < 100; ++time) {
    const StartedProcess process = start_process(rank, placement);
    ASSERT_EQ(process.error, 0);
    int status = -1;
    ASSERT_EQ(::waitpid(process.pid, &status, 0), process.pid);
    ASSERT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace peal::launch
