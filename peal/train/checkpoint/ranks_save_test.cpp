// Checkpoints of several ranks, and ranks that fail.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/checkpoint/testing/trained.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::loaded;
using testing::names_in;
using testing::on_ranks;
using testing::same_state;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;
using testing::Trained;

TEST(DamagedCheckpoint, AMissingFileOfARankIsNoticed) {
  const TemporaryFolder folder;
  const Trained run(1);
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    return save_checkpoint(
        *group, folder.path(), run.checkpoint(1), {.writers = Writers::kAllRanks});
  });
  for (const std::string part : {"model", "optimizer"}) {
    const fs::path path = folder.path() / "step-00000001";
    const fs::path file = path / part / "shard-00002-model-00001-of-00001.safetensors";
    const fs::path away = folder.path() / "away";
    fs::rename(file, away);
    EXPECT_THAT(thrown_text([&] { loaded(path); }),
                AllOf(StartsWith("resource: " + (path / part).string()),
                      HasSubstr("a file is missing, or belongs to another checkpoint")));
    fs::rename(away, file);
  }
}

TEST(RanksSave, TheSameTensorsUnderAnotherNameAreAMismatch) {
  const TemporaryFolder folder;
  const auto errors = on_ranks(2, [&](const ProcessGroupPtr& group) {
    Checkpoint now{.step = 1};
    now.models[group->rank() == 0 ? "teacher-model" : "model"] = {{"w", torch::ones(2)}};
    return thrown_text([&] { save_checkpoint(*group, folder.path(), now); });
  });
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("different tensors of \"model\"")));
}

TEST(RanksSave, DifferentStepsAreAMismatchAlsoForARankThatWritesNothing) {
  const TemporaryFolder folder;
  const auto errors = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const Checkpoint now{.step = group->rank(), .models = {{"model", {{"w", torch::ones(2)}}}}};
    return thrown_text([&] { save_checkpoint(*group, folder.path(), now); });
  });
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("pass the same step on every rank")));
  EXPECT_FALSE(latest_checkpoint(folder.path()));
}

TEST(RanksSave, AModelWithoutTensorsIsThereAgain) {
  for (const Writers writers : {Writers::kRank0, Writers::kAllRanks}) {
    const TemporaryFolder folder;
    on_ranks(2, [&](const ProcessGroupPtr& group) {
      const Checkpoint now{.step = 1, .models = {{"model", {}}}};
      return save_checkpoint(*group, folder.path(), now, {.writers = writers});
    });
    const CheckpointReader saved(*latest_checkpoint(folder.path()));
    EXPECT_TRUE(saved.model("model").tensors().empty());
  }
}

class AllRanksSave : public ::testing::TestWithParam<int> {};

TEST_P(AllRanksSave, AndAnyNumberOfRanksLoads) {
  const Trained run(3);
  for (const Writers writers : {Writers::kRank0, Writers::kAllRanks}) {
    const TemporaryFolder folder;
    on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
      Checkpoint now = run.checkpoint(3);
      now.rank_tensors["rank"] = torch::tensor(group->rank());
      return save_checkpoint(*group, folder.path(), now, {.writers = writers});
    });
    for (const int ranks : {1, 2, 3, 4}) {
      const auto same = on_ranks(ranks, [&](const ProcessGroupPtr& group) {
        const auto path = latest_checkpoint(*group, folder.path());
        const CheckpointReader saved(*path);
        Trained other;
        other.load(saved);
        const TensorMap own = saved.rank_tensors(group->rank());
        const bool has_own = group->rank() < GetParam();
        return same_state(run, other) && saved.ranks() == GetParam() && own.empty() != has_own &&
               (!has_own || own.at("rank").item<int>() == group->rank());
      });
      EXPECT_THAT(same, ::testing::Each(true)) << ranks;
    }
  }
}

