#include "peal/train/gradient_reducer.h"

#include <unordered_set>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/agreement.h"
#include "peal/train/buckets.h"
#include "peal/train/element_type.h"
#include "peal/train/parameters.h"
#include "peal/train/staged.h"
#include "peal/train/tensors.h"
#include "peal/train/typed_lists.h"

namespace peal::train {
namespace {

using Mark = GradientBucket::Mark;

std::string describe(const std::string& name, const torch::Tensor& tensor) {
  return c10::str(name,
                  " (",
                  tensor.scalar_type(),
                  ", shape ",
                  tensor.sizes(),
                  ", strides ",
                  tensor.strides(),
                  tensor.requires_grad() ? ")" : ", frozen)");
}

/// The parameters and buffers of a module, a line each.
std::vector<std::string> describe(const torch::nn::Module& module) {
  std::vector<std::string> lines;
  for (const auto& item : module.named_parameters()) lines.push_back(describe(item.key(), *item));
  for (const auto& item : module.named_buffers()) lines.push_back(describe(item.key(), *item));
  return lines;
}

/// "conv.weight", "conv.weight and 3 more"
std::string listed(const std::vector<std::string>& names) {
  const std::size_t others = names.size() - 1;
  return others == 0 ? names.front() : c10::str(names.front(), " and ", others, " more");
}

}  // namespace

GradientReducer::GradientReducer(std::shared_ptr<torch::nn::Module> module,
                                 ProcessGroupPtr group,
                                 const DataParallelOptions& options)
    : module_(std::move(module)), group_(std::move(group)), options_(options) {
  if (module_ == nullptr || group_ == nullptr) {
    throw Error(ErrorKind::kUsage, "DistributedDataParallel needs a module and a process group");
  }
  if (group_->size() == 1) return;  // nothing to agree with, and nobody to average with
  check_and_broadcast();
  make_buckets();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(
        std::make_unique<GradientHook>(parameters_[i].tensor, [this, i] { on_gradient(i); }));
  }
}

GradientReducer::~GradientReducer() {
  hooks_.clear();
  wait_for_all();  // the operations write to the buckets' memory
}

void GradientReducer::check_and_broadcast() {
  for (const auto& item : module_->named_parameters()) {
    Staged(*item, Staged::Use::kRead);  // throws for what cannot be communicated
  }
  require_agreement(*group_, "parameters and buffers", describe(*module_), options_.timeout);
  broadcast_parameters(*group_, *module_, 0, options_.timeout);
}

void GradientReducer::make_buckets() {
  std::vector<GradientSize> sizes;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module_->named_parameters()) {
    if (!item->requires_grad() || !seen.insert(item->unsafeGetTensorImpl()).second) continue;
    parameters_.push_back({.name = item.key(), .tensor = *item});
    sizes.push_back({Elements(item->numel()), element_type(item->scalar_type())});
  }
  const BucketCaps caps{options_.first_bucket_cap, options_.bucket_cap};
  for (const std::vector<std::size_t>& indices : assign_buckets(sizes, caps)) {
    std::vector<torch::Tensor> tensors;
    for (const std::size_t index : indices) {
      parameters_[index].bucket = buckets_.size();
      parameters_[index].place = tensors.size();
      tensors.push_back(parameters_[index].tensor);
    }
    buckets_.emplace_back(*group_, std::move(tensors));
  }
}

// ---- one backward pass --------------------------------------------------------------------------

void GradientReducer::on_gradient(std::size_t index) {
  if (sync_ == Sync::kOff) return;
  if (backward_ != current_backward()) begin_backward();
  Parameter& parameter = parameters_[index];
  buckets_[parameter.bucket].take(parameter.place);
  buckets_[parameter.bucket].give(parameter.place);
  parameter.arrived = true;
  missing_[parameter.bucket] -= 1;
  send_complete_buckets();
}

