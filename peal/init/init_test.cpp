// Groups that meet on their own, in a given store, inside a launcher's job. The parts that init
// wires have their own tests.
#include "peal/init/init.h"

#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/store/memory_store.h"
#include "peal/store/prefix_store.h"

namespace peal {
namespace {

using ::testing::IsEmpty;

class InitTest : public ::testing::Test {
 protected:
  InitOptions options(Rank rank, int world_size) const {
    InitOptions options;
    options.store = store_;
    options.rank = rank;
    options.world_size = world_size;
    return options;
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  std::shared_ptr<store::Store> store_ = store::make_memory_store();
  const observe::TestFolder folder_;
  const ScopedVariable flight_dir_{"PEAL_FLIGHT_DIR", folder_.path()};
  const ScopedVariable job_{"PEAL_JOB", "mine"};
};

TEST_F(InitTest, TheWholeJobLeavesRecords) {
  const ProcessGroupPtr group = init_process_group(options(0, 1));
  EXPECT_THAT(files(), testing::Not(IsEmpty()));
}

TEST_F(InitTest, AGroupThatIsNotTheWholeJobLeavesNoRecords) {
  InitOptions some = options(0, 1);
  some.is_whole_job = false;
  const ProcessGroupPtr group = init_process_group(some);
  group->barrier();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(InitTest, OnlyTheWholeJobLeavesARecordOfAFailedStart) {
  const ScopedVariable rank("RANK", "1");
  const ScopedVariable size("WORLD_SIZE", "2");
  for (const bool is_whole_job : {false, true}) {
    InitOptions lonely = options(1, 2);
    lonely.store = store::make_prefix_store(store_, is_whole_job ? "whole" : "part");
    lonely.is_whole_job = is_whole_job;
    lonely.timeout = Timeout(50);
    EXPECT_THROW(init_process_group(lonely), Error);
    EXPECT_EQ(files().empty(), !is_whole_job);
  }
}

/// PEAL_INJECT names ranks of the whole job, and this group has fewer.
TEST_F(InitTest, AGroupThatIsNotTheWholeJobIgnoresInjectedFaults) {
  const ScopedVariable faults("PEAL_INJECT", "rank 3 kill at operation 10");
  InitOptions some = options(0, 1);
  EXPECT_THROW(init_process_group(some), Error);
  some.is_whole_job = false;
  some.store = store::make_prefix_store(store_, "part");
  EXPECT_EQ(init_process_group(some)->size(), 1);
}

TEST_F(InitTest, GroupsOfTheSameProcessesMeetInOneStoreUnderDifferentPrefixes) {
  const auto join = [&](Rank rank) {
    std::vector<ProcessGroupPtr> groups;
    for (const char* name : {"a", "b"}) {
      InitOptions own = options(rank, 2);
      own.store = store::make_prefix_store(store_, name);
      own.is_whole_job = false;
      groups.push_back(init_process_group(own));
    }
    std::vector<float> values(100, 1);
    for (const ProcessGroupPtr& group : groups) group->all_reduce(values);
    for (const ProcessGroupPtr& group : groups) group->destroy();
    return values;
  };
  auto other = std::async(std::launch::async, join, 1);
  EXPECT_EQ(join(0), std::vector<float>(100, 4));
  EXPECT_EQ(other.get(), std::vector<float>(100, 4));
}

}  // namespace
}  // namespace peal
