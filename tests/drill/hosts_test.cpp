// Jobs across hosts whose lines are cut, flap and are slow, and whose ranks are late. The hosts are
// network namespaces of this machine. All ranks notice a lost host within a second (see
// notice_limit), and never take a late host for a lost one. The tests need root, and are skipped
// without it.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/bench/host_net.h"
#include "peal/bench/subprocess.h"

#include "tests/drill/drill.h"
#include "tests/support/leftovers.h"
#include "tests/support/notice.h"
#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// The settings of one job.
struct Job {
  std::string rate = {};            // of the lines between the hosts
  std::string timeout = "3600";     // in seconds
  std::optional<int> stopped = {};  // the rank that the test stops
  /// Whether all ranks are linked from the start, or each link is made when it is needed.
  std::string linked_at_start = "16";
};

/// How late this machine lets a thread run, measured from the construction on.
class Lateness {
 public:
  Duration longest() const { return longest_.load(); }

 private:
  std::atomic<Duration> longest_{Duration::zero()};
  std::jthread thread_{[this](const std::stop_token& stop) {
    constexpr milliseconds kSleep{10};
    while (!stop.stop_requested()) {
      const TimePoint due = Clock::now() + kSleep;
      std::this_thread::sleep_until(due);
      longest_ = std::max(longest_.load(), Clock::now() - due);
    }
  }};
};

