#include "peal/train/ddp/gradient_reducer.h"

#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/bucket_assignment.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/tensors/agreement.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/staged.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

using Change = ModuleSnapshot::Change;
using Mark = GradientBucket::Mark;

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
  if (group_->size() == 1) return;  // no other rank to agree or average with
  agree();
  broadcast_parameters(*group_, *module_, 0, options_.timeout);
  adopt_module();
}

GradientReducer::~GradientReducer() {
  hooks_.clear();
  wait_for_all();  // the operations write to the buckets' memory
}

void GradientReducer::agree() {
  require_agreement(
      *group_,
      {.what = "parameters and buffers",
       .advice = "every rank must build the same model, and change it in the same way"},
      agreed_.describe(*module_),
      options_.timeout);
  for (const auto& item : module_->named_parameters()) {
    Staged(*item, Staged::Use::kRead);  // throws on every rank if the tensor cannot be communicated
  }
}

// Prepares for the current module, on which all ranks have agreed. If memory for the buckets is
// missing, it changes nothing.
void GradientReducer::adopt_module() {
  make_buckets();
  hooks_.clear();
  watched_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    watch(parameters_[i].tensor, [this, i] { on_gradient(i); });
  }
  agreed_ = ModuleSnapshot(*module_);
}

void GradientReducer::make_buckets() {
  std::vector<Parameter> parameters;
  std::vector<GradientBucket> buckets;
  std::vector<GradientSize> sizes;
  for (const NamedTensor& item : distinct(module_->named_parameters().items())) {
    if (!item->requires_grad()) continue;
    parameters.push_back({.name = item.key(), .tensor = *item});
    sizes.push_back({Elements(item->numel()), element_type(item->scalar_type())});
  }
  const BucketCaps caps{options_.first_bucket_cap, options_.bucket_cap};
  for (const std::vector<std::size_t>& indices : assign_buckets(sizes, caps)) {
    std::vector<torch::Tensor> tensors;
    for (const std::size_t index : indices) {
      parameters[index].bucket = buckets.size();
      parameters[index].place = tensors.size();
      tensors.push_back(parameters[index].tensor);
    }
    buckets.emplace_back(*group_, sizes[indices.front()].dtype, tensors);
  }
  // A frozen module needs a bucket too: its mark shows that the module is no longer frozen.
  if (buckets.empty()) buckets.emplace_back(*group_, DType::kF32, std::vector<torch::Tensor>());
  parameters_ = std::move(parameters);
  buckets_ = std::move(buckets);
}

void GradientReducer::watch(const torch::Tensor& parameter, std::function<void()> call) {
  watched_.insert(parameter.unsafeGetTensorImpl());
  hooks_.push_back(std::make_unique<GradientHook>(parameter, std::move(call)));
}

void GradientReducer::watch_new_parameters() {
  if (group_->size() == 1 || !torch::GradMode::is_enabled()) return;
  for (const torch::Tensor& parameter : module_->parameters()) {
    if (!parameter.requires_grad() || watched_.contains(parameter.unsafeGetTensorImpl())) continue;
    watch(parameter, [this] {
      if (sync_ == Sync::kOn) enter_backward();
    });
  }
}

// ---- one backward pass --------------------------------------------------------------------------

void GradientReducer::on_gradient(std::size_t index) {
  if (sync_ == Sync::kOff) return;
  enter_backward();
  Parameter& parameter = parameters_[index];
  if (parameter.arrived && parameter.bucket < sent_) {
    throw Error(ErrorKind::kUsage,
                "the gradient of " + parameter.name +
                    " came a second time in one backward(), after the first one was sent: if the "
                    "module is loaded or converted between two forward passes, call backward() for "
                    "each of them");
  }
  take(parameter);
  if (std::exchange(parameter.arrived, true)) return;
  missing_[parameter.bucket] -= 1;
  send_complete_buckets();
}

void GradientReducer::enter_backward() {
  if (backward_ != current_backward()) begin_backward();
}

void GradientReducer::begin_backward() {
  if (backward_ != kIdle && sent_ > 0) {
    if (const std::exception_ptr cause = wait_for_all()) std::rethrow_exception(cause);
    throw Error(ErrorKind::kUsage,
                "an exception has ended an earlier backward() after a part of its gradients was "
                "sent, so the ranks are no longer in step: end the training on every rank, or "
                "continue from a checkpoint with a new DistributedDataParallel");
  }
  change_ = agreed_.change(*module_);
  start_collecting();
  buckets_.front().mark_module(change_ == Change::kNone ? Mark::kClear : Mark::kSet);
  backward_ = current_backward();
  at_end_of_backward([this] { end_backward(); });
}

void GradientReducer::start_collecting() {
  // A mark means "not reached" if that is an error, otherwise "contributes".
  const bool errors = options_.unused == UnusedParameters::kAreErrors;
  missing_.clear();
  for (GradientBucket& bucket : buckets_) {
    missing_.push_back(bucket.size());
    bucket.mark_all(errors ? Mark::kClear : Mark::kSet);
  }
  for (Parameter& parameter : parameters_) parameter.arrived = false;
  sent_ = 0;
}

