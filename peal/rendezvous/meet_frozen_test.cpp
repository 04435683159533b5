// Freezes a rank before each of its calls to the store. The other ranks must either meet or name
// the frozen rank.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/testing/sanitized.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/memory_store.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using testing::attend;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::Participant;
using testing::ranks_of;

using StorePtr = std::shared_ptr<store::Store>;

constexpr int kRanks = 3;
constexpr int kNever = -1;

/// One rank's access to the store. The rank freezes before one of its calls until it is thawed.
class FreezingStore final : public store::Store {
 public:
  FreezingStore(StorePtr base, int before_call)
      : base_(std::move(base)), before_call_(before_call) {}

  void set(std::string_view key, std::string_view value) override { next()->set(key, value); }
  std::string get(std::string_view key, Deadline deadline) override {
    return next(Call::kWaits)->get(key, deadline);
  }
  std::optional<std::string> try_get(std::string_view key) override { return next()->try_get(key); }
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return next()->add(key, amount);
  }
  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return next()->compare_set(key, expected, desired);
  }
  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    next(Call::kWaits)->wait(keys, deadline);
  }
  bool erase(std::string_view key) override { return next()->erase(key); }
  void set_will(std::string_view key, std::string_view value) override {
    next()->set_will(key, value);
  }
  bool answers(Deadline deadline) override { return next()->answers(deadline); }

  int calls() {
    return state_.with([](const State& state) { return state.calls; });
  }
  /// Returns when the rank is frozen or waits for the others.
  void await_rest() {
    state_.wait(
        soon(), [](const State& state) { return state.is_frozen || state.waits; }, [](State&) {});
  }
  void thaw() {
    state_.update([](State& state) { state.is_thawed = true; });
  }

 private:
  enum class Call : unsigned char { kReturns, kWaits };
  struct State {
    int calls = 0;
    bool waits = false;  // for the others
    bool is_frozen = false;
    bool is_thawed = false;
  };

  StorePtr& next(Call call = Call::kReturns) {
    const bool freezes = state_.update([&](State& state) {
      const bool is_it = state.calls++ == before_call_;
      state.is_frozen |= is_it;
      state.waits |= call == Call::kWaits;
      return is_it;
    });
    if (freezes) {
      state_.wait(
          soon(), [](const State& state) { return state.is_thawed; }, [](State&) {});
    }
    return base_;
  }

  StorePtr base_;
  int before_call_;
  Guarded<State> state_;
};

struct Target {
  Rank rank = 0;
  bool is_last = false;  // true: it comes after the others; false: it freezes before they come
};

struct Course {
  std::vector<Outcome> others;
  Outcome target;  // after it was thawed
  int calls = 0;   // of the target
};

Course meet_with(Target target, int before_call) {
  constexpr milliseconds kTimeout{kSanitized ? 6000 : 2000};
  const StorePtr store = store::make_memory_store();
  const auto freezing = std::make_shared<FreezingStore>(store, before_call);
  Participant target_participant;
  std::vector<Participant> others;
  std::vector<std::string> marks;
  for (Participant& participant : ranks_of("env://", kRanks)) {
    const bool is_target = participant.request.rank == target.rank;
    participant.request.store = is_target ? freezing : store;
    if (!is_target) marks.push_back("meeting/ready/" + std::to_string(*participant.request.rank));
    (is_target ? target_participant : others.emplace_back()) = participant;
  }
  std::future<Outcome> outcome;
  const auto begin = [&] {
    outcome = std::async(std::launch::async, [&] { return attend(target_participant, soon()); });
    freezing->await_rest();
  };
  if (!target.is_last) begin();
  auto survivors =
      std::async(std::launch::async, [&] { return meet_all(others, Deadline::after(kTimeout)); });
  if (target.is_last) {
    store->wait(marks, soon());
    begin();
  }
  Course course;
  course.others = survivors.get();
  freezing->thaw();
  course.target = outcome.get();
  course.calls = freezing->calls();
  return course;
}

void expect_met_or_named(const Course& course, Rank target) {
  for (const Outcome& outcome : course.others) {
    EXPECT_EQ(outcome.meeting.has_value(), course.target.meeting.has_value())
        << "some ranks have met and others have not";
    if (outcome.meeting) continue;
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout) << outcome.error->what();
    EXPECT_THAT(
        std::string(outcome.error->what()),
        AllOf(HasSubstr("1 of 3 ranks "), HasSubstr(": rank " + std::to_string(target) + ";")));
  }
}

class MeetFrozenTest : public MeetTest, public ::testing::WithParamInterface<Target> {};

TEST_P(MeetFrozenTest, ARankThatFreezesBeforeAnyCallToTheStoreIsMetOrNamed) {
  const Target target = GetParam();
  const Course unharmed = meet_with(target, kNever);
  for (const Outcome& outcome : unharmed.others) {
    ASSERT_TRUE(outcome.meeting) << outcome.error->what();
  }
  std::vector<std::future<Course>> courses;
  for (int call = 0; call < unharmed.calls; ++call) {
    courses.push_back(std::async(std::launch::async, [=] { return meet_with(target, call); }));
  }
  int not_met = 0;
  for (std::size_t call = 0; call < courses.size(); ++call) {
    SCOPED_TRACE("frozen before call " + std::to_string(call));
    const Course course = courses[call].get();
    expect_met_or_named(course, target.rank);
    if (!course.target.meeting) ++not_met;
  }
  EXPECT_GT(not_met, 5) << "the ranks met although the target was frozen before most of its calls";
}

INSTANTIATE_TEST_SUITE_P(
    Targets,
    MeetFrozenTest,
    ::testing::Values(Target{0, false}, Target{0, true}, Target{2, false}, Target{2, true}),
    [](const auto& named) {
      return "Rank" + std::to_string(named.param.rank) + "Comes" +
             (named.param.is_last ? "Last" : "First");
    });

}  // namespace
}  // namespace peal::rendezvous
