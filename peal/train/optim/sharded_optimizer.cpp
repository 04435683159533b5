#include "peal/train/optim/sharded_optimizer.h"

#include <cstdint>
#include <unordered_set>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/optim/first_names.h"
#include "peal/train/optim/fused_step.h"
#include "peal/train/optim/shard_assignment.h"
#include "peal/train/optim/whole_state.h"
#include "peal/train/tensors/agreement.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;

/// From this size on, a parameter has a broadcast of its own, which needs no copy.
constexpr Bytes kLargeParameter = 64_KiB;

constexpr const char* kSaveAdvice =
    "the state of ZeroRedundancyOptimizer is divided among ranks, so torch::save and torch::load "
    "cannot store it: use gather_state and load_state";

void require_shardable(const OptimizerOptions& defaults) {
  if (dynamic_cast<const torch::optim::LBFGSOptions*>(&defaults) == nullptr) return;
  throw Error(
      ErrorKind::kUnsupported,
      "ZeroRedundancyOptimizer cannot divide the state of LBFGS: its direction and its line "
      "search depend on all parameters together, and its history does not belong to single "
      "parameters. Use LBFGS on every rank");
}

std::string text_of(const OptimizerOptions& options) {
  std::string text;
  try {
    for (const auto& [name, value] : read_options(options)) text += c10::str(" ", name, " ", value);
  } catch (const Error&) {
    text = " of an optimizer outside of LibTorch";
  }
  return text;
}

/// A line for each group and parameter, the same on ranks that may share the update.
std::vector<std::string> describe(const std::vector<OptimizerParamGroup>& groups,
                                  const FirstNames& names) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    lines.push_back(c10::str("group ", i, " with", text_of(groups[i].options())));
    for (const torch::Tensor& parameter : groups[i].params()) {
      lines.push_back(c10::str(names.of(parameter),
                               " (",
                               parameter.scalar_type(),
                               ", shape ",
                               parameter.sizes(),
                               ", group ",
                               i,
                               ")"));
    }
  }
  return lines;
}

void require_distinct(const std::vector<OptimizerParamGroup>& groups, const FirstNames& names) {
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const OptimizerParamGroup& group : groups) {
    for (const torch::Tensor& parameter : group.params()) {
      if (seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
      throw Error(ErrorKind::kUsage,
                  "ZeroRedundancyOptimizer: the parameter " + names.of(parameter) +
                      " is twice in the groups: pass it once");
    }
  }
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(ProcessGroupPtr group,
                                   std::shared_ptr<torch::nn::Module> module,
                                   const Groups& groups,
                                   std::unique_ptr<OptimizerOptions> defaults,
                                   Make make,
                                   const ZeroOptions& options)
    : Optimizer(groups, std::move(defaults)),
      group_(std::move(group)),
      module_(std::move(module)),
      make_(std::move(make)),
      options_(options),
      load_(static_cast<std::size_t>(group_->size())),
      registered_(group_) {
  require_shardable(*defaults_);
  adopt_new_parameters();
}

ShardedOptimizer::Groups ShardedOptimizer::one_group(const torch::nn::Module& module) {
  return {OptimizerParamGroup(distinct(module.parameters()))};
}

NamedParameters ShardedOptimizer::names() const { return module_->named_parameters(); }

bool ShardedOptimizer::has_new_parameters() const {
  if (owners_.size() != param_groups_.size()) return true;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i].size() != param_groups_[i].params().size()) return true;
  }
  return false;
}

/// Gives owners to the parameters that were added since the last call. The ranks check that they
/// added the same parameters. Collective.
void ShardedOptimizer::adopt_new_parameters() {
  const NamedParameters named = names();
  const FirstNames first_names(named);
  require_distinct(param_groups_, first_names);
  require_agreement(*group_,
                    {.what = "parameters of the optimizer",
                     .advice = "every rank must build the same model and the same groups"},
                    describe(param_groups_, first_names),
                    options_.timeout);
  std::vector<std::size_t> old_sizes;
  for (const Owners& owners : owners_) old_sizes.push_back(owners.size());
  assign_owners();
  if (!local_) {
    Groups own;
    for (std::size_t i = 0; i < param_groups_.size(); ++i) {
      own.emplace_back(std::vector<torch::Tensor>(), param_groups_[i].options().clone());
      for (std::size_t j = 0; j < owners_[i].size(); ++j) {
        if (owners_[i][j] == group_->rank())
          own[i].params().push_back(param_groups_[i].params()[j]);
      }
    }
    local_ = make_(own);
    return;
  }
  update_local_groups(old_sizes);
}

