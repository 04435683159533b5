#include "peal/train/replicas/replica_set.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <utility>

#include <torch/csrc/autograd/functions/utils.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/replicas/broadcast_node.h"

namespace peal::train {
namespace {

using NamedTensors = torch::OrderedDict<std::string, torch::Tensor>;

bool is_on(const torch::Tensor& tensor, const torch::Device& device) {
  return tensor.device().type() == device.type() &&
         (!device.has_index() || tensor.device().index() == device.index());
}

void require_on(const torch::nn::Module& module, const torch::Device& device) {
  for (const auto& parameter : module.named_parameters()) {
    if (is_on(parameter.value(), device)) continue;
    throw Error(ErrorKind::kUsage,
                c10::str("DataParallel: the parameter ",
                         parameter.key(),
                         " is on ",
                         parameter.value().device(),
                         ", and the first device is ",
                         device,
                         ". Call module->to(device) first"));
  }
}

/// The first name that the two lists do not share; empty if they have the same names and shapes.
std::string first_difference(const NamedTensors& module, const NamedTensors& replica) {
  const std::size_t shared = std::min(module.size(), replica.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const bool same = module[i].key() == replica[i].key() &&
                      module[i].value().sizes() == replica[i].value().sizes();
    if (!same) return module[i].key();
  }
  if (module.size() == replica.size()) return "";
  return (module.size() > shared ? module : replica)[shared].key();
}

void require_same_structure(const torch::nn::Module& module, const torch::nn::Module& replica) {
  std::string name = first_difference(module.named_parameters(), replica.named_parameters());
  if (name.empty()) name = first_difference(module.named_buffers(), replica.named_buffers());
  if (name.empty()) return;
  throw Error(ErrorKind::kUsage,
              c10::str("DataParallel: a replica of the module ",
                       module.name(),
                       " differs from it: ",
                       name,
                       " is missing or has another shape. Make replicas with the same parameters "
                       "and buffers"));
}

/// Keeps the state of LibTorch's generator for CPUs: new layers draw their first values.
class UnchangedRandomness final {
 public:
  UnchangedRandomness() : state_(generator().get_state()) {}
  ~UnchangedRandomness() { generator().set_state(state_); }
  UnchangedRandomness(const UnchangedRandomness&) = delete;
  UnchangedRandomness& operator=(const UnchangedRandomness&) = delete;

 private:
  static at::Generator generator() { return at::detail::getDefaultCPUGenerator(); }
  torch::Tensor state_;
};

}  // namespace

ReplicaSet::ReplicaSet(std::shared_ptr<torch::nn::Module> module,
                       std::vector<torch::Device> devices,
                       Make make)
    : devices_(std::move(devices)), make_(std::move(make)), replicas_{std::move(module)} {
  require_on(*replicas_[0], devices_[0]);
  make_replicas();
}

void ReplicaSet::make_replicas() {
  const c10::InferenceMode normal(false);
  const UnchangedRandomness unchanged;
  replicas_.resize(1);
  for (std::size_t i = 1; i < devices_.size(); ++i) {
    std::shared_ptr<torch::nn::Module> replica = make_(devices_[i]);
    require_same_structure(*replicas_[0], *replica);
    replica->to(devices_[i]);
    replicas_.push_back(std::move(replica));
  }
  pair_tensors();
}

void ReplicaSet::pair_tensors() {
  const auto pair = [&](const auto& tensors_of) {
    std::vector<Copies> pairs;
    for (const torch::Tensor& original : tensors_of(*replicas_[0])) pairs.push_back({original, {}});
    for (std::size_t r = 1; r < replicas_.size(); ++r) {
      const std::vector<torch::Tensor> copies = tensors_of(*replicas_[r]);
      for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].copies.push_back(copies[i]);
    }
    return pairs;
  };
  parameters_ = pair([](const torch::nn::Module& module) { return module.parameters(); });
  buffers_ = pair([](const torch::nn::Module& module) { return module.buffers(); });
  for (const Copies& parameter : parameters_) {
    for (const torch::Tensor& copy : parameter.copies) {
      copy.set_requires_grad(parameter.original.requires_grad());
    }
  }
}

void ReplicaSet::refresh(std::size_t used, const std::shared_ptr<ReplicaTimes>& times) {
  if (has_changed()) make_replicas();
  copy_modes(used);
  copy_values(used);
  if (torch::GradMode::is_enabled() && !c10::InferenceMode::is_enabled()) link(used, times);
}

bool ReplicaSet::has_changed() const {
  const auto differ = [](const std::vector<torch::Tensor>& now, const std::vector<Copies>& known) {
    return !std::ranges::equal(now, known, [](const torch::Tensor& one, const Copies& other) {
      return one.is_same(other.original);
    });
  };
  // A graph of an earlier pass needs the link of a frozen parameter's copies, so they must stay.
  const auto is_frozen = [](const Copies& parameter) {
    return !parameter.original.requires_grad() &&
           std::ranges::any_of(parameter.copies,
                               [](const torch::Tensor& copy) { return copy.requires_grad(); });
  };
  return differ(replicas_[0]->parameters(), parameters_) ||
         differ(replicas_[0]->buffers(), buffers_) || std::ranges::any_of(parameters_, is_frozen);
}

void ReplicaSet::copy_modes(std::size_t used) const {
  const auto originals = replicas_[0]->modules();
  for (std::size_t r = 1; r < used; ++r) {
    const auto copies = replicas_[r]->modules();  // a module before those in it, as train() needs
    for (std::size_t i = 0; i < std::min(originals.size(), copies.size()); ++i) {
      const bool training = originals[i]->is_training();
      if (copies[i]->is_training() != training) copies[i]->train(training);
    }
  }
}

void ReplicaSet::copy_values(std::size_t used) const {
  const auto copy_one = [](const torch::Tensor& from, const torch::Tensor& to) {
    if (from.scalar_type() == to.scalar_type() && from.sizes() == to.sizes() &&
        from.strides() == to.strides()) {
      // A graph of an earlier pass may have saved the copy. The values are the same then, unless
      // the module has changed too, which its own part of the graph reports.
      const at::AutoDispatchBelowADInplaceOrView without_version;
      to.copy_(from, /*non_blocking=*/!to.is_cpu());
    } else {
      const c10::InferenceMode normal(false);
      to.set_data(from.detach().to(to.device(), /*non_blocking=*/false, /*copy=*/true));
    }
  };
  for (const std::vector<Copies>* all : {&parameters_, &buffers_}) {
    for (const Copies& tensor : *all) {
      for (std::size_t r = 1; r < used; ++r) copy_one(tensor.original, tensor.copies[r - 1]);
    }
  }
}

void ReplicaSet::link(std::size_t used, const std::shared_ptr<ReplicaTimes>& times) const {
  std::vector<torch::Tensor> trained;
  for (const Copies& parameter : parameters_) {
    if (parameter.original.requires_grad()) trained.push_back(parameter.original);
  }
  if (trained.empty()) return;
  const BroadcastNode::Ptr node =
      make_broadcast_node(trained, [times](Duration duration) { times->reduce = duration; });
  for (std::size_t r = 1; r < used; ++r) {
    for (const Copies& parameter : parameters_) {
      if (!parameter.original.requires_grad()) continue;
      torch::autograd::set_history(parameter.copies[r - 1], node);
    }
  }
}

}  // namespace peal::train
