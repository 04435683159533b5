// How long the thread of a group's messages sleeps.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/backends/native/testing/join.h"
#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/group/process_group.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/forwarding.h"

namespace peal::native {
namespace {

using transport::Interest;
using transport::Transport;

/// The peers' bytes arrive, but the wake-up does not, as if each peer were stopped just before it.
class SilentChannel final : public transport::ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;

  void wait(std::span<const Interest> /*interests*/, Deadline deadline) override {
    sleep_.update([](Sleep& sleep) { ++sleep.begun; });
    sleep_.wait(
        deadline,
        [](const Sleep& sleep) { return sleep.is_interrupted; },
        [](Sleep& sleep) { sleep.is_interrupted = false; });
  }
  void interrupt() noexcept override {
    sleep_.update([](Sleep& sleep) { sleep.is_interrupted = true; });
  }
  /// The number of calls of `wait`.
  int sleeps() {
    return sleep_.with([](const Sleep& sleep) { return sleep.begun; });
  }

 private:
  struct Sleep {
    bool is_interrupted = false;
    int begun = 0;
  };

  Guarded<Sleep> sleep_;
};

class SilentTransport final : public transport::ForwardingTransport {
 public:
  explicit SilentTransport(std::unique_ptr<Transport> inner)
      : ForwardingTransport(std::move(inner)), mail_(this->inner().mail()) {}

  SilentChannel& mail() override { return mail_; }
  std::optional<transport::SharedMail> shared_mail() override { return std::nullopt; }

 private:
  SilentChannel mail_;
};

constexpr Timeout kNeverReached = std::chrono::minutes(10);

template <class Holds>
bool comes_to_hold(Holds holds) {
  for (const Deadline hang = Deadline::after(std::chrono::seconds(60)); !hang.passed();) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(MessageLoopTest, AMessageArrivesWithoutAWakeUp) {
  std::vector<float> values(10);
  auto transports = transport::make_memory_transports(2, {});
  auto joining = std::async(std::launch::async,
                            [&] { return join_pair(0, std::move(transports[0]), kNeverReached); });
  auto silent = std::make_unique<SilentTransport>(std::move(transports[1]));
  SilentChannel& mail = silent->mail();
  const ProcessGroupPtr receiver = join_pair(1, std::move(silent), kNeverReached);
  const ProcessGroupPtr sender = joining.get();

  const int before = mail.sleeps();
  const WorkPtr received = receiver->irecv(values, 0);
  // The receiver's thread handles the receive before it sleeps a second time.
  EXPECT_TRUE(comes_to_hold([&] { return mail.sleeps() >= before + 2; }));
  sender->send(std::vector<float>(10, 7), 1);
  EXPECT_TRUE(comes_to_hold([&] { return received->is_completed(); }));
  sender->abort("the test is over");
  receiver->abort("the test is over");
  EXPECT_EQ(values, std::vector<float>(10, 7));
}

}  // namespace
}  // namespace peal::native
