// The part of ZeroRedundancyOptimizer that does not depend on the optimizer's type.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/train/optim/optimizer_state.h"
#include "peal/train/optim/registered_tensors.h"

namespace peal::train {

/// How parameters are updated.
enum class UpdateKernels : unsigned char {
  kFused,  // by fused_step (fused_step.h)
  kPlain,  // by the step of the optimizer, with the same bits as without ranks
};

/// The memory of large parameters.
enum class ParameterMemory : unsigned char {
  kRegistered,  // peers of the host map it, so that step() copies it once. The memory keeps its
                // address. A process that is forked meanwhile shares it, and does not get a copy.
  kPrivate,
};

struct ZeroOptions {
  UpdateKernels kernels = UpdateKernels::kFused;
  ParameterMemory memory = ParameterMemory::kRegistered;
  /// The timeout of each operation.
  Timeout timeout = kGroupTimeout;
};

class ShardedOptimizer : public torch::optim::Optimizer {
 public:
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;
  /// Makes the optimizer of this rank's parameters, which has all groups; some may be empty.
  using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(const Groups&)>;

  /// The groups hold all parameters, which are those of `module`.
  ShardedOptimizer(ProcessGroupPtr group,
                   std::shared_ptr<torch::nn::Module> module,
                   const Groups& groups,
                   std::unique_ptr<torch::optim::OptimizerOptions> defaults,
                   Make make,
                   const ZeroOptions& options);

  /// Updates this rank's parameters, and then copies the updated parameters of each rank to all
  /// ranks. A parameter without a gradient does not change. The closure, if there is one, computes
  /// the loss once, before the update.
  /// Order: collective.
  /// Errors: mismatch (parameters were added that differ between ranks; ranks have gradients for
  ///   different parameters), usage (an added parameter is not in the module), those of the
  ///   optimizer and of broadcast.
  /// Cost: a broadcast for each parameter of 64 KiB or more, in flight together, and a coalesced
  ///   broadcast of the small parameters for each rank and type. Each rank reads the parameters of
  ///   other ranks once.
  torch::Tensor step(LossClosure closure = nullptr) override;

  /// The whole state, as that of the optimizer without ranks: on every rank, or only on the rank
  /// `to`, while other ranks get an empty value.
  /// Order: collective.
  /// Errors: those of read_optimizer_state and of the operations.
  /// Cost: memory for the whole state where it is returned.
  OptimizerState gather_state(std::optional<Rank> to = {});

  /// Takes this rank's part of a whole state, which may come from another number of ranks, or from
  /// the optimizer without ranks. Replaces the options of all groups.
  /// Order: every rank must load the same state. Collective if parameters were added since the last
  /// step, otherwise not.
  /// Errors: those of require_loadable (optimizer_state.h), on every rank alike: then no rank has
  ///   changed. For added parameters also those of step.
  void load_state(const OptimizerState& state);

  /// The optimizer of this rank's parameters. Its options are those of the last step.
  const torch::optim::Optimizer& local() const { return *local_; }
  /// The rank that updates the parameter. Errors: usage (an unknown name).
  Rank owner(const std::string& name) const;

  /// LibTorch's archives cannot hold a state that several ranks share.
  /// Errors: unsupported, always; use gather_state and load_state.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  /// All parameters of the module, each once.
  static Groups one_group(const torch::nn::Module& module);

 private:
  /// The owners of the parameters of a group. A parameter of the group without an owner is new.
  using Owners = std::vector<Rank>;

  NamedParameters names() const;
  bool has_new_parameters() const;
  void adopt_new_parameters();
  void assign_owners();
  void update_local_groups(const std::vector<std::size_t>& old_sizes);
  void share_parameters();

  ProcessGroupPtr group_;
  std::shared_ptr<torch::nn::Module> module_;
  Make make_;
  ZeroOptions options_;
  std::unique_ptr<torch::optim::Optimizer> local_;
  std::vector<Owners> owners_;  // of each group
  std::vector<Bytes> load_;     // the bytes of the parameters of each rank
  RegisteredTensors registered_;
};

}  // namespace peal::train
