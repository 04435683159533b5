// Strangers at the door of a running job: garbage, half a greeting that never ends, replays of what
// a rank has said, lengths beyond every limit. None gets past the handshake, and the job goes on.
// As many connections as PEAL_STRANGERS says; `scripts/drill` sends many, and measures what they
// cost.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/net/framing.h"
#include "peal/net/socket.h"

#include "tests/drill/drill.h"
#include "tests/support/meddler.h"
#include "tests/support/processes.h"
#include "tests/support/reserved_port.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kPatience = seconds(60);

/// Before and after; as long as many strangers take.
const seconds kMeasured{std::getenv("PEAL_STRANGERS") != nullptr ? 10 : 1};

int number_of_strangers() {
  const char* const text = std::getenv("PEAL_STRANGERS");
  return text != nullptr ? std::stoi(text) : 300;
}

/// What a stranger says once it is connected.
enum class Manner { kGarbage, kSlow, kReplay, kOversized };
constexpr std::array kManners = {
    Manner::kGarbage, Manner::kSlow, Manner::kReplay, Manner::kOversized};

/// The job's store, as a stranger finds it.
class Door {
 public:
  /// `overheard`: what a rank has said when it connected.
  Door(const net::Address& address, std::vector<std::byte> overheard)
      : address_(address), overheard_(std::move(overheard)) {}

  /// One connection. Returns whether it was answered by more than a greeting and a proof, which
  /// anybody gets.
  bool knock(Manner manner, std::mt19937& random) {
    constexpr std::size_t kGreetingAndProof = 48 + 32;
    try {
      const Fd fd = net::connect_to(address_, Deadline::after(milliseconds(2000)));
      const std::vector<std::byte> words = words_of(manner, random);
      const std::array<std::span<const std::byte>, 1> pieces = {words};
      net::try_write(fd.get(), pieces);
      if (manner == Manner::kSlow) {  // it stays, and says no more
        slow_.push_back(Fd(::dup(fd.get())));
        if (slow_.size() > 64) slow_.erase(slow_.begin());
        return false;
      }
      return bytes_from(fd.get()) > kGreetingAndProof;
    } catch (const Error&) {
      return false;  // it was not even let in
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
        return overheard_;
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
    std::size_t heard = 0;
    const Deadline deadline = Deadline::after(milliseconds(20));
    while (!deadline.passed()) {
      const net::Moved moved = net::try_read(fd, into);
      if (moved.closed) break;
      heard += static_cast<std::size_t>(moved.bytes.value);
      std::array<pollfd, 1> entry = {pollfd{fd, POLLIN, 0}};
      if (moved.bytes == 0_B && !net::poll_until(entry, deadline)) break;
    }
    return heard;
  }

  net::Address address_;
  std::vector<std::byte> overheard_;
  std::vector<Fd> slow_;
};

class StrangersTest : public ::testing::Test {
 protected:
  /// Rank 1 comes by way of somebody who listens.
  void start() {
    start(0, port_);
    const net::Address store = net::Address::parse(fmt::format("127.0.0.1:{}", port_));
    net::connect_patiently({store}, Deadline::after(kPatience));  // until it serves
    meddler_ = std::make_unique<Meddler>(store);
    start(1, meddler_->address().port());
    ASSERT_TRUE(processes_.wait_for_output(0, "at ", Deadline::after(kPatience)));
  }

  void start(Rank rank, std::uint16_t port) {
    Drill drill;
    drill.transport = "tcp";
    drill.victim = -1;
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
                      {"PEAL_TRANSPORT", "tcp"},
                      {"PEAL_TIMEOUT", "60"}});
  }

  /// How many operations rank 0 has carried out.
  long rounds() {
    const std::string& text = processes_.output(0);
    const auto last = text.rfind("at ", text.rfind('\n'));
    return last == std::string::npos ? 0 : std::stol(text.substr(last + 3));
  }

  double rounds_per_second(Duration length) {
    const long before = rounds();
    const TimePoint begin = Clock::now();
    std::this_thread::sleep_for(length);
    return static_cast<double>(rounds() - before) /
           std::chrono::duration<double>(Clock::now() - begin).count();
  }

  ReservedPort reserved_;
  std::uint16_t port_ = reserved_.number();
  std::unique_ptr<Meddler> meddler_;
  Processes processes_;
};

TEST_F(StrangersTest, NobodyUnknownGetsInAndTheJobGoesOn) {
  start();
  // Strangers are elsewhere: what they do themselves is not to cost the job its cores.
  ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 19), 0);
  Door door(net::Address::parse(fmt::format("127.0.0.1:{}", port_)), meddler_->overheard());
  ASSERT_GT(meddler_->overheard().size(), 80U) << "a greeting and a proof";
  const double before_them = rounds_per_second(kMeasured);
  std::mt19937 random(1);
  int answered = 0;
  const long before = rounds();
  const TimePoint begin = Clock::now();
  for (int i = 0; i < number_of_strangers(); ++i) {
    answered += door.knock(kManners[static_cast<std::size_t>(i) % kManners.size()], random) ? 1 : 0;
  }
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  const double besieged = static_cast<double>(rounds() - before) / took;
  EXPECT_EQ(answered, 0) << "strangers were served";
  for (const std::size_t rank : {0, 1}) {
    EXPECT_THAT(processes_.output(rank), Not(HasSubstr("ended"))) << "rank " << rank;
  }
  const double after_them = rounds_per_second(kMeasured);
  const long then = rounds();
  const Deadline deadline = Deadline::after(kPatience);
  while (rounds() == then && !deadline.passed()) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_GT(rounds(), then) << "the job does not go on";
  std::cout << fmt::format(
      "{} strangers in {:.1f} s, {} served; operations a second: {:.0f} before, {:.0f} meanwhile, "
      "{:.0f} after; meanwhile {:.3f} of the others' mean\n",
      number_of_strangers(),
      took,
      answered,
      before_them,
      besieged,
      after_them,
      besieged / ((before_them + after_them) / 2));
}

}  // namespace
}  // namespace peal::testing
