// Drives `decide` with random events, and checks what must hold in every job.
#include <iostream>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "peal/launch/elastic/decide.h"

namespace peal::launch::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A job whose workers, hosts and clock do random things that real ones can do.
class RandomJob {
 public:
  explicit RandomJob(unsigned seed) : random_(seed) {
    options_.min_ranks = number(1, 3);
    if (number(0, 1) == 1) options_.max_ranks = options_.min_ranks + number(0, 4);
    if (number(0, 3) == 0) options_.reset_limit = number(0, 5);
    options_.timeout = seconds(60);
    state_.begun = now_;
    find_hosts();
  }

  /// Runs the job to its end. Returns whether it has ended.
  bool run() {
    for (int event = 0; event < 6000; ++event) {
      if (act()) return true;
      happen(event);
      if (::testing::Test::HasFatalFailure()) return true;
    }
    return false;
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }

  void find_hosts() {
    std::vector<HostSlots> found;
    for (const char* name : {"a", "b", "c", "d"}) {
      if (number(0, 3) > 0) found.push_back({name, number(1, 3)});
    }
    std::ranges::shuffle(found, random_);
    hosts_found(state_, found);
  }

  /// A host becomes ready, refuses, or is lost with its workers.
  void change_host() {
    if (state_.hosts.empty()) return;
    const auto index =
        static_cast<std::size_t>(number(0, static_cast<int>(state_.hosts.size()) - 1));
    const Host host = state_.hosts[index];
    if (host.reach == Reach::kConnecting && number(0, 3) > 0) return host_ready(state_, host.name);
    if (host.reach == Reach::kNone || number(0, 3) > 0) return;
    for (const Worker& worker : std::vector(state_.workers)) {
      if (worker.host == host.name) end(worker.number, WorkerEnd::kLost);
    }
    host_failed(state_, now_, host.name, "lost", options_, number(0, 99) / 100.0);
  }

  /// A living worker, if there is any in one of these phases.
  std::optional<int> one_of(std::set<Phase> phases) {
    std::vector<int> numbers;
    for (const Worker& worker : state_.workers) {
      if (phases.contains(worker.phase)) numbers.push_back(worker.number);
    }
    if (numbers.empty()) return {};
    return numbers[static_cast<std::size_t>(number(0, static_cast<int>(numbers.size()) - 1))];
  }

  void end(std::optional<int> worker, WorkerEnd how) {
    if (worker) worker_ended(state_, now_, *worker, how, options_, number(0, 99) / 100.0);
  }

  void happen(int event) {
    now_ += milliseconds(number(0, 2000));
    const int what = number(0, 99);
    if (what < 5) return find_hosts();
    if (number(0, 9) == 0) return change_host();
    if (what < 12) {
      return end(one_of({Phase::kStarting, Phase::kAsking, Phase::kTraining}),
                 number(0, 1) == 0 ? WorkerEnd::kFailed : WorkerEnd::kKilled);
    }
    if (what < 15 && event > 100) return end(one_of({Phase::kTraining}), WorkerEnd::kWell);
    if (what < 17 && event > 100) {
      if (const auto worker = one_of({Phase::kTraining})) worker_finishes(state_, now_, *worker);
      return;
    }
    if (what < 25) return end(one_of({Phase::kFinishing}), WorkerEnd::kWell);
    if (what < 35) return end(one_of({Phase::kLeaving}), WorkerEnd::kFailed);
    if (what < 55) {
      if (const auto worker = one_of({Phase::kTraining})) worker_synchronized(state_, *worker);
      return;
    }
    if (what < 60) {
      if (const auto worker = one_of({Phase::kTraining})) worker_progressed(state_, *worker);
      return;
    }
    if (const auto worker = one_of({Phase::kStarting, Phase::kTraining})) {
      worker_asked(state_, now_, *worker);
    }
  }

  /// Acts until nothing is to be done; returns whether the job has ended.
  bool act() {
    for (int i = 0; i < 100; ++i) {
      const Decision decision = decide(now_, state_, options_);
      if (std::holds_alternative<Wait>(decision.action)) return false;
      const bool is_end =
          std::visit([&](const auto& action) { return apply(action); }, decision.action);
      if (is_end || ::testing::Test::HasFatalFailure()) return true;
    }
    ADD_FAILURE() << "decides without an end";
    return true;
  }