TEST_P(AllRanksSave, EachItsParametersOfTheOptimizer) {
  const Trained run(3);
  const TemporaryFolder folder;
  const auto save = [&](const ProcessGroupPtr& group, Writers writers) {
    Checkpoint now = run.checkpoint(3);
    OptimizerState& state = now.optimizers["optimizer"];
    const auto is_other = [&, index = 0](const auto&) mutable {
      return index++ % group->size() != group->rank();
    };
    std::erase_if(state.parameters, is_other);
    std::erase_if(state.groups[0].parameters, is_other);  // as the local part of ZeRO has them
    return thrown_text([&] { save_checkpoint(*group, folder.path(), now, {.writers = writers}); });
  };
  on_ranks(GetParam(),
           [&](const ProcessGroupPtr& group) { return save(group, Writers::kAllRanks); });
  EXPECT_TRUE(same_state(loaded(*latest_checkpoint(folder.path())), run));

  fs::remove_all(folder.path() / "step-00000003");
  const auto errors = on_ranks(
      GetParam(), [&](const ProcessGroupPtr& group) { return save(group, Writers::kRank0); });
  if (GetParam() == 1) return;
  EXPECT_THAT(
      errors,
      ::testing::Each(AllOf(
          StartsWith(
              "mismatch: rank 1: this rank and rank 0 have different tensors of \"optimizer\""),
          HasSubstr("use Writers::kAllRanks"))));
}

TEST_P(AllRanksSave, EachItsPartOfEachTensor) {
  const torch::Tensor whole = torch::arange(60).view({12, 5});
  const TemporaryFolder folder;
  on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
    const std::int64_t rows = 12 / group->size();
    const std::int64_t first = rows * group->rank();
    Checkpoint now{.step = 1};
    now.models["model"] = {{"w", whole.narrow(0, first, rows)}, {"b", whole[0]}};
    now.shards["model"]["w"] = {.offsets = {first, 0}, .shape = {12, 5}};
    OptimizerState& state = now.optimizers["optimizer"];
    state = {.algorithm = "SGD", .groups = {{.options = {}, .parameters = {"w"}}}};
    state.parameters["w"]["momentum_buffer"] = whole.narrow(0, first, rows);
    now.shards["optimizer"]["w.momentum_buffer"] = now.shards["model"]["w"];
    return save_checkpoint(*group, folder.path(), now, {.writers = Writers::kAllRanks});
  });
  const CheckpointReader reader(*latest_checkpoint(folder.path()));
  EXPECT_TRUE(reader.optimizer("optimizer").parameters.at("w").at("momentum_buffer").equal(whole));
  const StoredTensors saved = reader.model("model");
  EXPECT_TRUE(saved.read("w").equal(whole));
  EXPECT_TRUE(saved.read("b").equal(whole[0]));
  EXPECT_TRUE(saved.read("w", {{5, 1}, {4, 2}}).equal(whole.narrow(0, 5, 4).narrow(1, 1, 2)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllRanksSave, ::testing::Values(1, 2, 3, 4));

TEST(RanksSave, StateThatIsGatheredOnRankZero) {
  const TemporaryFolder folder;
  const Trained run(1);
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    Checkpoint now = run.checkpoint(1);
    if (group->rank() == 1) now.optimizers["optimizer"].parameters.clear();
    return save_checkpoint(*group, folder.path(), now);
  });
  EXPECT_TRUE(same_state(loaded(*latest_checkpoint(folder.path())), run));
}

TEST(RanksSave, WithoutASharedFolderIfRankZeroHasAllFiles) {
  const TemporaryFolder folder;
  const Trained run(1);
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    const bool has_folder = group->rank() == 0;
    return save_checkpoint(*group, has_folder ? folder.path() : "/proc/none", run.checkpoint(1));
  });
  EXPECT_TRUE(same_state(loaded(*latest_checkpoint(folder.path())), run));
}

