#include "peal/group/monitored_barrier.h"

#include <chrono>

#include <gtest/gtest.h>

#include "peal/group/testing/idle_backend.h"

namespace peal {
namespace {

using testing::IdleBackend;

/// The message may come after the wait has timed out and before the barrier checks again.
TEST(MonitoredBarrierTest, ATokenThatComesJustAfterTheTimeoutOfTheWaitCounts) {
  IdleBackend backend(3, testing::everything(), IdleBackend::Ends::kJustAfterTheWait);
  EXPECT_NO_THROW(monitored_barrier(backend, "world", std::chrono::seconds(30)));
}

}  // namespace
}  // namespace peal
