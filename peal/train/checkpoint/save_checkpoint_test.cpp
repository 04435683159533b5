#include "peal/train/checkpoint/save_checkpoint.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::replicas;
using testing::SmallNet;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;

/// A model that has trained a few steps, and its optimizer.
struct Trained {
  explicit Trained(int steps = 0) { train(0, steps); }

  void train(int first, int steps) {
    for (int step = first; step < first + steps; ++step) {
      const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
      optimizer.zero_grad();
      const auto images = torch::randn({6, 1, 8, 8}, random);
      const auto labels = torch::randint(4, {6}, random, torch::kInt64);
      torch::nll_loss(net->forward(images), labels).backward();
      optimizer.step();
    }
  }

  Checkpoint checkpoint(std::int64_t step) const {
    Checkpoint result{.step = step};
    result.models["model"] = module_tensors(*net);
    result.optimizers["optimizer"] = read_optimizer_state(optimizer, net->named_parameters());
    result.values.set("epoch", 3);
    result.tensors["mask"] = torch::arange(4);
    return result;
  }

  void load(const CheckpointReader& saved) {
    saved.load_module("model", *net);
    load_optimizer_state(optimizer, net->named_parameters(), saved.optimizer("optimizer"));
  }

  std::shared_ptr<SmallNet> net = replicas<SmallNet>(1)[0];
  torch::optim::Adam optimizer{net->parameters(), torch::optim::AdamOptions(0.01)};
};

bool same_state(const Trained& a, const Trained& b) {
  const OptimizerState ours = a.checkpoint(0).optimizers.at("optimizer");
  const OptimizerState theirs = b.checkpoint(0).optimizers.at("optimizer");
  if (ours.parameters.size() != theirs.parameters.size()) return false;
  for (const auto& [name, fields] : ours.parameters) {
    for (const auto& [field, tensor] : fields) {
      if (!theirs.parameters.at(name).at(field).equal(tensor)) return false;
    }
  }
  return flat_parameters(*a.net).equal(flat_parameters(*b.net));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return {names.begin(), names.end()};
}

/// A new model with all that the checkpoint has.
Trained loaded(const fs::path& path) {
  Trained other;
  other.load(CheckpointReader(path));
  return other;
}

class SaveCheckpoint : public ::testing::Test {
 protected:
  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "runs" / "a";
};

TEST_F(SaveCheckpoint, ResumedTrainingEqualsUninterruptedTraining) {
  Trained run(5);
  const fs::path path = save_checkpoint(folder_, run.checkpoint(5));
  EXPECT_EQ(path, folder_ / "step-00000005");
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000005"));
  EXPECT_THAT(names_in(path),
              ElementsAre("model.safetensors", "optimizer.safetensors", "training.safetensors"));

  Trained resumed = loaded(*latest_checkpoint(folder_));
  run.train(5, 20);
  resumed.train(5, 20);
  EXPECT_TRUE(same_state(run, resumed));
}

TEST_F(SaveCheckpoint, TheRestIsReadBack) {
  Checkpoint now = Trained(1).checkpoint(7);
  now.rank_tensors["residual"] = torch::ones({2});
  const CheckpointReader saved(save_checkpoint(folder_, now));
  EXPECT_EQ(saved.step(), 7);
  EXPECT_EQ(saved.ranks(), 1);
  EXPECT_EQ(saved.values(), now.values);
  EXPECT_TRUE(saved.tensors().at("mask").equal(torch::arange(4)));
  EXPECT_TRUE(saved.rank_tensors(0).at("residual").equal(torch::ones({2})));
  EXPECT_TRUE(saved.rank_tensors(1).empty());
  EXPECT_THAT(thrown_text([&] { saved.model("teacher"); }),
              HasSubstr("there is no model \"teacher\""));
  EXPECT_THAT(thrown_text([&] { saved.optimizer("sgd"); }),
              HasSubstr("there is no optimizer \"sgd\""));
}

TEST_F(SaveCheckpoint, AnOptimizerBeforeItsFirstStepHasNoFields) {
  const Trained run;
  const Trained other = loaded(save_checkpoint(folder_, run.checkpoint(0)));
  EXPECT_TRUE(other.optimizer.state().empty());
}

TEST_F(SaveCheckpoint, ReadsOnlyTheChosenParametersOfAnOptimizer) {
  const CheckpointReader saved(save_checkpoint(folder_, Trained(1).checkpoint(1)));
  const OptimizerState part = saved.optimizer("optimizer", std::set<std::string>{"conv.bias"});
  EXPECT_EQ(part.parameters.size(), 1u);
  EXPECT_TRUE(part.parameters.contains("conv.bias"));
  EXPECT_EQ(part.groups[0].parameters.size(), 6u);
}

TEST_F(SaveCheckpoint, OnlyTheLastOnesAreKept) {
  for (const std::int64_t step : {1, 2, 3, 4}) {
    save_checkpoint(folder_, {.step = step}, {.keep = 2});
  }
  fs::create_directory(folder_ / "step-5.mine");
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000003", "step-00000004", "step-5.mine"));
  save_checkpoint(folder_, {.step = 2}, {.keep = 2});  // a run that began again before step 3
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000002", "step-00000004", "step-5.mine"));
}

TEST_F(SaveCheckpoint, TheSameStepIsReplaced) {
  save_checkpoint(folder_, {.step = 3, .tensors = {{"old", torch::ones({1})}}});
  const auto path = save_checkpoint(folder_, {.step = 3, .tensors = {{"new", torch::ones({1})}}});
  EXPECT_TRUE(CheckpointReader(path).tensors().contains("new"));
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000003"));
}

