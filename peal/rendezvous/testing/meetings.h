// Test meetings over real sockets and files. The ranks are threads, each with its own environment.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/testing/soon.h"
#include "peal/net/testing/reserved_port.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal::rendezvous::testing {

using Variables = std::map<std::string, std::string>;

struct Participant {
  MeetRequest request;
  Variables variables = {};
  Config config = {};
  Report report = silent_report();
};

struct Outcome {
  std::optional<Meeting> meeting;
  std::optional<Error> error;
};

inline Outcome attend(const Participant& participant, Deadline deadline) {
  try {
    return {meet(participant.request,
                 participant.config,
                 fixed_environment(participant.variables),
                 deadline,
                 participant.report),
            std::nullopt};
  } catch (const Error& error) {
    return {std::nullopt, error};
  }
}

inline std::vector<Outcome> meet_all(const std::vector<Participant>& attendants,
                                     Deadline deadline = soon()) {
  std::vector<std::future<Outcome>> threads;
  for (const Participant& participant : attendants) {
    threads.push_back(
        std::async(std::launch::async, [&, deadline] { return attend(participant, deadline); }));
  }
  std::vector<Outcome> outcomes;
  for (auto& thread : threads) outcomes.push_back(thread.get());
  return outcomes;
}

/// Releases all stores at once, as ending processes do.
inline void leave_all(std::vector<Outcome> outcomes) {
  std::vector<std::future<void>> threads;
  for (Outcome& outcome : outcomes) {
    threads.push_back(std::async(std::launch::async,
                                 [own = std::move(outcome)]() mutable { own.meeting.reset(); }));
  }
}

inline std::vector<Participant> ranks_of(const std::string& url, int world_size) {
  std::vector<Participant> attendants;
  for (Rank rank = 0; rank < world_size; ++rank) {
    attendants.push_back({{.url = url, .rank = rank, .world_size = world_size}});
  }
  return attendants;
}

inline void expect_met(std::vector<Outcome> outcomes) {
  const int size = static_cast<int>(outcomes.size());
  for (Rank rank = 0; rank < size; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
    EXPECT_EQ(outcome.meeting->identity.rank, rank);
    EXPECT_EQ(outcome.meeting->identity.world_size, size);
    EXPECT_EQ(outcome.meeting->identity.local_rank, rank);
    EXPECT_EQ(outcome.meeting->identity.local_world_size, size);
    EXPECT_EQ(outcome.meeting->job, outcomes[0].meeting->job);
    EXPECT_TRUE(outcome.meeting->is_one_host);
    outcome.meeting->store->set("from" + std::to_string(rank), std::to_string(rank));
  }
  for (const Outcome& outcome : outcomes) {
    for (Rank rank = 0; rank < size; ++rank) {
      EXPECT_EQ(outcome.meeting->store->get("from" + std::to_string(rank), soon()),
                std::to_string(rank));
    }
  }
  leave_all(std::move(outcomes));
}

inline void expect_all(const std::vector<Outcome>& outcomes,
                       ErrorKind kind,
                       const ::testing::Matcher<std::string>& matcher) {
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->kind(), kind) << outcome.error->what();
    EXPECT_THAT(std::string(outcome.error->what()), matcher);
  }
}

class MeetTest : public ::testing::Test {
 protected:
  ~MeetTest() override {
    EXPECT_LT(Clock::now() - begin_, std::chrono::seconds(30))
        << "an error came only at the deadline";
    std::filesystem::remove(path_);
  }

  /// A free port of `host`, which is numeric. The port stays reserved until the test ends.
  std::string free_port(const std::string& host = "127.0.0.1") {
    return ports_.emplace_back(host).text();
  }
  std::string free_url(const std::string& host = "127.0.0.1") {
    return "tcp://" + host + ":" + free_port(host);
  }

  TimePoint begin_ = Clock::now();
  std::vector<net::ReservedPort> ports_;
  std::string path_ = ::testing::TempDir() + "peal-meet-" + std::to_string(::getpid());
};

}  // namespace peal::rendezvous::testing
