// A small training run to save and load in tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/optim/optimizer_state.h"
#include "peal/train/testing/nets.h"

namespace peal::train::testing {

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

inline bool same_state(const Trained& a, const Trained& b) {
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

inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return {names.begin(), names.end()};
}

/// A new model with all that the checkpoint has.
inline Trained loaded(const std::filesystem::path& path) {
  Trained other;
  other.load(CheckpointReader(path));
  return other;
}

}  // namespace peal::train::testing
