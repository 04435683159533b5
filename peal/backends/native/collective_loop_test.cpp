#include "peal/backends/native/collective_loop.h"

#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "peal/backends/native/fair_guarded.h"
#include "peal/backends/native/group_runtime.h"
#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/transport/memory/memory.h"

namespace peal::native {
namespace {

/// A call may have found the group alive just before its end began.
TEST(CollectiveLoopTest, NoOperationBeginsAfterDraining) {
  auto transports = transport::make_memory_transports(2, {});
  Options options;
  options.world_ranks = {0, 1};
  options.group = "world";
  const observe::GroupRecorder recorder(nullptr, "world", options.world_ranks);
  QuickLock quick_lock;
  FairMutex mutex;
  GroupRuntime runtime(options, recorder, std::move(transports[0]), quick_lock, mutex);
  ASSERT_TRUE(quick_lock.try_enter());
  ASSERT_TRUE(quick_lock.try_leave());

  EXPECT_TRUE(runtime.collectives().drain(Deadline::after(std::chrono::seconds(60))));
  const bool is_open = quick_lock.try_enter();
  EXPECT_FALSE(is_open) << "the quick lock must stay closed";
  if (is_open) quick_lock.try_leave();
  const Request barrier;
  const Timeout timeout = std::chrono::seconds(60);
  const auto is_rejected = [](const Error& error) {
    return error.kind() == ErrorKind::kUsage &&
           error.message().find("has been destroyed") != std::string::npos;
  };
  EXPECT_TRUE(is_rejected(error_of([&] { runtime.collectives().start(barrier, timeout); })));
  if (!is_open) {  // else the barrier would wait for rank 1
    EXPECT_TRUE(is_rejected(error_of([&] { runtime.collectives().run(barrier, timeout); })));
  }
  runtime.stop(Error(ErrorKind::kUsage, "the test is over"));
}

}  // namespace
}  // namespace peal::native
