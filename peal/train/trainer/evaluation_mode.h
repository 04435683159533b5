// Puts a module in evaluation mode for a while. Used by Trainer::evaluate.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <torch/nn/module.h>

namespace peal::train {

/// While this object lives, the module is in evaluation mode. Its end restores the mode of the
/// module and of each module in it.
class EvaluationMode final {
 public:
  explicit EvaluationMode(torch::nn::Module& module) : modules_(module.modules()) {
    for (const auto& one : modules_) were_training_.push_back(one->is_training());
    module.eval();
  }
  ~EvaluationMode() {
    // train() of a module changes those in it, which come later in the list.
    for (std::size_t i = 0; i < modules_.size(); ++i) modules_[i]->train(were_training_[i]);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<bool> were_training_;
};

}  // namespace peal::train
