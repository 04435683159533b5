// Wherever a rank freezes on its way through a meeting, the others have met it or name it.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/sanitized.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/memory_store.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using testing::attend;
using testing::Attendant;
using ::testing::HasSubstr;
using testing::meet_all;
using testing::MeetTest;
using testing::Outcome;
using testing::ranks_of;
using testing::soon;

using StorePtr = std::shared_ptr<store::Store>;

/// One rank's way to the store, on which it freezes before one of its calls, until it is thawed.
class FreezingStore final : public store::Store {
 public:
  FreezingStore(StorePtr base, int before) : base_(std::move(base)), calls_until_frozen_(before) {}

  void set(std::string_view key, std::string_view value) override { next()->set(key, value); }
  std::string get(std::string_view key, Deadline deadline) override {
    return next()->get(key, deadline);
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
    next()->wait(keys, deadline);
  }
  bool erase(std::string_view key) override { return next()->erase(key); }
  void set_will(std::string_view key, std::string_view value) override {
    next()->set_will(key, value);
  }
  bool answers(Deadline deadline) override { return next()->answers(deadline); }

  bool is_frozen() const { return is_frozen_; }
  void thaw() {
    is_thawed_ = true;
    is_thawed_.notify_all();
  }

 private:
  StorePtr& next() {
    if (calls_until_frozen_-- == 0) {
      is_frozen_ = true;
      is_thawed_.wait(false);
    }
    return base_;
  }

  StorePtr base_;
  int calls_until_frozen_;
  std::atomic<bool> is_frozen_ = false;
  std::atomic<bool> is_thawed_ = false;
};

constexpr int kRanks = 3;

struct Victim {
  Rank rank = 0;
  bool is_last = false;  // the others have arrived when it comes; else it has frozen when they come
};

class MeetFrozenTest : public MeetTest {
 protected:
  /// Whether the victim froze: that it has so many calls to make.
  static bool meets_or_names(Victim victim, int before_call) {
    const StorePtr store = store::make_memory_store();
    const auto frozen = std::make_shared<FreezingStore>(store, before_call);
    std::vector<Attendant> others = ranks_of("env://", kRanks);
    for (Attendant& attendant : others) attendant.wish.store = store;
    Attendant doomed = others[static_cast<std::size_t>(victim.rank)];
    doomed.wish.store = frozen;
    others.erase(others.begin() + victim.rank);

    std::future<Outcome> fate;
    const auto begin = [&] {
      fate = std::async(std::launch::async, [&] { return attend(doomed, soon()); });
      // One that has no more calls to make waits for the others.
      const Deadline patience = Deadline::after(kTimeout / 4);
      while (!frozen->is_frozen() && !patience.passed()) std::this_thread::yield();
    };
    if (!victim.is_last) begin();
    auto survivors =
        std::async(std::launch::async, [&] { return meet_all(others, Deadline::after(kTimeout)); });
    if (victim.is_last) {
      while (store->try_get("meeting/arrived") != std::to_string(kRanks - 1)) {
        std::this_thread::yield();
      }
      begin();
    }
    const std::vector<Outcome> outcomes = survivors.get();
    const bool was_frozen = frozen->is_frozen();
    frozen->thaw();
    const bool has_met = fate.get().meeting.has_value();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.meeting.has_value(), has_met) << "the ranks do not agree";
      if (outcome.meeting) continue;
      EXPECT_TRUE(was_frozen) << outcome.error->what();
      EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout) << outcome.error->what();
      EXPECT_THAT(std::string(outcome.error->what()),
                  AllOf(HasSubstr("1 of 3 ranks "),
                        HasSubstr(": rank " + std::to_string(victim.rank) + ";")));
    }
    return was_frozen;
  }

  static constexpr milliseconds kTimeout{kSanitized ? 500 : 150};
};

TEST_F(MeetFrozenTest, WhoeverFreezesBeforeAnyOfItsCallsToTheStore) {
  for (const Victim victim :
       {Victim{0, false}, Victim{0, true}, Victim{2, false}, Victim{2, true}}) {
    int call = 0;
    do {
      SCOPED_TRACE("rank " + std::to_string(victim.rank) +
                   (victim.is_last ? ", the last to come" : ", the first to come") +
                   ", frozen before call " + std::to_string(call));
      if (!meets_or_names(victim, call)) break;
    } while (++call < 100);
    EXPECT_GT(call, 5) << "hardly a call was met";
    EXPECT_LT(call, 100);
  }
}

}  // namespace
}  // namespace peal::rendezvous