// Puts the gradient into its bucket. If the layout has changed, the old bucket has no place for it:
// then the gradient stays outside, where the old bucket cannot change it, until the ranks have new
// buckets.
void GradientReducer::take(const Parameter& parameter) {
  GradientBucket& bucket = buckets_[parameter.bucket];
  if (change_ == Change::kLayout) {
    bucket.release(parameter.place, parameter.tensor);
  } else {
    bucket.take(parameter.place, parameter.tensor);
    bucket.give(parameter.place, parameter.tensor);
  }
}

void GradientReducer::send_complete_buckets() {
  for (; sent_ < buckets_.size() && missing_[sent_] == 0; ++sent_) {
    works_.push_back(group_->all_reduce_async(buckets_[sent_].memory(),
                                              {.op = ReduceOp::kAvg, .timeout = options_.timeout}));
  }
}

// The pass ends only when all ranks have ended it. An exception before that leaves operations in
// flight, which begin_backward finds.
void GradientReducer::end_backward() {
  for (Parameter& parameter : parameters_) {
    if (!parameter.arrived) do_without(parameter);
  }
  send_complete_buckets();
  const bool changed = some_module_has_changed();
  if (!changed) send_buffers();
  finish_works();
  if (changed) follow_change();
  settle_unused();
}

// For a parameter that this pass has not reached. A gradient from an earlier pass is averaged
// again: either it accumulated without communication, or all ranks have the same one.
void GradientReducer::do_without(const Parameter& parameter) {
  GradientBucket& bucket = buckets_[parameter.bucket];
  const bool contributes = parameter.tensor.grad().defined();
  if (contributes) {
    take(parameter);
  } else if (change_ != Change::kLayout) {
    bucket.take(parameter.place, parameter.tensor);  // zeros
  }
  const bool errors = options_.unused == UnusedParameters::kAreErrors;
  bucket.mark(parameter.place, errors || contributes ? Mark::kSet : Mark::kClear);
  missing_[parameter.bucket] -= 1;
}

// Reads the mark of the first bucket, which is sent first, so that no wait for the others is
// needed.
bool GradientReducer::some_module_has_changed() {
  works_.front()->wait();
  return buckets_.front().module_is_marked();
}

// All ranks compare their modules. Afterwards the layout has changed on every rank or on no rank:
// it was the same on all ranks before, and it is the same now.
void GradientReducer::follow_change() {
  agree();
  require_agreement(*group_,
                    {.what = "values in their parameters, after parameters were loaded or replaced",
                     .advice = "load the same values on every rank, or load them on one rank and "
                               "then call peal::train::broadcast_parameters on every rank"},
                    checksums(*module_),
                    options_.timeout);
  if (std::exchange(change_, Change::kNone) == Change::kLayout) {
    adopt_module();
    average_again();
  } else {
    agreed_ = ModuleSnapshot(*module_);
  }
  send_buffers();
  finish_works();
}

// A gradient that is defined counts as reached, because new parameters had no hook in this pass.
void GradientReducer::average_again() {
  start_collecting();
  for (Parameter& parameter : parameters_) {
    parameter.arrived = parameter.tensor.grad().defined();
    if (!parameter.arrived) {
      do_without(parameter);
      continue;
    }
    take(parameter);
    missing_[parameter.bucket] -= 1;
  }
  send_complete_buckets();
}

void GradientReducer::send_buffers() {
  if (options_.buffers == BufferSync::kNone) return;
  Tensors data;
  for (const Tensor& buffer : distinct(module_->buffers())) {
    // Does not increase the version counter. Batch norm saves its statistics for backward, but does
    // not read them there in training, so a second backward pass may find them changed.
    data.push_back(buffer.variable_data());
  }
  for (const Tensors& same_type : by_type(data)) {
    works_.push_back(broadcast_async(*group_, same_type, 0, {.timeout = options_.timeout}));
  }
}

void GradientReducer::finish_works() {
  const std::exception_ptr cause = wait_for_all();
  backward_ = kIdle;  // the ranks are in step, or their group has failed and reports that itself
  if (cause) std::rethrow_exception(cause);
}

/// Returns the error of the first operation that has failed.
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
      buckets_[parameter.bucket].give(parameter.place, parameter.tensor);
    } else {
      (parameter.arrived ? elsewhere : here).push_back(parameter.name);
    }
  }
  if (here.empty() && elsewhere.empty()) return;
  throw Error(ErrorKind::kUsage,
              c10::str("backward did not reach ",
                       here.empty() ? listed(elsewhere) + " on another rank" : listed(here),
                       ": use every parameter in the loss, freeze those that are never used, "
                       "or set UnusedParameters::kContributeNothing"));
}

}  // namespace peal::train