TEST_F(SaveCheckpoint, WrongCallsSaveNothing) {
  const auto error = [this](const Checkpoint& checkpoint) {
    return thrown_text([&] { save_checkpoint(folder_, checkpoint); });
  };
  EXPECT_THAT(error({.step = -1}), HasSubstr("the negative step -1"));
  EXPECT_THAT(error({.models = {{"a/b", {}}}}), HasSubstr("is not letters, digits, - and _"));
  EXPECT_THAT(error({.models = {{"model", {{"w", torch::Tensor()}}}}}),
              HasSubstr("\"w\" is undefined"));
  EXPECT_THAT(error({.tensors = {{"w", torch::Tensor()}}}), HasSubstr("\"w\" is undefined"));
  Checkpoint half{.models = {{"model", {{"w", torch::ones({1})}}}},
                  .shards = {{"model", {{"w", {.offsets = {0}, .shape = {2}}}}}}};
  EXPECT_THAT(error(half), HasSubstr("only a part of the tensor \"w\""));
  half.shards["model"]["w"].offsets = {0, 0};
  EXPECT_THAT(error(half), HasSubstr("\"w\" has another number of dimensions"));
  half.shards["model"] = {{"x", {}}};
  EXPECT_THAT(error(half), HasSubstr("a shard \"x\" of \"model\", but no such tensor"));
  EXPECT_FALSE(latest_checkpoint(folder_).has_value());
}

TEST_F(SaveCheckpoint, WithoutSpaceTheLastOneStays) {
  const Trained run(1);
  const fs::path last = save_checkpoint(folder_, run.checkpoint(1));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = thrown_text([&] { save_checkpoint(folder_, run.checkpoint(2)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, AllOf(StartsWith("resource"), HasSubstr("ulimit -f")));
  EXPECT_THAT(names_in(folder_), ElementsAre("step-00000001"));
  EXPECT_TRUE(same_state(loaded(last), run));
}

/// Reads all that a checkpoint has.
void read_all(const fs::path& path) {
  Trained other;
  const CheckpointReader saved(path);
  other.load(saved);
  saved.tensors();
  saved.rank_tensors(0);
}

class CutCheckpoint : public ::testing::TestWithParam<Writers> {};

TEST_P(CutCheckpoint, AtAnyByteOrWithoutAFileIsRefused) {
  const TemporaryFolder folder;
  Checkpoint now = Trained(1).checkpoint(1);
  now.rank_tensors["random"] = torch::ones({3});
  const fs::path path = save_checkpoint(folder.path(), now, {.writers = GetParam()});
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t size = whole.size(); size-- > 0;) {
      // All bytes of the header, and some of the data.
      if (size > 4000 && whole.size() - size > 100 && size % 37 != 0) continue;
      fs::resize_file(entry.path(), size);
      EXPECT_THAT(thrown_text([&] { read_all(path); }),
                  StartsWith("mismatch: " + entry.path().string()))
          << size;
    }
    fs::remove(entry.path());
    if (entry.path().parent_path().filename() != "ranks") {
      EXPECT_NE(thrown_text([&] { read_all(path); }), "no error") << entry.path();
    }
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
  EXPECT_EQ(thrown_text([&] { read_all(path); }), "no error");
}

INSTANTIATE_TEST_SUITE_P(Writers,
                         CutCheckpoint,
                         ::testing::Values(Writers::kRank0, Writers::kAllRanks),
                         [](const auto& writers) {
                           return writers.param == Writers::kRank0 ? "Rank0" : "AllRanks";
                         });

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
                AllOf(StartsWith("mismatch: " + (path / part).string()),
                      HasSubstr("a file is missing, or belongs to another checkpoint")));
    fs::rename(away, file);
  }
}

// ---- on several ranks

class RanksSave : public ::testing::TestWithParam<int> {};

TEST_P(RanksSave, AndAnyNumberOfRanksLoads) {
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

TEST_P(RanksSave, EachItsParametersOfTheOptimizer) {
  const Trained run(3);
  const TemporaryFolder folder;
  const auto save = [&](const ProcessGroupPtr& group, Writers writers) {
    Checkpoint now = run.checkpoint(3);
    auto& parameters = now.optimizers["optimizer"].parameters;
    int index = 0;
    std::erase_if(parameters,
                  [&](const auto&) { return index++ % group->size() != group->rank(); });
    return thrown_text([&] { save_checkpoint(*group, folder.path(), now, {.writers = writers}); });
  };
  on_ranks(GetParam(),
           [&](const ProcessGroupPtr& group) { return save(group, Writers::kAllRanks); });
  EXPECT_TRUE(same_state(loaded(*latest_checkpoint(folder.path())), run));

  fs::remove_all(folder.path() / "step-00000003");
  const auto errors = on_ranks(
      GetParam(), [&](const ProcessGroupPtr& group) { return save(group, Writers::kRank0); });
  if (GetParam() == 1) return;
  EXPECT_THAT(errors,
              ::testing::Each(AllOf(StartsWith("mismatch: rank 1: this rank and rank 0 have"),
                                    HasSubstr("use Writers::kAllRanks"))));
}

TEST_P(RanksSave, EachItsPartOfEachTensor) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, RanksSave, ::testing::Values(1, 2, 3, 4));

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
      EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000001"));
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
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-00000001"));
}

}  // namespace
}  // namespace peal::train
