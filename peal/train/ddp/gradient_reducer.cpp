#include "peal/train/ddp/gradient_reducer.h"

#include <algorithm>
#include <future>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/ddp/sparse_gradients.h"
#include "peal/train/tensors/agreement.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/staged.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

using Change = ModuleSnapshot::Change;
using Earlier = TrainedParameter::Earlier;

/// "conv.weight", "conv.weight and 3 more"
std::string listed(const std::vector<std::string>& names) {
  const std::size_t others = names.size() - 1;
  return others == 0 ? names.front() : c10::str(names.front(), " and ", others, " more");
}

/// Makes a call that autograd has asked for.
template <class Call>
auto in_backward(const DataParallelOptions& options, const Call& call) {
  try {
    return call();
  } catch (...) {
    if (options.leave_backward) options.leave_backward(std::current_exception());
    throw;
  }
}

}  // namespace

GradientReducer::GradientReducer(std::unique_ptr<ModelTensors> model,
                                 ProcessGroupPtr group,
                                 DataParallelOptions options)
    : model_(std::move(model)),
      group_(std::move(group)),
      options_(std::move(options)),
      end_([this] { in_backward(options_, [this] { end_pass(); }); }) {
  if (model_ == nullptr || group_ == nullptr) {
    throw Error(ErrorKind::kUsage, "DistributedDataParallel needs a module and a process group");
  }
  if (!does_nothing()) start();
}

void GradientReducer::start() {
  agree();
  if (options_.start == Start::kBroadcast) {
    broadcast_parameters(*group_, *model_, 0, options_.timeout);
  }
  adopt_module();
  if (options_.computation == Computation::kInPlace) {
    allocator_ =
        std::make_unique<PlaceAllocator>([this](std::size_t bytes) { return choose_place(bytes); });
  }
}

void GradientReducer::set_hook(std::shared_ptr<CommunicationHook> hook) {
  const bool did_nothing = does_nothing();
  options_.hook = std::move(hook);
  if (did_nothing && !does_nothing()) start();
}

GradientReducer::~GradientReducer() {
  hooks_.clear();
  // The operations write to the buckets' memory. Does not call wait(), which may start others.
  for (const WorkPtr& work : works_) {
    std::promise<void> ended;
    work->when_completed([&ended] { ended.set_value(); });
    ended.get_future().wait();
  }
}

// A group of one has no rank to average with. But passes may count by their samples.
bool GradientReducer::does_nothing() const {
  return group_->size() == 1 && options_.average != Average::kBySamples && !options_.hook;
}

Earlier GradientReducer::earlier() const {
  return options_.average == Average::kMean ? Earlier::kIsAveraged : Earlier::kIsAdded;
}

void GradientReducer::agree() {
  require_agreement(
      *group_,
      {.what = "parameters and buffers",
       .advice = "every rank must build the same model, and change it in the same way"},
      agreed_.describe(*model_),
      options_.timeout);
  for (const NamedTensor& item : model_->parameters()) {
    Staged(*item, Staged::Use::kRead);  // throws on every rank if the tensor cannot be communicated
  }
}

// Prepares for the current module, on which all ranks have agreed.
void GradientReducer::adopt_module() {
  list_parameters();
  make_buckets();
  hooks_.clear();
  watched_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    watch(parameters_[i].tensor,
          {.arriving = [this, i](const Tensor& gradient) { return arriving(i, gradient); },
           .arrived = [this, i] { arrived(i); }});
  }
  agreed_ = ModuleSnapshot(*model_);
}

// Parameters that remain keep the state of their window. New ones had no hook, so they count as
// reached if they have a gradient.
void GradientReducer::list_parameters() {
  const std::vector<TrainedParameter> old = std::exchange(parameters_, {});
  for (const NamedTensor& item : distinct(model_->parameters())) {
    if (!item->requires_grad()) continue;
    const auto before = std::ranges::find_if(
        old, [&](const TrainedParameter& one) { return one.tensor.is_same(*item); });
    TrainedParameter& parameter = parameters_.emplace_back();
    parameter.name = item.key();
    parameter.tensor = *item;
    parameter.reached = before == old.end() ? item->grad().defined() : before->reached;
    if (before != old.end()) parameter.set_aside = before->set_aside;
  }
  order_ = reverse_order(parameters_.size());
  arrivals_ = ArrivalOrder(parameters_.size());
  considered_order_.clear();
  status_ = PassStatus(parameters_.size(), group_->size());
  has_counted_ = false;
}

