#include "peal/launch/submitted/unused_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::submitted {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Job job_with_roles() {
  Job job{.name = "j"};
  job.roles = {{.name = "master"}, {.name = "worker"}, {.name = "evaluator"}};
  return job;
}

TEST(UnusedFieldsTest, EachIsNamedOnce) {
  Job job = job_with_roles();
  EXPECT_THAT(unused_fields(job, "local"), IsEmpty());
  job.priority = 5;
  job.spare_nodes = 1;
  EXPECT_THAT(
      unused_fields(job, "local"),
      ElementsAre("priority is not used: the job starts at once, because --to local has no queue",
                  "spare_nodes is not used: this machine is the only host"));
  EXPECT_EQ(unused_fields(job, "ssh").size(), 1u);
}

TEST(UnusedFieldsTest, ResourcesNeedAContainer) {
  Job job = job_with_roles();
  job.roles[0].resources.gpus = 4;
  EXPECT_THAT(unused_fields(job, "mpi"),
              ElementsAre("the resources of master are not used: only containers have limits, and "
                          "this role has no image"));
  job.roles[1].resources.shm = Bytes(5000);
  EXPECT_THAT(unused_fields(job, "ssh"),
              ElementsAre("the resources of master and worker are not used: only containers have "
                          "limits, and these roles have no image"));
  job.roles[0].image = job.roles[1].image = "image";
  EXPECT_THAT(unused_fields(job, "ssh"), IsEmpty());
}

}  // namespace
}  // namespace peal::launch::submitted
