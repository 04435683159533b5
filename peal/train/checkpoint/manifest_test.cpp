#include "peal/train/checkpoint/manifest.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>

#include "peal/base/error.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::thrown_text;

Manifest example() {
  Manifest manifest{.step = 120, .ranks = 4, .models = {{"model", 7}, {"teacher", 0}}};
  Manifest::Optimizer& adam = manifest.optimizers["adam"];
  adam.tensors = 12;
  adam.state.algorithm = "Adam";
  adam.state.groups = {{.options = {{"lr", 0.1}, {"beta1", 1.0 / 3}}, .parameters = {"a.b", "c"}},
                       {.options = {}, .parameters = {}}};
  manifest.optimizers["sgd-2"].state.algorithm = "SGD";
  manifest.rank_tensors = {{0, 2}, {3, 1}};
  manifest.values.set("epoch", 3);
  manifest.values.set("model.optimizer", "a name with dots");
  return manifest;
}

TEST(Manifest, ReadsWhatWasWritten) {
  const Manifest read = parse_manifest(to_metadata(example()));
  EXPECT_EQ(read.step, 120);
  EXPECT_EQ(read.ranks, 4);
  EXPECT_EQ(read.models, example().models);
  EXPECT_EQ(read.values, example().values);
  EXPECT_EQ(read.rank_tensors, example().rank_tensors);
  ASSERT_EQ(read.optimizers.size(), 2u);
  const Manifest::Optimizer& adam = read.optimizers.at("adam");
  EXPECT_EQ(adam.tensors, 12);
  EXPECT_EQ(adam.state.algorithm, "Adam");
  ASSERT_EQ(adam.state.groups.size(), 2u);
  EXPECT_EQ(adam.state.groups[0].options,
            (OptimizerState::Options{{"lr", 0.1}, {"beta1", 1.0 / 3}}));
  EXPECT_THAT(adam.state.groups[0].parameters, ElementsAre("a.b", "c"));
  EXPECT_THAT(adam.state.groups[1].parameters, ElementsAre());
  EXPECT_TRUE(read.optimizers.at("sgd-2").state.groups.empty());
}

TEST(Manifest, AMissingKeyIsRefused) {
  Manifest small = example();
  small.values = {};
  small.models.clear();
  small.rank_tensors.clear();
  const Metadata whole = to_metadata(small);
  for (const auto& [key, text] : whole) {
    // Options may differ between optimizers; without its algorithm, an optimizer is not there.
    if (key.find(".option.") != std::string::npos || key.ends_with("algorithm")) continue;
    Metadata part = whole;
    part.erase(key);
    EXPECT_THAT(thrown_text([&] { parse_manifest(part); }),
                StartsWith("mismatch: the metadata of the checkpoint is damaged"))
        << key;
  }
}

TEST(Manifest, WrongTextsAreRefused) {
  const auto error_with = [](const std::string& key, const std::string& text) {
    Metadata metadata = to_metadata(example());
    metadata[key] = text;
    return thrown_text([&] { parse_manifest(metadata); });
  };
  EXPECT_THAT(error_with("checkpoint", "2"),
              StartsWith("unsupported: the checkpoint has the version \"2\""));
  EXPECT_THAT(error_with("step", "-1"), HasSubstr("a negative number"));
  EXPECT_THAT(error_with("ranks", "0"), HasSubstr("a negative number"));
  EXPECT_THAT(error_with("step", "1x"), HasSubstr("\"step\" is \"1x\""));
  EXPECT_THAT(error_with("optimizer.adam.groups", "999999999999"), HasSubstr("is too large"));
  EXPECT_THAT(error_with("optimizer.adam.groups", "3"), HasSubstr("there is no"));
  EXPECT_THAT(error_with("optimizer.adam.group.0.parameters", "999"), HasSubstr("is too large"));
  EXPECT_THAT(error_with("optimizer.adam.group.0.option.lr", "fast"), HasSubstr("is \"fast\""));
  EXPECT_THAT(error_with("rank.3.tensors", "many"), HasSubstr("is \"many\""));
  EXPECT_THAT(error_with("rank.-1.tensors", "1"), HasSubstr("a key for rank \"-1.tensors\""));
  EXPECT_THAT(error_with("rank.1", "1"), HasSubstr("a key for rank \"1\""));
  EXPECT_THAT(error_with("model.../up", "1"), HasSubstr("is not letters, digits, - and _"));
}

TEST(Manifest, GroupsHaveTheParametersOfAllRanks) {
  Manifest first = example();
  Manifest second = decode_manifest(encode(example()));
  second.optimizers["adam"].state.groups[0].parameters = {"c", "d"};
  second.optimizers["adam"].state.groups[1].parameters = {"e"};
  merge_groups(first, second);
  EXPECT_THAT(first.optimizers["adam"].state.groups[0].parameters, ElementsAre("a.b", "c", "d"));
  EXPECT_THAT(first.optimizers["adam"].state.groups[1].parameters, ElementsAre("e"));
  second.optimizers["adam"].state.groups.pop_back();
  EXPECT_THAT(thrown_text([&] { merge_groups(first, second); }),
              HasSubstr("the ranks do not have the same optimizer \"adam\""));
  second = {};
  merge_groups(first, second);  // a rank without optimizers
}

TEST(Manifest, NamesMustBeNamesOfFiles) {
  const auto reason = [](const char* model, const char* optimizer) {
    Manifest manifest;
    manifest.models[model] = 1;
    manifest.optimizers[optimizer] = {};
    return why_not_file_names(manifest);
  };
  EXPECT_EQ(reason("Model_1", "adam-2"), "");
  EXPECT_THAT(reason("model", "model"), HasSubstr("already taken"));
  EXPECT_THAT(reason("training", "o"), HasSubstr("already taken"));
  EXPECT_THAT(reason("m", "ranks"), HasSubstr("already taken"));
  for (const char* name : {"", "a/b", "..", "a.b", "a b", "\xc3\xa9"}) {
    EXPECT_THAT(reason("m", name), HasSubstr("is not letters, digits, - and _")) << name;
  }
}

}  // namespace
}  // namespace peal::train