void GradientReducer::begin_backward() {
  if (backward_ != kIdle && sent_ > 0) {
    if (const std::exception_ptr cause = wait_for_all()) std::rethrow_exception(cause);
    throw Error(ErrorKind::kUsage,
                "an earlier backward() was left by an exception when a part of its gradients had "
                "been sent, so the ranks are no longer in step: end the training on every rank, or "
                "go on from a checkpoint with a new DistributedDataParallel");
  }
  // A mark says "not reached" where that is an error, and else "contributes".
  const bool errors = options_.unused == UnusedParameters::kAreErrors;
  const Mark reached = errors ? Mark::kClear : Mark::kSet;
  missing_.clear();
  for (GradientBucket& bucket : buckets_) {
    missing_.push_back(bucket.size());
    bucket.mark_all(reached);
  }
  for (Parameter& parameter : parameters_) parameter.arrived = false;
  sent_ = 0;
  backward_ = current_backward();
  at_end_of_backward([this] { end_backward(); });
}

void GradientReducer::send_complete_buckets() {
  for (; sent_ < buckets_.size() && missing_[sent_] == 0; ++sent_) {
    works_.push_back(
        group_->all_reduce_async(buckets_[sent_].memory(), ReduceOp::kAvg, options_.timeout));
  }
}

/// Until all ranks have ended the pass it is not over: what throws before that leaves operations
/// under way, which begin_backward finds.
void GradientReducer::end_backward() {
  for (Parameter& parameter : parameters_) {
    if (!parameter.arrived) do_without(parameter);
  }
  send_complete_buckets();
  send_buffers();
  const std::exception_ptr cause = wait_for_all();
  backward_ = kIdle;  // the ranks are in step, or their group has failed and will say so itself
  if (cause) std::rethrow_exception(cause);
  settle_unused();
}

/// What an earlier pass has left in .grad takes part: it was accumulated, or is what all ranks
/// have.
void GradientReducer::do_without(const Parameter& parameter) {
  GradientBucket& bucket = buckets_[parameter.bucket];
  bucket.take(parameter.place);
  const bool contributes = parameter.tensor.grad().defined();
  if (contributes) bucket.give(parameter.place);
  const bool errors = options_.unused == UnusedParameters::kAreErrors;
  bucket.mark(parameter.place, errors || contributes ? Mark::kSet : Mark::kClear);
  missing_[parameter.bucket] -= 1;
}

void GradientReducer::send_buffers() {
  if (options_.buffers == BufferSync::kNone) return;
  Tensors data;
  for (const Tensor& buffer : distinct(module_->buffers())) {
    // Without the version counter: batch norm keeps its statistics for backward but does not read
    // them there in training, so that a second backward pass may find them changed.
    data.push_back(buffer.variable_data());
  }
  for (const Tensors& same_type : by_type(data)) {
    works_.push_back(broadcast_async(*group_, same_type, 0, options_.timeout));
  }
}

/// Returns what the first of them failed with.
std::exception_ptr GradientReducer::wait_for_all() {
  std::exception_ptr first;
  for (const WorkPtr& work : std::exchange(works_, {})) {
    try {
      work->wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  return first;
}

void GradientReducer::settle_unused() {
  std::vector<std::vector<bool>> marks;
  for (const GradientBucket& bucket : buckets_) marks.push_back(bucket.marks());
  std::vector<std::string> here, elsewhere;
  for (const Parameter& parameter : parameters_) {
    if (!marks[parameter.bucket][parameter.place]) continue;
    if (options_.unused == UnusedParameters::kContributeNothing) {
      buckets_[parameter.bucket].give(parameter.place);
    } else {
      (parameter.arrived ? elsewhere : here).push_back(parameter.name);
    }
  }
  if (here.empty() && elsewhere.empty()) return;
  throw Error(ErrorKind::kUsage,
              c10::str("backward did not reach ",
                       here.empty() ? listed(elsewhere) + " on another rank" : listed(here),
                       ": use every parameter in the loss, freeze those that are never used before "
                       "wrapping the module, or set UnusedParameters::kContributeNothing"));
}

}  // namespace peal::train