/// A host is lost after 800 ms of silence, counted from the last beat that arrived.
class HostsTest : public ::testing::Test {
 protected:
  void lay(int hosts, int ranks_per_host, const Job& job = {}) {
    lay_hosts(hosts, ranks_per_host, job.rate);
    if (IsSkipped()) return;
    const Drill drill{
        .seed = 1, .ranks = ranks(), .transport = "auto", .target = -1, .rounds = 1'000'000'000};
    std::vector<std::string> program = {PEAL_DRILL_RANK};
    for (const std::string& argument : rank_arguments(drill)) program.push_back(argument);
    start(program, job);
    const Deadline limit = Deadline::after(kLimit);
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks()); ++rank) {
      ASSERT_TRUE(processes_.wait_for_output(rank, "ready", limit)) << "rank " << rank;
    }
    start_.open();
    expect_all_go_on();
  }

  void lay_hosts(int hosts, int ranks_per_host, const std::string& rate = "") {
    bench::HostOptions options;
    options.hosts = hosts;
    options.ranks_per_host = ranks_per_host;
    options.rate = rate;
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces take root";
    try {
      net_ = std::make_unique<bench::HostNet>(options);
    } catch (const Error& error) {
      GTEST_SKIP() << "no network namespaces can be made here: " << error.what();
    }
  }

  /// The last argument of the program is the rank's number.
  void start(const std::vector<std::string>& program, const Job& job = {}) {
    const std::string ip = *bench::find_program("ip");
    for (int rank = 0; rank < ranks(); ++rank) {
      const int per_host = net().options().ranks_per_host;
      const bench::Host& host = net().hosts()[static_cast<std::size_t>(rank / per_host)];
      std::vector<std::string> command = {ip, "netns", "exec", host.name};
      command.insert(command.end(), program.begin(), program.end());
      command.push_back(std::to_string(rank));
      Processes::Variables variables = {{"RANK", std::to_string(rank)},
                                        {"WORLD_SIZE", std::to_string(ranks())},
                                        {"MASTER_ADDR", net().hosts().front().address},
                                        {"MASTER_PORT", "20001"},
                                        {"PEAL_SECRET", "a secret of the drill"},
                                        {"PEAL_TIMEOUT", job.timeout},
                                        {"PEAL_LINKED_AT_START", job.linked_at_start},
                                        {"PEAL_TEST_JOB", job_}};
      variables.merge(start_.variables());
      if (rank == job.stopped) variables.merge(without_leak_check());
      processes_.start(command, variables);
    }
  }

  /// Waits until the rank has written the text.
  bool says(std::size_t rank, const std::string& text, Duration limit) {
    return processes_.wait_for_output(rank, text, Deadline(Clock::now() + limit));
  }

  int ranks() const { return net_->options().hosts * net_->options().ranks_per_host; }

  void expect_all_go_on() { EXPECT_TRUE(all_go_on()); }

  /// Waits until every rank has completed operations from now on, or one has ended.
  ::testing::AssertionResult all_go_on() {
    std::vector<std::size_t> before;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks()); ++rank) {
      before.push_back(processes_.output(rank).size() - 1);  // at the end of its last line
    }
    const Deadline deadline = Deadline::after(kLimit);
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      while (processes_.output(rank).find("\nat ", before[rank]) == std::string::npos) {
        const bool has_ended = processes_.output(rank).find("ended") != std::string::npos;
        if (has_ended || deadline.passed()) {
          return ::testing::AssertionFailure()
                 << "rank " << rank << " does not go on: " << processes_.output(rank);
        }
        std::this_thread::sleep_for(milliseconds(5));
      }
    }
    return ::testing::AssertionSuccess();
  }

  /// How long after `since` the rank ended, and its error.
  struct End {
    Duration after;
    std::string error;
  };
  std::optional<End> end_of(std::size_t rank, TimePoint since) {
    if (!processes_.wait_for_output(rank, "again", Deadline::after(kLimit))) return std::nullopt;
    std::istringstream words(
        processes_.output(rank).substr(processes_.output(rank).find("ended ") + 6));
    std::int64_t time = 0;
    std::string error;
    words >> time;
    std::getline(words, error);
    return End{std::chrono::nanoseconds(time) - since.time_since_epoch(), error};
  }

  void expect_end_in_time(std::size_t rank, TimePoint since, const std::string& cause) {
    const auto end = end_of(rank, since);
    ASSERT_TRUE(end) << "rank " << rank << " hangs";
    EXPECT_LE(end->after, notice_limit()) << "rank " << rank << ": " << end->error;
    EXPECT_THAT(end->error, ::testing::AllOf(HasSubstr("peer_lost"), HasSubstr(cause)));
  }

  /// The killed rank is alone on its host and leaves behind a child, as `what` says (rank.cpp).
  void expect_notice_of_killed_rank(const std::string& what) {
    lay_hosts(2, 1);
    if (IsSkipped()) return;
    start({PEAL_TEST_RANK, what});
    for (const std::size_t rank : {0, 1}) ASSERT_TRUE(says(rank, "working", kLimit)) << rank;
    send_signal(1, SIGKILL);
    EXPECT_TRUE(says(0, "ended with peer_lost: rank 1", notice_limit()));
    for (const pid_t child : belongings_of("PEAL_TEST_JOB=" + job_).processes)
      ::kill(child, SIGKILL);
  }

  /// SIGSTOP, and SIGCONT after `length`.
  void pause(std::size_t rank, milliseconds length) {
    processes_.signal(rank, SIGSTOP);
    std::this_thread::sleep_for(length);
    processes_.signal(rank, SIGCONT);
  }

  void send_signal(std::size_t rank, int number) { processes_.signal(rank, number); }

  const bench::HostNet& net() const { return *net_; }

 private:
  const std::string job_ = "hosts." + std::to_string(::getpid());
  std::unique_ptr<bench::HostNet> net_;
  StartSignal start_;
  Processes processes_;  // ends before the hosts do
};

TEST_F(HostsTest, AHostThatVanishesIsNoticedByAllWithinASecond) {
  lay(3, 1);
  if (IsSkipped()) return;
  const TimePoint cut = Clock::now();
  net().disconnect_host(2);
  for (const std::size_t rank : {0, 1}) expect_end_in_time(rank, cut, "rank 2 (");
  expect_end_in_time(2, cut, "rank ");
}

TEST_F(HostsTest, AKilledRankIsNoticedAtOnceThoughItsForkedChildLivesOn) {
  expect_notice_of_killed_rank("leave");
}

TEST_F(HostsTest, AKilledRankIsNoticedAtOnceThoughAProgramThatItStartedLivesOn) {
  expect_notice_of_killed_rank("leave_program");
}

