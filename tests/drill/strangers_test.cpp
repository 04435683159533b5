// Strangers connect to a running job. They send garbage, half a greeting that never ends, replays
// of a rank's bytes, or lengths beyond every limit. No stranger gets past the handshake, and the
// job continues. PEAL_TEST_STRANGERS is the number of connections; `scripts/drill` makes many.
//
// The cost to the job is measured against a control: equally many strangers at a server that only
// accepts and drops. If the job has all the cores that it needs, the control costs nothing. If the
// strangers need those cores too, the control shows which part of the cost is theirs.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/socket.h"
#include "peal/net/testing/reserved_port.h"

#include "tests/drill/drill.h"
#include "tests/support/interceptor.h"
#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int number_of_strangers() {
  const char* const text = std::getenv("PEAL_TEST_STRANGERS");
  return text != nullptr ? std::stoi(text) : 300;
}

/// The number of crowds of strangers, with a pause and a control after each, because the other load
/// of the machine changes within seconds.
constexpr int kCrowds = 20;

/// What a stranger sends once it is connected.
enum class Manner { kGarbage, kSlow, kReplay, kOversized };
constexpr std::array kManners = {
    Manner::kGarbage, Manner::kSlow, Manner::kReplay, Manner::kOversized};

Manner manner_of(int stranger) {
  return kManners[static_cast<std::size_t>(stranger) % kManners.size()];
}

/// The cost of connections alone: each connection is accepted, read once, and dropped.
class ControlServer {
 public:
  ControlServer()
      : listener_(net::listen_on(net::Address::parse("127.0.0.1:0"))),
        thread_([this](std::stop_token stop) { work(stop); }) {}

  net::Address address() const { return net::local_address(listener_.get()); }

 private:
  void work(const std::stop_token& stop) {
    std::vector<Fd> guests;
    std::array<std::byte, 4096> into;
    while (!stop.stop_requested()) {
      std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
      for (const Fd& guest : guests) entries.push_back({guest.get(), POLLIN, 0});
      net::poll_until(entries, Deadline::after(milliseconds(100)));
      for (std::size_t i = guests.size(); i > 0; --i) {
        if (entries[i].revents == 0) continue;
        try {
          net::try_read(guests[i - 1].get(), into);
        } catch (const Error&) {  // the stranger has closed it
        }
        guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i - 1));
      }
      while (std::optional<Fd> guest = net::accept_from(listener_.get(), Deadline(Clock::now()))) {
        guests.push_back(std::move(*guest));
      }
    }
  }

  Fd listener_;
  std::jthread thread_;
};

/// The job's store, as seen by a stranger.
class Target {
 public:
  /// `recorded`: the bytes that a rank sent when it connected.
  Target(const net::Address& address, std::vector<std::byte> recorded)
      : address_(address), recorded_(std::move(recorded)) {}

  /// Makes one connection. Returns whether the answer was more than the greeting and the proof that
  /// every connection gets.
  bool connect(Manner manner, std::mt19937& random) {
    constexpr std::size_t kGreetingAndProof = 48 + 32;
    try {
      const Fd fd = net::connect_to(address_, Deadline::after(milliseconds(2000)));
      const std::vector<std::byte> words = words_of(manner, random);
      const std::array<std::span<const std::byte>, 1> pieces = {words};
      net::try_write(fd.get(), pieces);
      if (manner == Manner::kSlow) {  // the stranger stays and sends nothing more
        slow_.push_back(Fd(::dup(fd.get())));
        if (slow_.size() > 64) slow_.erase(slow_.begin());
        return false;
      }
      return bytes_from(fd.get()) > kGreetingAndProof;
    } catch (const Error&) {
      return false;  // the connection was not even accepted
    }
  }

 private:
  std::vector<std::byte> words_of(Manner manner, std::mt19937& random) const {
    std::vector<std::byte> words(1 + random() % 400);
    for (std::byte& byte : words) byte = static_cast<std::byte>(random());
    switch (manner) {
      case Manner::kGarbage:
        return words;
      case Manner::kSlow:
        return {std::byte{'p'}};
      case Manner::kReplay:
        return recorded_;
      case Manner::kOversized: {
        const std::string_view magic = "peal/net";
        std::vector<std::byte> huge(4096, std::byte{0xff});
        std::ranges::copy(std::as_bytes(std::span(magic)), huge.begin());
        return huge;
      }
    }
    return words;
  }

  static std::size_t bytes_from(int fd) {
    std::array<std::byte, 4096> into;
    std::size_t received = 0;
    const Deadline deadline = Deadline::after(milliseconds(20));
    while (!deadline.passed()) {
      const net::Moved moved = net::try_read(fd, into);
      if (moved.closed) break;
      received += static_cast<std::size_t>(moved.bytes.value);
      std::array<pollfd, 1> entry = {pollfd{fd, POLLIN, 0}};
      if (moved.bytes == 0_B && !net::poll_until(entry, deadline)) break;
    }
    return received;
  }