/// Gives each new parameter to a rank.
void ShardedOptimizer::assign_owners() {
  owners_.resize(param_groups_.size());
  std::vector<Bytes> sizes;
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& parameters = param_groups_[i].params();
    for (std::size_t j = owners_[i].size(); j < parameters.size(); ++j) {
      sizes.emplace_back(static_cast<std::int64_t>(parameters[j].nbytes()));
    }
  }
  auto next = [owners = assign_shards(sizes, load_), used = std::size_t{0}]() mutable {
    return owners[used++];
  };
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    while (owners_[i].size() < param_groups_[i].params().size()) owners_[i].push_back(next());
  }
}

/// Adds this rank's new parameters to its optimizer. `old_sizes`: the sizes of the groups before.
void ShardedOptimizer::update_local_groups(const std::vector<std::size_t>& old_sizes) {
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    std::vector<torch::Tensor> own;
    for (std::size_t j = i < old_sizes.size() ? old_sizes[i] : 0; j < owners_[i].size(); ++j) {
      if (owners_[i][j] == group_->rank()) own.push_back(param_groups_[i].params()[j]);
    }
    if (i < old_sizes.size()) {
      auto& parameters = local_->param_groups()[i].params();
      parameters.insert(parameters.end(), own.begin(), own.end());
    } else {
      local_->add_param_group(OptimizerParamGroup(own, param_groups_[i].options().clone()));
    }
  }
}

torch::Tensor ShardedOptimizer::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  if (has_new_parameters()) adopt_new_parameters();
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    local_->param_groups()[i].set_options(param_groups_[i].options().clone());
  }
  if (options_.kernels == UpdateKernels::kFused) {
    fused_step(*local_);
  } else {
    local_->step();
  }
  share_parameters();
  return loss;
}

void ShardedOptimizer::share_parameters() {
  if (group_->size() == 1) return;
  std::vector<WorkPtr> in_flight;
  std::vector<Tensors> small(static_cast<std::size_t>(group_->size()));  // of each rank
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& parameters = param_groups_[i].params();
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      const torch::Tensor& parameter = parameters[j];
      if (!parameter.grad().defined()) continue;  // was not updated
      const Rank owner = owners_[i][j];
      if (Bytes(static_cast<std::int64_t>(parameter.nbytes())) < kLargeParameter) {
        small[static_cast<std::size_t>(owner)].push_back(parameter);
        continue;
      }
      if (options_.memory == ParameterMemory::kRegistered) registered_.keep(parameter);
      in_flight.push_back(
          broadcast_async(*group_, parameter, owner, {.timeout = options_.timeout}));
    }
  }
  for (Rank rank = 0; rank < group_->size(); ++rank) {
    for (const Tensors& same_type : by_type(small[static_cast<std::size_t>(rank)])) {
      in_flight.push_back(broadcast_async(*group_, same_type, rank, {.timeout = options_.timeout}));
    }
  }
  for (const WorkPtr& work : in_flight) work->wait();
}

Rank ShardedOptimizer::owner(const std::string& name) const {
  const NamedParameters named = names();
  const torch::Tensor* const parameter = named.find(name);
  for (std::size_t i = 0; parameter != nullptr && i < owners_.size(); ++i) {
    for (std::size_t j = 0; j < owners_[i].size(); ++j) {
      if (param_groups_[i].params()[j].is_same(*parameter)) return owners_[i][j];
    }
  }
  throw Error(ErrorKind::kUsage,
              "ZeroRedundancyOptimizer has no parameter " + name +
                  ": pass a name of the module's named_parameters()");
}

OptimizerState ShardedOptimizer::gather_state(std::optional<Rank> to) {
  if (has_new_parameters()) adopt_new_parameters();
  const NamedParameters named = names();
  OptimizerState local = read_optimizer_state(*local_, named);
  OptimizerState whole{.algorithm = local.algorithm};
  whole.parameters = exchange_fields(*group_, std::move(local.parameters), to, options_.timeout);
  if (to && *to != group_->rank()) return {};
  const FirstNames first_names(named);
  for (const OptimizerParamGroup& group : param_groups_) {
    OptimizerState::Group& saved = whole.groups.emplace_back();
    saved.options = read_options(group.options());
    for (const torch::Tensor& parameter : group.params()) {
      saved.parameters.push_back(first_names.of(parameter));
    }
  }
  return whole;
}

void ShardedOptimizer::load_state(const OptimizerState& state) {
  if (has_new_parameters()) adopt_new_parameters();
  const NamedParameters named = names();
  require_loadable(*defaults_, param_groups_, named, state);
  load_optimizer_state(*local_, named, part_of_state(state, *local_, named));
  for (std::size_t i = 0; i < param_groups_.size(); ++i) {
    load_options(param_groups_[i].options(), state.groups[i].options);
  }
}

void ShardedOptimizer::save(torch::serialize::OutputArchive&) const {
  throw Error(ErrorKind::kUnsupported, kSaveAdvice);
}

void ShardedOptimizer::load(torch::serialize::InputArchive&) {
  throw Error(ErrorKind::kUnsupported, kSaveAdvice);
}

}  // namespace peal::train