TEST_F(HostsTest, AHostOfSeveralRanksIsLostWithAllOfThem) {
  lay(2, 2);
  if (IsSkipped()) return;
  const TimePoint cut = Clock::now();
  net().disconnect_host(1);
  for (const std::size_t rank : {0, 1}) expect_end_in_time(rank, cut, "not been reachable");
  for (const std::size_t rank : {2, 3}) expect_end_in_time(rank, cut, "not been reachable");
}

TEST_F(HostsTest, AVanishedHostIsNoticedByRanksThatHaveNoLinkToIt) {
  lay(3, 2, {.linked_at_start = "0"});
  if (IsSkipped()) return;
  const TimePoint cut = Clock::now();
  net().disconnect_host(2);
  for (const std::size_t rank : {0, 1, 2, 3}) expect_end_in_time(rank, cut, "not been reachable");
}

TEST_F(HostsTest, AKilledRankIsNoticedByRanksThatHaveNoLinkToIt) {
  lay(3, 2, {.linked_at_start = "0"});
  if (IsSkipped()) return;
  const TimePoint killed = Clock::now();
  send_signal(5, SIGKILL);
  for (const std::size_t rank : {0, 1, 2, 3, 4}) expect_end_in_time(rank, killed, "rank 5 (");
}

TEST_F(HostsTest, AStoppedRankIsReportedByRanksThatHaveNoLinkToIt) {
  lay(2, 2, {.timeout = "5", .stopped = 3, .linked_at_start = "0"});
  if (IsSkipped()) return;
  send_signal(3, SIGSTOP);
  for (const std::size_t rank : {0, 1, 2}) {
    const auto end = end_of(rank, Clock::now());
    ASSERT_TRUE(end) << "rank " << rank << " hangs";
    EXPECT_THAT(end->error, ContainsRegex("timeout: .*rank 3 .*is stopped")) << rank;
  }
  send_signal(3, SIGCONT);
}

TEST_F(HostsTest, ALineThatIsDownFor300MillisecondsIsNotALoss) {
  lay(2, 1);
  if (IsSkipped()) return;
  Lateness lateness;
  for (int i = 0; i < 5; ++i) {
    const TimePoint down = Clock::now();
    net().disconnect_host(1);
    std::this_thread::sleep_for(milliseconds(300));
    net().connect_host(1);
    const bool was_down_longer = Clock::now() - down > milliseconds(400);
    const auto go_on = all_go_on();
    const bool is_lost = std::string_view(go_on.message()).find("peer_lost: ") != std::string::npos;
    if (is_lost && (was_down_longer || lateness.longest() > milliseconds(50))) {
      GTEST_SKIP()
          << "the machine is too busy to plug a line in, or to send a beat, when it is due";
    }
    ASSERT_TRUE(go_on);
    // Data may arrive before the beats do. A line that goes down again at once would be down
    // longer.
    std::this_thread::sleep_for(seconds(1));
  }
}

TEST_F(HostsTest, ARankThatReadsNothingForThreeSecondsIsNotLost) {
  lay(2, 2, {.stopped = 3});
  if (IsSkipped()) return;
  pause(3, seconds(3));
  expect_all_go_on();
}

TEST_F(HostsTest, AStoppedRankIsReportedOnTheOtherHostToo) {
  lay(2, 2, {.timeout = "5", .stopped = 3});
  if (IsSkipped()) return;
  send_signal(3, SIGSTOP);
  for (const std::size_t rank : {0, 1, 2}) {
    const auto end = end_of(rank, Clock::now());
    ASSERT_TRUE(end) << "rank " << rank << " hangs";
    EXPECT_THAT(end->error, ContainsRegex("timeout: .*rank 3 .*is stopped")) << rank;
  }
  send_signal(3, SIGCONT);
}

TEST_F(HostsTest, ASlowLineIsNotALoss) {
  lay(2, 1, {.rate = "8mbit"});
  if (IsSkipped()) return;
  for (int i = 0; i < 3; ++i) expect_all_go_on();
}

TEST_F(HostsTest, RanksWithHardlyAnyCpuAreNotLost) {
  lay(2, 2);
  if (IsSkipped()) return;
  std::vector<std::jthread> burners;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
    burners.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  }
  const Deadline end = Deadline::after(seconds(3));
  while (!end.passed()) expect_all_go_on();
}

}  // namespace
}  // namespace peal::testing