  static bool apply(const Wait&) { return false; }
  bool apply(const ConnectHost& action) {
    for (const Host& host : state_.hosts) {
      if (host.name != action.host) continue;
      EXPECT_TRUE(host.is_found && host.reach == Reach::kNone && now_ >= host.barred_until);
    }
    host_connects(state_, now_, action.host);
    return false;
  }
  bool apply(const LeaveHost& action) {
    for (const Worker& worker : state_.workers) {
      EXPECT_FALSE(is_alive(worker.phase) && worker.host == action.host) << name_of(worker);
    }
    host_left(state_, action.host);
    return false;
  }
  bool apply(const StartWorker& action) {
    int present = 0;
    for (const Worker& worker : state_.workers) {
      EXPECT_FALSE(is_alive(worker.phase) && worker.host == action.host &&
                   worker.slot == action.slot)
          << "two workers in slot " << name_of(worker);
      EXPECT_NE(worker.phase, Phase::kSucceeded);
      present += is_alive(worker.phase) && worker.phase != Phase::kLeaving ? 1 : 0;
    }
    EXPECT_LT(present, options_.max_ranks.value_or(1000));
    for (const Host& host : state_.hosts) {
      if (host.name != action.host) continue;
      EXPECT_TRUE(host.is_found && host.reach == Reach::kReady);
      EXPECT_LT(action.slot, host.slots);
      EXPECT_GE(now_, host.barred_until);
    }
    worker_started(state_, now_, action.host, action.slot);
    return false;
  }
  bool apply(const BeginRound& action) {
    const bool is_closing = one_of({Phase::kSucceeded, Phase::kFinishing}).has_value();
    EXPECT_FALSE(action.members.empty());
    if (!is_closing) {
      EXPECT_GE(std::ssize(action.members), options_.min_ranks);
    }
    EXPECT_LE(std::ssize(action.members), options_.max_ranks.value_or(1000));
    std::set<Rank> ranks;
    std::set<int> members;
    std::map<std::string, std::set<Rank>> local;
    Rank last_earlier = -1;
    for (const Member& member : action.members) {
      const Worker& worker = state_.workers.at(static_cast<std::size_t>(member.worker));
      EXPECT_EQ(worker.phase, Phase::kAsking);
      EXPECT_TRUE(has_slot(state_, worker));
      ranks.insert(member.place.rank);
      members.insert(member.worker);
      local[worker.host].insert(member.place.local_rank);
      EXPECT_LT(member.place.cross_rank, member.place.cross_size);
      if (!worker.rank) continue;
      EXPECT_GT(*worker.rank, last_earlier) << "workers that stay keep their order";
      last_earlier = *worker.rank;
    }
    EXPECT_EQ(ranks.size(), action.members.size());
    EXPECT_EQ(*ranks.begin(), 0);
    EXPECT_EQ(*ranks.rbegin(), std::ssize(ranks) - 1);
    EXPECT_EQ(members.size(), action.members.size());
    for (const auto& [host, numbers] : local) {
      EXPECT_EQ(*numbers.rbegin(), std::ssize(numbers) - 1) << host;
    }
    if (state_.round > 0) {
      const Worker& first =
          state_.workers.at(static_cast<std::size_t>(action.members.front().worker));
      EXPECT_TRUE(first.rank && first.has_state) << "rank 0 has no state";
    }
    EXPECT_LE(state_.round, options_.reset_limit.value_or(10'000));
    round_began(state_, now_, action.members);
    return false;
  }
  bool apply(const TellChanges& action) {
    EXPECT_NE(action.changes, state_.told);
    EXPECT_TRUE(one_of({Phase::kTraining}));
    state_.told = action.changes;
    return false;
  }
  bool apply(const RemoveWorker& action) {
    EXPECT_EQ(state_.workers.at(static_cast<std::size_t>(action.worker)).phase, Phase::kAsking);
    worker_leaves(state_, now_, action.worker);
    return false;
  }
  bool apply(const StopWorker& action) {
    const Worker& worker = state_.workers.at(static_cast<std::size_t>(action.worker));
    EXPECT_TRUE(is_alive(worker.phase) && !worker.is_told_to_end);
    worker_stopped(state_, now_, action.worker);
    return false;
  }
  bool apply(const EndWell&) {
    for (const Worker& worker : state_.workers) EXPECT_FALSE(is_alive(worker.phase));
    EXPECT_TRUE(one_of({Phase::kSucceeded}));
    return true;
  }
  bool apply(const EndBadly& action) {
    EXPECT_FALSE(action.why.empty());
    TimePoint last_success = TimePoint::min();
    TimePoint last_failure = TimePoint::min();
    for (const Worker& worker : state_.workers) {
      if (worker.phase == Phase::kFailed) last_failure = std::max(last_failure, worker.since);
      if (worker.phase != Phase::kSucceeded) continue;
      EXPECT_FALSE(worker.has_announced_end) << action.why;
      last_success = std::max(last_success, worker.since);
    }
    if (one_of({Phase::kSucceeded})) {
      EXPECT_GT(last_failure, last_success) << action.why;
    }
    return true;
  }

  std::mt19937 random_;
  ElasticOptions options_;
  State state_;
  TimePoint now_{std::chrono::hours(1)};
};

TEST(DecidePropertyTest, RandomJobsKeepTheRulesAndEnd) {
  const char* const given = std::getenv("PEAL_TEST_SEED");
  const unsigned first =
      given != nullptr ? static_cast<unsigned>(std::stoul(given)) : std::random_device()();
  std::cout << "PEAL_TEST_SEED=" << first << std::endl;
  for (unsigned i = 0; i < 2000; ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    ASSERT_TRUE(RandomJob(first + i).run());
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace peal::launch::elastic