  net::Address address_;
  std::vector<std::byte> recorded_;
  std::vector<Fd> slow_;
};

class StrangersTest : public ::testing::Test {
 protected:
  /// Rank 1 connects through an interceptor that records its bytes.
  void start() {
    start(0, port_);
    const net::Address store = net::Address::parse(fmt::format("127.0.0.1:{}", port_));
    net::connect_patiently({store}, Deadline::after(kLimit));  // until it serves
    interceptor_ = std::make_unique<Interceptor>(store);
    start(1, interceptor_->address().port());
    ASSERT_TRUE(processes_.wait_for_output(0, "at ", Deadline::after(kLimit)));
  }

  void start(Rank rank, std::uint16_t port) {
    Drill drill;
    drill.transport = "tcp";
    drill.target = -1;
    drill.rounds = 1'000'000'000;
    std::vector<std::string> command = {PEAL_DRILL_RANK};
    for (const std::string& argument : rank_arguments(drill)) command.push_back(argument);
    command.push_back(std::to_string(rank));
    processes_.start(command,
                     {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", std::to_string(port)},
                      {"PEAL_SECRET", "a secret of the drill"},
                      {"PEAL_TRANSPORT", "tcp"}});
  }

  /// How many operations rank 0 has completed.
  long rounds() {
    processes_.output(1);  // read too, or the rank would block on its full pipe
    const std::string& text = processes_.output(0);
    const auto last = text.rfind("at ", text.rfind('\n'));
    return last == std::string::npos ? 0 : std::stol(text.substr(last + 3));
  }

  /// Operations a second while `action` runs.
  template <class Action>
  double rate_during(Action&& action) {
    const long before = rounds();
    const TimePoint begin = Clock::now();
    action();
    return static_cast<double>(rounds() - before) / seconds_since(begin);
  }

  static double seconds_since(TimePoint begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  net::ReservedPort reserved_;
  std::uint16_t port_ = reserved_.number();
  std::unique_ptr<Interceptor> interceptor_;
  Processes processes_;
};

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  return end == std::string::npos ? text : text.substr(text.rfind('\n', end) + 1);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TEST_F(StrangersTest, UnknownConnectionsAreRejectedAndTheJobContinues) {
  start();
  const ControlServer control;
  // Real strangers are on other machines, so their work must not take the job's cores.
  ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 19), 0);
  ASSERT_GT(interceptor_->recorded().size(), 80U) << "a greeting and a proof";
  Target target(net::Address::parse(fmt::format("127.0.0.1:{}", port_)), interceptor_->recorded());
  Target bare(control.address(), interceptor_->recorded());
  std::mt19937 random(1);
  const int crowd = std::max(1, number_of_strangers() / kCrowds);
  int answered = 0;
  double besieged_for = 0;
  std::vector<double> of_quiet, of_control;
  for (int i = 0; i < kCrowds; ++i) {
    const TimePoint begin = Clock::now();
    const double besieged = rate_during([&] {
      for (int stranger = 0; stranger < crowd; ++stranger) {
        answered += target.connect(manner_of(stranger), random) ? 1 : 0;
      }
    });
    const Duration length = Clock::now() - begin;
    besieged_for += std::chrono::duration<double>(length).count();
    const double controlled = rate_during([&, from = Clock::now()] {
      for (int stranger = 0; stranger < crowd; ++stranger) {
        bare.connect(manner_of(stranger), random);
        std::this_thread::sleep_until(from + length * (stranger + 1) / crowd);
      }
    });
    const double quiet = rate_during([&] { std::this_thread::sleep_for(length); });
    of_quiet.push_back(besieged / quiet);
    of_control.push_back(besieged / controlled);
  }
  EXPECT_EQ(answered, 0) << "strangers were served";
  for (const std::size_t rank : {0, 1}) {
    const std::string& said = processes_.output(rank);
    EXPECT_EQ(said.find("ended"), std::string::npos) << "rank " << rank << ": " << last_line(said);
  }
  const long then = rounds();
  const Deadline deadline = Deadline::after(kLimit);
  while (rounds() == then && !deadline.passed()) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_GT(rounds(), then) << "the job does not continue";
  std::cout << fmt::format(
      "{} strangers in {:.1f} s, {} served; the job's operations a second meanwhile: {:.3f} of "
      "those "
      "with as many strangers at another server, {:.3f} of those with none (medians of {})\n",
      crowd * kCrowds,
      besieged_for,
      answered,
      median(of_control),
      median(of_quiet),
      kCrowds);
}

}  // namespace
}  // namespace peal::testing
