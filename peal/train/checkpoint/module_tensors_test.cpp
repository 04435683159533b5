#include "peal/train/checkpoint/module_tensors.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;

/// Has buffers, a parameter with two names, and parameters of two types.
struct MixedNet : torch::nn::Module {
  MixedNet() {
    register_module("norm", norm);
    register_module("embedding", embedding);
    register_parameter("head", embedding->weight);
    norm->to(torch::kBFloat16);
  }
  torch::nn::BatchNorm1d norm{3};
  torch::nn::Linear embedding{3, 3};
};

std::vector<std::string> names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(ModuleTensors, HaveTheKeysOfAStateDict) {
  const MixedNet net;
  EXPECT_THAT(names_of(module_tensors(net)),
              ElementsAre("embedding.bias",
                          "embedding.weight",
                          "head",
                          "norm.bias",
                          "norm.num_batches_tracked",
                          "norm.running_mean",
                          "norm.running_var",
                          "norm.weight"));
}

TEST(ModuleTensors, AreLoadedIntoAnotherModule) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "net.safetensors";
  MixedNet net;
  net.norm->forward(torch::randn({8, 3}, torch::kBFloat16));
  save_tensors(path, module_tensors(net));
  for (const bool from_file : {true, false}) {
    MixedNet other;
    const torch::Tensor memory = other.embedding->weight;
    if (from_file) {
      load_module(other, StoredTensors(path));
    } else {
      load_module(other, load_tensors(path));
    }
    for (const auto& [name, tensor] : module_tensors(net)) {
      EXPECT_TRUE(module_tensors(other).at(name).equal(tensor)) << name;
    }
    EXPECT_TRUE(other.embedding->weight.is_same(memory));
    EXPECT_TRUE(other.embedding->weight.is_same(other.named_parameters()["head"]))
        << "it stays tied";
    EXPECT_TRUE(other.embedding->weight.requires_grad());
  }
}

TEST(ModuleTensors, SeveralDifferencesAreInOneError) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "net.safetensors";
  testing::TwoPaths net;
  TensorMap tensors = module_tensors(net);
  for (auto& [name, tensor] : tensors) tensor = torch::zeros_like(tensor);
  tensors["first.weight"] = torch::zeros({3, 4});
  tensors["first.bias"] = torch::zeros({3}, torch::kHalf);
  tensors.erase("second.bias");
  tensors["module.second.bias"] = torch::zeros({3});
  save_tensors(path, tensors);
  const torch::Tensor before = testing::flat_parameters(net);
  const auto differences = AllOf(
      HasSubstr(" do not fit the module:"),
      HasSubstr(
          "\n  first.weight is Float of shape [3, 4], but in the module Float of shape [3, 3]"),
      HasSubstr("\n  first.bias is Half of shape [3], but in the module Float of shape [3]"),
      HasSubstr("\n  second.bias is missing"),
      HasSubstr("\n  module.second.bias is not in the module"));
  EXPECT_THAT(thrown_text([&] { load_module(net, tensors); }), differences);
  EXPECT_THAT(thrown_text([&] { load_module(net, StoredTensors(path)); }),
              AllOf(StartsWith("usage: the tensors of " + path.string()), differences));
  EXPECT_TRUE(testing::flat_parameters(net).equal(before)) << "nothing was loaded";
}

TEST(ModuleTensors, AnErrorListsTheFirstOfManyDifferences) {
  TensorMap of_another;
  for (char name = 'a'; name < 'z'; ++name) of_another[{name}] = torch::zeros({1});
  testing::TwoPaths net;
  const auto own = module_tensors(net).size();
  EXPECT_THAT(thrown_text([&] { load_module(net, of_another); }),
              ::testing::EndsWith("\n  and " + std::to_string(own + 25 - 8) + " more"));
}

}  // namespace
}  // namespace peal::train
