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

#include "peal/backends/native/native.h"
#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/group/process_group.h"
#include "peal/transport/memory/memory.h"

namespace peal::native {
namespace {

using transport::Channel;
using transport::ConstPiece;
using transport::Interest;
using transport::Transfer;
using transport::Transport;

/// A channel whose peers never wake its sleeper, as if each were stopped just before it does. The
/// bytes are there.
class DeafChannel final : public Channel {
 public:
  explicit DeafChannel(Channel& inner) : inner_(inner) {}

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override {
    return inner_.try_send(peer, pieces);
  }
  bool try_flush(Rank peer) override { return inner_.try_flush(peer); }
  Transfer try_receive(Rank peer, std::span<std::byte> into) override {
    return inner_.try_receive(peer, into);
  }
  Bytes unacknowledged(Rank peer) const override { return inner_.unacknowledged(peer); }
  void wait(std::span<const Interest> /*interests*/, Deadline deadline) override {
    const auto is_interrupted = [](bool interrupted) { return interrupted; };
    interrupted_.wait(deadline, is_interrupted, [](bool& interrupted) { interrupted = false; });
  }
  void interrupt() noexcept override {
    interrupted_.update([](bool& interrupted) { interrupted = true; });
  }

 private:
  Channel& inner_;
  Guarded<bool> interrupted_{false};
};

class DeafTransport final : public Transport {
 public:
  explicit DeafTransport(std::unique_ptr<Transport> inner)
      : inner_(std::move(inner)), mail_(inner_->mail()) {}

  Channel& data() override { return inner_->data(); }
  Channel& mail() override { return mail_; }
  std::optional<transport::SharedMail> shared_mail() override { return std::nullopt; }
  transport::Window* window() override { return inner_->window(); }
  int ranks_on_host() const override { return inner_->ranks_on_host(); }
  int cpus_on_host() const override { return inner_->cpus_on_host(); }
  std::string describe(Rank peer) const override { return inner_->describe(peer); }
  transport::Presence presence(Rank peer) const override { return inner_->presence(peer); }

 private:
  std::unique_ptr<Transport> inner_;
  DeafChannel mail_;
};

ProcessGroupPtr join(Rank rank, std::unique_ptr<Transport> connected) {
  constexpr Timeout kTimeout = std::chrono::hours(1);
  Options options;
  options.rank = rank;
  options.world_ranks = {0, 1};
  options.connect = [&](auto&&, auto&&, Deadline, auto&&, const UseTransport& use) {
    use(std::move(connected));
  };
  return std::make_shared<ProcessGroup>(make_backend(std::move(options), Deadline::after(kTimeout)),
                                        ProcessGroup::Options{.timeout = kTimeout});
}

TEST(MessageLoopTest, AMessageArrivesThoughItsSenderWakesNobody) {
  auto transports = transport::make_memory_transports(2, {});
  auto joining = std::async(std::launch::async, [&] { return join(0, std::move(transports[0])); });
  const ProcessGroupPtr receiver =
      join(1, std::make_unique<DeafTransport>(std::move(transports[1])));
  const ProcessGroupPtr sender = joining.get();

  std::vector<float> values(10);
  const WorkPtr received = receiver->irecv(values, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the receiver's thread sleeps
  sender->send(std::vector<float>(10, 7), 1);
  const Deadline hang = Deadline::after(std::chrono::seconds(60));
  while (!received->is_completed() && !hang.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(received->is_completed());
  EXPECT_EQ(values, received->is_completed() ? std::vector<float>(10, 7) : values);
  sender->abort("the test is over");
  receiver->abort("the test is over");
}

}  // namespace
}  // namespace peal::native