BucketAssignment GradientReducer::assignment(const std::vector<std::size_t>& order) const {
  std::vector<GradientSize> sizes;
  for (const TrainedParameter& one : parameters_) {
    sizes.push_back({Elements(one.tensor.numel()), element_type(one.tensor.scalar_type())});
  }
  std::vector<std::size_t> dense;
  std::ranges::copy_if(order, std::back_inserter(dense), [this](std::size_t index) {
    return !parameters_[index].is_sparse;
  });
  return assign_buckets(sizes, dense, {options_.first_bucket_cap, options_.bucket_cap});
}

// Gradients in old buckets are copied to the new ones. If there are none, as after zero_grad(), the
// old memory is released first.
void GradientReducer::make_buckets() {
  buckets_are_old_ = true;  // until memory was found
  std::vector<GradientBucket> old = std::exchange(buckets_, {});
  if (std::ranges::none_of(parameters_, &TrainedParameter::is_in_place)) {
    for (TrainedParameter& parameter : parameters_) parameter.leave_bucket();
    old.clear();
  }
  for (const std::vector<std::size_t>& indices : assignment(order_)) {
    std::vector<GradientBucket::Parameter> contents;
    for (const std::size_t index : indices) {
      contents.push_back({parameters_[index].name, parameters_[index].tensor});
    }
    const DType dtype = element_type(parameters_[indices.front()].tensor.scalar_type());
    const std::size_t index = buckets_.size();
    const GradientBucket& bucket =
        buckets_.emplace_back(*group_, index, dtype, std::move(contents));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      parameters_[indices[i]].move_to(index, bucket.place(i), bucket.place_memory(i));
    }
  }
  for (TrainedParameter& parameter : parameters_) {
    if (parameter.is_sparse) parameter.leave_bucket();
  }
  if (!buckets_.empty()) buckets_.back().set_last();
  buckets_are_old_ = false;
}

// Gradients arrive about in the order of the buckets, so only the next ones are expected.
PlaceMemory* GradientReducer::choose_place(std::size_t bytes) {
  constexpr std::size_t kNext = 8;
  while (next_ < order_.size() && parameters_[order_[next_]].arrived) ++next_;
  for (std::size_t i = next_; i < std::min(next_ + kNext, order_.size()); ++i) {
    const TrainedParameter& parameter = parameters_[order_[i]];
    if (parameter.expects_gradient() && parameter.memory->bytes() == bytes) {
      return parameter.memory.get();
    }
  }
  return nullptr;
}

// A tensor of the program occupies a place, so the bucket gets other memory.
void GradientReducer::renew_bucket(std::size_t index) {
  GradientBucket& bucket = buckets_[index];
  const GradientsToAverage& old = bucket.contents();
  std::vector<GradientBucket::Parameter> contents;
  for (const auto& gradient : old.gradients)
    contents.push_back({gradient.name, gradient.parameter});
  GradientBucket renewed(*group_, index, bucket.memory().dtype, std::move(contents));
  if (old.is_last) renewed.set_last();
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const auto parameter = std::ranges::find_if(parameters_, [&](const TrainedParameter& one) {
      return one.place.is_same(bucket.place(i));
    });
    parameter->move_to(index, renewed.place(i), renewed.place_memory(i));
    if (parameter->is_complete) parameter->complete(earlier());
  }
  bucket = std::move(renewed);
}

void GradientReducer::watch(const Tensor& parameter, GradientCalls calls) {
  watched_.insert(parameter.unsafeGetTensorImpl());
  hooks_.push_back(std::make_unique<GradientHook>(
      parameter,
      GradientCalls{
          .arriving =
              [this, call = std::move(calls.arriving)](const Tensor& gradient) {
                return in_backward(options_, [&] { return call(gradient); });
              },
          .arrived = [this, call = std::move(calls.arrived)] { in_backward(options_, call); },
      }));
}

void GradientReducer::before_forward() {
  if (does_nothing()) return;
  // In a backward pass, forward runs again if it is checkpointed. Elsewhere no pass can be running.
  if (current_backward() == -1) {
    interrupted_ = in_pass_;
    if (allocator_) allocator_->stop();
  }
  if (!torch::GradMode::is_enabled()) return;
  model_->visit_parameters([this](const Tensor& parameter) {
    if (!parameter.requires_grad() || watched_.contains(parameter.unsafeGetTensorImpl())) return;
    watch(parameter,
          {.arriving = [](const Tensor& gradient) { return gradient; },
           .arrived = [this] { enter_pass(); }});
  });
}

// ---- gradients arrive ---------------------------------------------------------------------------

