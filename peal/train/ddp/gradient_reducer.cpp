#include "peal/train/ddp/gradient_reducer.h"

#include <algorithm>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/buffer_sync.h"
#include "peal/train/ddp/in_backward.h"
#include "peal/train/ddp/model_agreement.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/ddp/reached_parameters.h"
#include "peal/train/ddp/sparse_gradients.h"
#include "peal/train/tensors/tensors.h"

namespace peal::train {
namespace {

using Change = ModuleSnapshot::Change;
using Earlier = TrainedParameter::Earlier;

std::unique_ptr<ModelTensors> required(std::unique_ptr<ModelTensors> model,
                                       const ProcessGroupPtr& group) {
  if (model != nullptr && group != nullptr) return model;
  throw Error(ErrorKind::kUsage, "DistributedDataParallel needs a module and a process group");
}

}  // namespace

GradientReducer::GradientReducer(std::unique_ptr<ModelTensors> model,
                                 ProcessGroupPtr group,
                                 DataParallelOptions options)
    : model_(required(std::move(model), group)),
      group_(std::move(group)),
      options_(std::move(options)),
      buckets_(*group_, {options_.first_bucket_cap, options_.bucket_cap}),
      sender_(*group_, options_),
      end_([this] { in_backward(options_, [this] { end_pass(); }); }) {
  if (!does_nothing()) start();
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::start() {
  require_same_layout(*group_, *model_, agreed_, options_.timeout);
  if (options_.start == Start::kBroadcast) {
    broadcast_parameters(*group_, *model_, 0, options_.timeout);
  }
  adopt_module();
  std::vector<std::int64_t> starts_early = {group_->capabilities().asynchronous_progress ? 1 : 0};
  group_->all_reduce(starts_early, {.op = ReduceOp::kMin, .timeout = options_.timeout});
  sender_.set_starts_early(starts_early.front() != 0);
  if (options_.computation == Computation::kInPlace) {
    allocator_ = std::make_unique<PlaceAllocator>([this](std::size_t bytes) -> PlaceMemory* {
      if (current_backward() == -1) return nullptr;
      const TrainedParameter* const next = buckets_.choose(bytes);
      return next != nullptr ? next->memory.get() : nullptr;
    });
  }
}

void GradientReducer::set_hook(std::shared_ptr<CommunicationHook> hook) {
  const bool did_nothing = does_nothing();
  options_.hook = std::move(hook);
  if (did_nothing && !does_nothing()) start();
}

// A group of one has no rank to average with. But passes may count by their samples.
bool GradientReducer::does_nothing() const {
  return group_->size() == 1 && options_.average != Average::kBySamples && !options_.hook;
}

Earlier GradientReducer::earlier() const {
  return options_.average == Average::kMean ? Earlier::kIsAveraged : Earlier::kIsAdded;
}

// Prepares for the current module, on which all ranks have agreed.
void GradientReducer::adopt_module() {
  buckets_.adopt(*model_);
  const std::vector<TrainedParameter>& parameters = buckets_.parameters();
  arrivals_ = ArrivalOrder(parameters.size());
  considered_order_.clear();
  status_ = PassStatus(parameters.size(), group_->size());
  knows_expected_times_ = false;
  hooks_.clear();
  watched_.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    watch(parameters[i].tensor,
          {.computed = [this, i](const Tensor& gradient) { return gradient_computed(i, gradient); },
           .accumulated = [this, i] { gradient_accumulated(i); }});
  }
  agreed_ = ModuleSnapshot(*model_);
}

void GradientReducer::watch(const Tensor& parameter, GradientCalls calls) {
  watched_.insert(parameter.unsafeGetTensorImpl());
  hooks_.push_back(std::make_unique<GradientHook>(
      parameter,
      GradientCalls{
          .computed =
              [this, call = std::move(calls.computed)](const Tensor& gradient) {
                return in_backward(options_, [&] { return call(gradient); });
              },
          .accumulated = [this,
                          call = std::move(calls.accumulated)] { in_backward(options_, call); },
      }));
}

void GradientReducer::before_forward() {
  if (does_nothing()) return;
  // In a backward pass, forward runs again if it is checkpointed. Elsewhere no pass can be running.
  if (current_backward() == -1) {
    pass_.is_interrupted = pass_.is_open;
    for (const std::unique_ptr<GradientHook>& hook : hooks_) hook->renew();
    expect_pass();
  }
  if (!torch::GradMode::is_enabled()) return;
  model_->visit_parameters([this](const Tensor& parameter) {
    if (!parameter.requires_grad() || watched_.contains(parameter.unsafeGetTensorImpl())) return;
    watch(parameter,
          {.computed = [](const Tensor& gradient) { return gradient; },
           .accumulated = [this] { enter_pass(); }});
  });
}

// The first gradient of a pass is computed before the pass is noticed, and must get its place too.
void GradientReducer::expect_pass() {
  if (!allocator_) return;
  allocator_->stop();
  if (!torch::GradMode::is_enabled()) return;
  buckets_.begin_pass();
  allocator_->start();
}

// ---- gradients are computed ---------------------------------------------------------------------

Tensor GradientReducer::gradient_computed(std::size_t index, const Tensor& gradient) {
  const PlacesPaused paused;
  enter_pass();
  TrainedParameter& parameter = buckets_.parameters()[index];
  if (pass_.sync == Sync::kOn) require_expected(parameter);
  if (!gradient.defined()) return gradient;
  if (torch::GradMode::is_enabled()) {
    if (pass_.sync == Sync::kOn) reject_create_graph();
    return gradient;
  }
  return parameter.accumulate(gradient, weight(), earlier());
}

void GradientReducer::require_expected(const TrainedParameter& parameter) const {
  const bool is_sent =
      parameter.pass.is_ready && parameter.place.defined() && sender_.has_sent(parameter.bucket);
  if (knows_expected_times_ && parameter.pass.times >= parameter.expected_times) {
    throw Error(ErrorKind::kUsage,
                "backward() reached " + parameter.name +
                    " more often than in the first pass, but the graph is static: use each "
                    "parameter equally often in every pass, or do not set Graph::kStatic (in "
                    "Python static_graph=True)");
  }
  if (!is_sent) return;
  throw Error(ErrorKind::kUsage,
              "backward() reached " + parameter.name +
                  " again, after its gradient was sent. If a layer is checkpointed in several "
                  "places, set Graph::kStatic (in Python static_graph=True), and let every pass "
                  "use each parameter equally often. If the module is loaded or converted between "
                  "forward passes, call backward() for each of them");
}

/// The factor of the gradients of this pass.
double GradientReducer::weight() const {
  if (options_.average != Average::kBySamples) return 1;
  return static_cast<double>(pass_.samples) / usual_samples_;
}

void GradientReducer::gradient_accumulated(std::size_t index) {
  const PlacesPaused paused;
  TrainedParameter& parameter = buckets_.parameters()[index];
  parameter.window.reached = true;
  parameter.pass.times += 1;
  if (pass_.sync == Sync::kOff) {
    parameter.pass.is_final = true;
    return;
  }
  if (parameter.pass.is_final) return;
  if (knows_expected_times_ && parameter.pass.times < parameter.expected_times) return;
  parameter.pass.is_final = true;
  arrivals_.arrived(index);
  if (holds_buckets() || parameter.pass.is_ready) return;
  make_ready(parameter);
  sender_.send_ready(buckets_.buckets());
}

// Nested passes belong to the pass that contains them.
void GradientReducer::enter_pass() {
  if (pass_.is_open && !pass_.is_interrupted && end_.is_waiting()) return;
  if (options_.average == Average::kBySamples && !samples_) {
    throw Error(ErrorKind::kUsage,
                "the number of samples of this backward pass is unknown, because no argument of "
                "forward() was a tensor: call set_samples() between forward() and backward()");
  }
  begin_pass({.data = Data::kOfPass, .sync = sync_, .samples = samples()});
  if (allocator_) allocator_->start();
  end_.wait();
}

void GradientReducer::begin_pass(Pass pass) {
  if (pass_.is_open) {
    recover();
    window_samples_ -= pass_.samples;
  }
  pass_ = pass;
  pass_.is_open = true;
  const auto is_in_window = [](const TrainedParameter& one) {
    return one.window.reached && !one.was_dropped();
  };
  if (std::ranges::none_of(buckets_.parameters(), is_in_window)) window_samples_ = 0;
  window_samples_ += pass_.samples;
  buckets_.begin_pass();
  if (pass_.sync == Sync::kOff) return;
  buckets_.renew();
  pass_.sets_expected_times =
      options_.graph == Graph::kStatic && !knows_expected_times_ && pass_.data == Data::kOfPass;
  pass_.change = agreed_.change(*model_);
  if (pass_.change == Change::kLayout) {
    for (TrainedParameter& parameter : buckets_.parameters()) parameter.keep_apart();
  }
  start_collecting();
}

// An exception has ended the last pass. The ranks go on if it has ended the pass of every rank, and
// at the same place. Otherwise the barrier is a mismatch, because another rank is in another
// operation.
void GradientReducer::recover() {
  if (!sender_.has_sent_any()) return;
  try {
    if (const std::exception_ptr cause = sender_.wait_for_all()) std::rethrow_exception(cause);
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
  sender_.begin(buckets_.buckets());
  arrivals_.begin_pass();
  fill_status();
  for (TrainedParameter& parameter : buckets_.parameters()) {
    parameter.pass.is_ready = false;
    if (knows_expected_times_ && parameter.expected_times == 0) make_ready(parameter);
  }
}

void GradientReducer::fill_status() {
  status_.clear();
  if (pass_.change != Change::kNone) status_.set_module_changed();
  if (wants_to_stop_) status_.set_stop();
  if (pass_.data != Data::kNone) status_.set_active(group_->rank(), window_samples_);
}

void GradientReducer::make_ready(TrainedParameter& parameter) {
  buckets_.make_ready(parameter, earlier());
  if (parameter.place.defined()) sender_.add_ready(parameter.bucket);
}

/// Whether no bucket is sent before the end of the pass, because a parameter may be reached again.
bool GradientReducer::holds_buckets() const {
  if (options_.graph == Graph::kStatic) return !knows_expected_times_;
  return was_nested_ || end_.seen_nested();
}

// ---- the pass ends ------------------------------------------------------------------------------

// The pass ends only when all ranks have ended it. An exception before that leaves operations in
// flight, which the next pass finds.
void GradientReducer::end_pass() {
  if (allocator_) allocator_->stop();
  if (pass_.sync == Sync::kOff) {
    pass_.is_open = false;
    return;
  }
  was_nested_ = end_.seen_nested();
  arrivals_.end_pass();
  exchange();
  if (status_.some_module_changed()) follow_change();
  const std::string missing = options_.unused == UnusedParameters::kAreErrors
                                  ? unreached(status_, buckets_.parameters())
                                  : std::string();
  finish_average();
  if (missing.empty()) return;
  throw Error(ErrorKind::kUsage,
              "backward did not reach " + missing +
                  ": use every parameter in the loss, freeze those that are never used, or set "
                  "UnusedParameters::kContributeNothing");
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
  begin_pass({.data = data});
  end_pass();
}

// Sends the buckets that wait for the end of the pass, and then the status. Returns when all
// operations of the pass have ended.
void GradientReducer::exchange() {
  for (TrainedParameter& parameter : buckets_.parameters()) {
    if (!parameter.pass.is_ready) make_ready(parameter);
  }
  set_reached(status_, buckets_.parameters());
  if (wants_other_order()) status_.set_other_order();
  const std::exception_ptr cause = sender_.finish(buckets_.buckets(), status_);
  // The ranks are in step, or their group has failed and reports that itself.
  pass_.is_open = false;
  if (cause) std::rethrow_exception(cause);
}

// All ranks compare their modules. Afterwards the layout has changed on every rank or on no rank:
// it was the same on all ranks before, and it is the same now.
void GradientReducer::follow_change() {
  require_same_layout(*group_, *model_, agreed_, options_.timeout);
  require_same_values(*group_, *model_, options_.timeout);
  if (std::exchange(pass_.change, Change::kNone) != Change::kLayout) {
    agreed_ = ModuleSnapshot(*model_);
    return;
  }
  adopt_module();
  pass_.sets_expected_times = false;  // the gradients of this pass were not all counted
  for (TrainedParameter& parameter : buckets_.parameters()) {
    parameter.pass.is_final = parameter.window.reached;
  }
  start_collecting();
  pass_.is_open = true;
  exchange();
}

// Buckets hold the result of the operations. Scales it, and gives it to the parameters.
void GradientReducer::finish_average() {
  const torch::NoGradGuard no_grad;
  const int active = status_.active_ranks();
  const Scale scale = next_scale();
  for (const GradientBucket& bucket : buckets_.buckets()) {
    if (scale.bucket != 1 && active > 0) bucket.flat().mul_(scale.bucket);
  }
  give_averages(scale.sum);
  knows_expected_times_ = knows_expected_times_ || pass_.sets_expected_times;
  window_samples_ = 0;
  if (status_.some_other_order()) take_order_of_rank_zero();
  if (active == 0) return;
  train::sync_buffers(
      *group_,
      *model_,
      options_.buffers,
      {.first = status_.first_active(), .count = active, .is_one = pass_.data != Data::kNone},
      options_.timeout);
}

GradientReducer::Scale GradientReducer::next_scale() {
  const double ranks = group_->size(), samples = static_cast<double>(status_.samples());
  const int active = status_.active_ranks();
  double of_sum = 1;
  if (options_.average == Average::kMean) {
    of_sum = 1 / (divisor_ == Divisor::kAllRanks || active == 0 ? ranks : active);
  } else if (options_.average == Average::kBySamples && samples > 0) {
    of_sum = usual_samples_ / samples;
    usual_samples_ = samples;
  }
  const bool holds_mean = options_.hook != nullptr || options_.average == Average::kMean;
  return {.sum = of_sum, .bucket = holds_mean ? of_sum * ranks : of_sum};
}

void GradientReducer::give_averages(double scale_of_sum) {
  std::vector<TrainedParameter>& parameters = buckets_.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    TrainedParameter& parameter = parameters[i];
    const bool reached = status_.reached(i) > 0;
    if (reached && (parameter.is_sparse || status_.is_sparse(i))) {
      buckets_.make_sparse(parameter);
      Tensor& gradient = parameter.tensor.mutable_grad();
      gradient = sum_sparse(*group_, gradient, parameter.tensor, scale_of_sum, options_.timeout);
    }
    parameter.settle(reached, earlier());
    if (pass_.sets_expected_times) parameter.expected_times = parameter.pass.times;
  }
}

/// Whether rank 0 has learned an order of arrival that would change the buckets.
bool GradientReducer::wants_other_order() {
  const std::vector<std::size_t>& learned = arrivals_.learned();
  if (group_->rank() != 0 || learned.empty() || learned == considered_order_) return false;
  considered_order_ = learned;
  return buckets_.would_change(learned);
}

void GradientReducer::take_order_of_rank_zero() {
  std::vector<std::int64_t> order(buckets_.parameters().size());
  if (group_->rank() == 0) std::ranges::copy(considered_order_, order.begin());
  group_->broadcast(order, 0, {.timeout = options_.timeout});
  buckets_.set_order({order.begin(), order.end()});
}

void GradientReducer::sync_buffers() {
  train::sync_buffers(
      *group_, *model_, options_.buffers, {.count = group_->size()}, options_.timeout);
}

}  // namespace peal::train
