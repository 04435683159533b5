// A rank forks in the middle of its work, as a data loader does. The child is not in the group. All
// calls on its copies of the parent's objects return, and the parent's group continues to work.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/base/testing/in_child.h"
#include "peal/group/process_group.h"

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

/// What a rank holds of a group; the only references.
struct Leftovers {
  ProcessGroupPtr group;
  Memory allocated = {};
  Registration registered = {};
  WorkPtr work = nullptr;
};

class ForkedTest : public ::testing::TestWithParam<Fabric> {
 protected:
  /// Each of two ranks forks in turn, while an operation of its group is in flight. The child's
  /// `body` returns 0 on success.
  void expect_of_children(const std::function<int(Leftovers&)>& body) {
    Job job(GetParam(), 2);
    const auto outcomes = on_ranks(2, [&](Rank rank) -> std::string {
      std::vector<std::byte> memory(1 << 16);  // outlives its registration
      Leftovers all{.group = job.join(rank)};
      std::vector<float> data(1000, 1);
      std::string wrong;
      for (const Rank forks : {0, 1}) {
        std::vector<float> message(1, 2);
        if (rank == forks) {
          all.allocated = all.group->allocate(100_KiB);
          all.registered = all.group->register_memory(memory.data(), 64_KiB);
          all.work = all.group->irecv(message, 1 - rank);
          const int status = in_child([&] { return body(all); });
          if (status != 0) wrong += "the child returned " + std::to_string(status) + "; ";
        }
        all.group->barrier();
        if (rank != forks) all.group->send(message, forks);
        if (rank == forks) all.work->wait();
        all.group->all_reduce(data);
      }
      if (data.front() != 4) wrong += "a wrong sum";
      all.group->destroy();
      return wrong;
    });
    EXPECT_EQ(complaints(outcomes), "");
  }
};

TEST_P(ForkedTest, CallsOfAChildAreUsageErrors) {
  expect_of_children([](Leftovers& all) {
    std::vector<float> data(10);
    const auto is_refused = [](const std::function<void()>& call) {
      const Error error = error_of(call);
      return error.kind() == ErrorKind::kUsage &&
             error.message().find("was forked from") != std::string::npos;
    };
    if (!is_refused([&] { all.group->all_reduce(data); })) return 1;
    if (!is_refused([&] { all.group->send(data, 1 - all.group->rank()); })) return 2;
    if (!is_refused([&] { all.group->monitored_barrier(); })) return 3;
    if (!is_refused([&] { all.group->split(0); })) return 4;
    return is_refused([&] { all.group->allocate(1_KiB); }) ? 0 : 5;
  });
}

TEST_P(ForkedTest, AWaitOfAChildForTheParentsOperationIsAUsageError) {
  expect_of_children([](Leftovers& all) {
    const Error error = error_of([&] { all.work->wait(); });
    return error.kind() == ErrorKind::kUsage ? 0 : 1;
  });
}

TEST_P(ForkedTest, AChildThatDestroysItsObjectsChangesNothingForTheParent) {
  expect_of_children([](Leftovers& all) {
    all.work.reset();
    all.registered = {};
    all.allocated = {};
    all.group->abort("a child");
    all.group->destroy();
    all.group.reset();
    return 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         ForkedTest,
                         ::testing::Values(Fabric::kMemory, Fabric::kShm, Fabric::kTcp),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