Tensor GradientReducer::arriving(std::size_t index, const Tensor& gradient) {
  const PlacesPaused paused;
  enter_pass();
  TrainedParameter& parameter = parameters_[index];
  const bool is_unexpected = has_counted_ && parameter.arrivals >= parameter.expected;
  const bool is_sent =
      parameter.is_complete && parameter.place.defined() && parameter.bucket < sent_;
  if (pass_sync_ == Sync::kOn && (is_unexpected || is_sent)) {
    throw Error(ErrorKind::kUsage,
                "the gradient of " + parameter.name +
                    " came once more in one backward(), after it was sent or was not expected: "
                    "call backward() for each forward pass if the module is loaded or converted "
                    "between them. If a layer is checkpointed in several places, set "
                    "Graph::kStatic, and let every pass use each parameter equally often");
  }
  if (!gradient.defined()) return gradient;
  if (torch::GradMode::is_enabled()) {
    if (pass_sync_ == Sync::kOn) reject_create_graph();
    return gradient;
  }
  const double weight = options_.average == Average::kBySamples
                            ? static_cast<double>(samples()) / usual_samples_
                            : 1.0;
  return parameter.accumulate(gradient, weight, earlier());
}

void GradientReducer::arrived(std::size_t index) {
  const PlacesPaused paused;
  TrainedParameter& parameter = parameters_[index];
  parameter.reached = true;
  parameter.arrivals += 1;
  if (pass_sync_ == Sync::kOff) {
    parameter.arrived = true;
    return;
  }
  if (parameter.arrived) return;
  if (has_counted_ && parameter.arrivals < parameter.expected) return;
  parameter.arrived = true;
  arrivals_.arrived(index);
  if (holds_buckets() || parameter.is_complete) return;
  complete(parameter);
  send_complete_buckets(At::kArrival);
}

// Nested passes belong to the pass that contains them.
void GradientReducer::enter_pass() {
  if (in_pass_ && !interrupted_ && end_.is_waiting()) return;
  if (options_.average == Average::kBySamples && !samples_) {
    throw Error(ErrorKind::kUsage,
                "the number of samples of this backward pass is unknown, because no argument of "
                "forward() was a tensor: call set_samples() between forward() and backward()");
  }
  pass_sync_ = sync_;
  data_ = Data::kOfPass;
  begin_pass();
  if (allocator_) allocator_->start();
  end_.wait();
}

void GradientReducer::begin_pass() {
  if (std::exchange(in_pass_, true)) recover();
  window_samples_ -= std::exchange(interrupted_samples_, 0);
  interrupted_ = false;
  const auto is_in_window = [](const TrainedParameter& one) {
    return one.reached && !one.was_dropped();
  };
  if (std::ranges::none_of(parameters_, is_in_window)) window_samples_ = 0;
  if (data_ == Data::kOfPass) {
    window_samples_ += samples();
    interrupted_samples_ = samples();  // until the end of the pass
  }
  next_ = 0;
  for (TrainedParameter& parameter : parameters_) {
    parameter.arrivals = 0;
    parameter.arrived = false;
    parameter.is_complete = false;
    parameter.is_apart = false;
  }
  if (pass_sync_ == Sync::kOff) return;
  if (buckets_are_old_) make_buckets();
  change_ = agreed_.change(*model_);
  if (change_ == Change::kLayout) {
    for (TrainedParameter& parameter : parameters_) parameter.keep_apart();
  }
  start_collecting();
}

// An exception has ended the last pass. The ranks go on if it has ended the pass of every rank, and
// at the same place. Otherwise the barrier is a mismatch, because another rank is in another
// operation.
void GradientReducer::recover() {
  if (std::exchange(sent_, 0) == 0) return;
  try {
    if (const std::exception_ptr cause = wait_for_all()) std::rethrow_exception(cause);
    group_->barrier({.timeout = options_.timeout});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMismatch) throw;
    throw Error(ErrorKind::kMismatch,
                c10::str("an exception has ended an earlier backward() after a part of its "
                         "gradients was sent, and not on every rank at the same place. End the "
                         "training on every rank, or continue from a checkpoint with a new process "
                         "group. The ranks are no longer in step: ",
                         error.what()));
  }
}