/// What `save` throws on each of three ranks. The folder has a good checkpoint of step 1, which
/// must stay, and the group must stay usable.
template <class Save>
std::vector<std::string> errors_of(Save&& save) {
  const TemporaryFolder folder;
  const Trained run(1);
  const auto errors = on_ranks(3, [&](const ProcessGroupPtr& group) {
    save_checkpoint(*group, folder.path(), run.checkpoint(1));
    const std::string error = thrown_text([&] { save(*group, folder.path(), run.checkpoint(2)); });
    if (group->rank() == 0) {
      EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre("step-00000001"));
    }
    group->barrier();
    save_checkpoint(*group, folder.path(), run.checkpoint(3));
    return error;
  });
  EXPECT_TRUE(same_state(loaded(folder.path() / "step-00000001"), run));
  EXPECT_TRUE(same_state(loaded(folder.path() / "step-00000003"), run));
  return errors;
}

TEST(RanksThatFail, ARankThatCannotWriteFailsAll) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    const bool fails = group.rank() == 2;
    save_checkpoint(
        group, fails ? folder / "elsewhere" : folder, now, {.writers = Writers::kAllRanks});
  });
  EXPECT_THAT(errors,
              ::testing::Each(AllOf(StartsWith("usage: rank 2: "),
                                    HasSubstr("all ranks need a folder that they share"))));
}

TEST(RanksThatFail, RankZeroFailsAll) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    save_checkpoint(group, group.rank() == 0 ? "/proc/none" : folder, now);
  });
  EXPECT_THAT(errors,
              ::testing::Each(StartsWith("resource: rank 0: cannot make the folder /proc/none")));
}

TEST(RanksThatFail, AWrongTensorOfOneRankFailsAll) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    if (group.rank() == 1) now.rank_tensors["x"] = torch::Tensor();
    save_checkpoint(group, folder, now);
  });
  EXPECT_THAT(errors, ::testing::Each(StartsWith("usage: rank 1: the tensor \"x\" is undefined")));
}

TEST(RanksThatFail, RanksWithDifferentShapesAllFail) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    now.models["model"]["w"] = torch::ones({group.rank() == 1 ? 2 : 3});
    save_checkpoint(group, folder, now, {.writers = Writers::kAllRanks});
  });
  EXPECT_THAT(errors,
              ::testing::Each(HasSubstr("its type or shape on rank 1 is not that on rank 0")));
}

TEST(RanksThatFail, RanksWithOtherModelsAllFail) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    if (group.rank() == 1) now.models["teacher"]["w"] = torch::ones({1});
    save_checkpoint(group, folder, now, {.writers = Writers::kAllRanks});
  });
  EXPECT_THAT(
      errors,
      ::testing::Each(StartsWith("mismatch: rank 0: other ranks have tensors of \"teacher\"")));
}

TEST(RanksThatFail, RanksWithOtherOptimizersAllFail) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    if (group.rank() == 2) now.optimizers["optimizer"].algorithm = "SGD";
    save_checkpoint(group, folder, now, {.writers = Writers::kAllRanks});
  });
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("do not have the same optimizer \"optimizer\"")));
}

TEST(RanksThatFail, RanksAtDifferentStepsAllFail) {
  const auto errors = errors_of([](ProcessGroup& group, const fs::path& folder, Checkpoint now) {
    if (group.rank() == 1) now.step = 77;
    save_checkpoint(group, folder, now, {.writers = Writers::kAllRanks});
  });
  EXPECT_THAT(errors,
              ::testing::Each(StartsWith("mismatch: rank 1: this rank saves step-00000077")));
}

TEST(RanksThatFail, ALostRankLeavesTheLastCheckpoint) {
  const TemporaryFolder folder;
  const Trained run(1);
  save_checkpoint(folder.path(), run.checkpoint(1));
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    if (group->rank() == 1) return true;  // leaves
    EXPECT_THAT(thrown_text([&] { save_checkpoint(*group, folder.path(), run.checkpoint(2)); }),
                StartsWith("peer_lost"));
    return true;
  });
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre("step-00000001"));
}

}  // namespace
}  // namespace peal::train