void GradientReducer::start_collecting() {
  missing_.clear();
  for (const GradientBucket& bucket : buckets_) missing_.push_back(bucket.size());
  for (TrainedParameter& parameter : parameters_) parameter.is_complete = false;
  arrivals_.begin_pass();
  status_.clear();
  if (change_ != Change::kNone) status_.set_module_changed();
  if (wants_to_stop_) status_.set_stop();
  if (data_ != Data::kNone) status_.set_active(group_->rank(), window_samples_);
  if (!has_counted_) return;
  for (TrainedParameter& parameter : parameters_) {
    if (parameter.expected == 0) complete(parameter);
  }
}

void GradientReducer::complete(TrainedParameter& parameter) {
  if (parameter.is_occupied()) renew_bucket(parameter.bucket);
  parameter.complete(earlier());
  parameter.is_complete = true;
  if (parameter.place.defined()) missing_[parameter.bucket] -= 1;
}

/// Whether no bucket is sent before the end of the pass, because a parameter may be reached again.
bool GradientReducer::holds_buckets() const {
  if (options_.graph == Graph::kStatic) return !has_counted_;
  return was_nested_ || end_.seen_nested();
}

void GradientReducer::send_complete_buckets(At at) {
  if (at == At::kArrival && holds_buckets()) return;
  for (; sent_ < buckets_.size() && missing_[sent_] == 0; ++sent_) {
    const GradientBucket& bucket = buckets_[sent_];
    if (options_.hook) {
      works_.push_back(options_.hook->start(*group_, bucket.contents(), options_.timeout));
      continue;
    }
    const ReduceOp op = options_.average == Average::kMean ? ReduceOp::kAvg : ReduceOp::kSum;
    works_.push_back(group_->all_reduce_async(bucket.memory(), {op, options_.timeout}));
  }
}

// ---- the pass ends ------------------------------------------------------------------------------

// The pass ends only when all ranks have ended it. An exception before that leaves operations in
// flight, which the next pass finds.
void GradientReducer::end_pass() {
  if (allocator_) allocator_->stop();
  if (pass_sync_ == Sync::kOff) {
    in_pass_ = false;
    interrupted_samples_ = 0;
    return;
  }
  was_nested_ = end_.seen_nested();
  arrivals_.end_pass();
  exchange();
  if (status_.some_module_changed()) follow_change();
  std::vector<std::string> here, elsewhere;  // parameters that were not reached
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (options_.unused != UnusedParameters::kAreErrors) break;
    if (status_.reached(i) == status_.active_ranks()) continue;
    (parameters_[i].reached ? elsewhere : here).push_back(parameters_[i].name);
  }
  finish_average();
  if (here.empty() && elsewhere.empty()) return;
  throw Error(ErrorKind::kUsage,
              c10::str("backward did not reach ",
                       here.empty() ? listed(elsewhere) + " on another rank" : listed(here),
                       ": use every parameter in the loss, freeze those that are never used, "
                       "or set UnusedParameters::kContributeNothing"));
}

bool GradientReducer::pass_without_data() {
  if (does_nothing()) return false;
  pass_without_backward(Data::kNone);
  return status_.active_ranks() > 0;
}

void GradientReducer::average_window() {
  if (!does_nothing()) pass_without_backward(Data::kOfWindow);
}

void GradientReducer::pass_without_backward(Data data) {
  pass_sync_ = Sync::kOn;
  data_ = data;
  begin_pass();
  end_pass();
}

// Sends the buckets that wait for the end of the pass, and then the status. Returns when all
// operations of the pass have ended.
void GradientReducer::exchange() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    TrainedParameter& parameter = parameters_[i];
    if (!parameter.is_complete) complete(parameter);
    if (!parameter.reached) continue;
    const Tensor& gradient = parameter.tensor.grad();
    status_.set_reached(i,
                        gradient.defined() && gradient.is_sparse() ? PassStatus::Gradient::kSparse
                                                                   : PassStatus::Gradient::kDense);
  }
  if (wants_other_order()) status_.set_other_order();
  send_complete_buckets(At::kEnd);
  works_.push_back(group_->all_reduce_async(status_.words(), {.timeout = options_.timeout}));
  const std::exception_ptr cause = wait_for_all();
  // The ranks are in step, or their group has failed and reports that itself.
  in_pass_ = false;
  sent_ = 0;
  interrupted_samples_ = 0;
  if (cause) std::rethrow_exception(cause);
}

/// Returns the error of the first operation that has failed.
std::exception_ptr GradientReducer::wait_for_all() {
  std::exception_ptr first;
  for (const WorkPtr& work : works_) {
    try {
      if (options_.wait) {
        options_.wait(*work);
      } else {
        work->wait();
      }
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  works_.clear();
  return first;
}

// All ranks compare their modules. Afterwards the layout has changed on every rank or on no rank:
// it was the same on all ranks before, and it is the same now.
void GradientReducer::follow_change() {
  agree();
  require_agreement(*group_,
                    {.what = "values in their parameters, after parameters were loaded or replaced",
                     .advice = "load the same values on every rank, or load them on one rank and "
                               "then call peal::train::broadcast_parameters on every rank"},
                    checksums(*model_),
                    options_.timeout);
  if (std::exchange(change_, Change::kNone) != Change::kLayout) {
    agreed_ = ModuleSnapshot(*model_);
    return;
  }
  adopt_module();
  for (TrainedParameter& parameter : parameters_) parameter.arrived = parameter.reached;
  start_collecting();
  in_pass_ = true;
  exchange();
}

// Buckets hold the result of the operations. Scales it, and gives it to the parameters.
void GradientReducer::finish_average() {
  const torch::NoGradGuard no_grad;
  const int active = status_.active_ranks();
  const double ranks = group_->size(), samples = static_cast<double>(status_.samples());
  double scale = 1;  // of a sum over the ranks
  if (options_.average == Average::kMean) {
    scale = 1 / (divisor_ == Divisor::kAllRanks || active == 0 ? ranks : active);
  } else if (options_.average == Average::kBySamples && samples > 0) {
    scale = usual_samples_ / samples;
    usual_samples_ = samples;
  }
  const bool is_mean = options_.hook != nullptr || options_.average == Average::kMean;
  const double factor = is_mean ? scale * ranks : scale;
  for (const GradientBucket& bucket : buckets_) {
    if (factor != 1 && active > 0) bucket.flat().mul_(factor);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    TrainedParameter& parameter = parameters_[i];
    const bool reached = status_.reached(i) > 0;
    if (reached && (parameter.is_sparse || status_.is_sparse(i))) {
      if (!std::exchange(parameter.is_sparse, true)) buckets_are_old_ = true;
      Tensor& gradient = parameter.tensor.mutable_grad();
      gradient = sum_sparse(*group_, gradient, parameter.tensor, scale, options_.timeout);
    }
    parameter.settle(reached, earlier());
    if (options_.graph == Graph::kStatic && data_ == Data::kOfPass && !has_counted_) {
      parameter.expected = parameter.arrivals;
    }
  }
  has_counted_ = has_counted_ || (options_.graph == Graph::kStatic && data_ == Data::kOfPass);
  window_samples_ = 0;
  if (status_.some_other_order()) take_order_of_rank_zero();
  if (active > 0) sync_buffers(status_.first_active(), data_, active);
}

/// Whether rank 0 has learned an order of arrival that would change the buckets.
bool GradientReducer::wants_other_order() {
  const std::vector<std::size_t>& learned = arrivals_.learned();
  if (group_->rank() != 0 || learned.empty() || learned == considered_order_) return false;
  considered_order_ = learned;
  const auto as_sets = [](BucketAssignment buckets) {
    for (std::vector<std::size_t>& bucket : buckets) std::ranges::sort(bucket);
    return buckets;
  };
  return as_sets(assignment(learned)) != as_sets(assignment(order_));
}

void GradientReducer::take_order_of_rank_zero() {
  std::vector<std::int64_t> order(parameters_.size());
  if (group_->rank() == 0) std::ranges::copy(considered_order_, order.begin());
  group_->broadcast(order, 0, {.timeout = options_.timeout});
  order_.assign(order.begin(), order.end());
  buckets_are_old_ = true;
}

void GradientReducer::sync_buffers() { sync_buffers(0, Data::kOfPass, group_->size()); }

void GradientReducer::sync_buffers(Rank root, Data data_of_rank, int active) {
  if (options_.buffers == BufferSync::kNone || group_->size() == 1) return;
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> data;
  for (const NamedTensor& buffer : distinct(model_->buffers())) {
    // Does not increase the version counter. Batch norm saves its statistics for backward, but does
    // not read them there in training, so a second backward pass may find them changed.
    data.push_back(buffer->variable_data());
  }
  for (const Tensors& same_type : by_type(data)) {
    if (options_.buffers == BufferSync::kAverage && same_type.front().is_floating_point()) {
      for (const Tensor& buffer : same_type) {
        if (data_of_rank == Data::kNone) buffer.zero_();
      }
      all_reduce(*group_, same_type, {.timeout = options_.timeout});
      for (const Tensor& buffer : same_type) buffer.div_(active);
    } else {
      broadcast(*group_, same_type, root, {.timeout = options_.timeout});
    }
  }
}

}  // namespace peal::train
