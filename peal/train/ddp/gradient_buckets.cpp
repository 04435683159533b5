#include "peal/train/ddp/gradient_buckets.h"

#include <algorithm>
#include <utility>

#include <torch/torch.h>

#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {

void GradientBuckets::adopt(const ModelTensors& model) {
  list_parameters(model);
  order_ = reverse_order(parameters_.size());
  make_buckets();
}

// New parameters had no hook, so they count as reached if they have a gradient.
void GradientBuckets::list_parameters(const ModelTensors& model) {
  const std::vector<TrainedParameter> old = std::exchange(parameters_, {});
  for (const NamedTensor& item : distinct(model.parameters())) {
    if (!item->requires_grad()) continue;
    const auto before = std::ranges::find_if(
        old, [&](const TrainedParameter& one) { return one.tensor.is_same(*item); });
    TrainedParameter& parameter = parameters_.emplace_back();
    parameter.name = item.key();
    parameter.tensor = *item;
    parameter.window = before != old.end()
                           ? before->window
                           : TrainedParameter::OfWindow{.reached = item->grad().defined()};
  }
}

BucketAssignment GradientBuckets::assignment(const std::vector<std::size_t>& order) const {
  std::vector<GradientSize> sizes;
  for (const TrainedParameter& one : parameters_) {
    sizes.push_back({Elements(one.tensor.numel()), element_type(one.tensor.scalar_type())});
  }
  std::vector<std::size_t> dense;
  std::ranges::copy_if(order, std::back_inserter(dense), [this](std::size_t index) {
    return !parameters_[index].is_sparse;
  });
  return assign_buckets(sizes, dense, caps_);
}

// Gradients in old buckets are copied to the new ones. If there are none, as after zero_grad(), the
// old memory is released first.
void GradientBuckets::make_buckets() {
  are_old_ = true;  // until memory was found
  std::vector<GradientBucket> old = std::exchange(buckets_, {});
  if (std::ranges::none_of(parameters_, &TrainedParameter::is_in_place)) {
    for (TrainedParameter& parameter : parameters_) parameter.leave_bucket();
    old.clear();
  }
  for (const std::vector<std::size_t>& indices : assignment(order_)) add_bucket(indices);
  for (TrainedParameter& parameter : parameters_) {
    if (parameter.is_sparse) parameter.leave_bucket();
  }
  if (!buckets_.empty()) buckets_.back().set_last();
  are_old_ = false;
}

void GradientBuckets::add_bucket(const std::vector<std::size_t>& indices) {
  std::vector<GradientBucket::Parameter> contents;
  for (const std::size_t index : indices) {
    contents.push_back({parameters_[index].name, parameters_[index].tensor});
  }
  const DType dtype = element_type(parameters_[indices.front()].tensor.scalar_type());
  const std::size_t index = buckets_.size();
  const GradientBucket& bucket = buckets_.emplace_back(group_, index, dtype, std::move(contents));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    parameters_[indices[i]].move_to(index, bucket.place(i), bucket.place_memory(i));
  }
}

void GradientBuckets::begin_pass() {
  for (TrainedParameter& parameter : parameters_) parameter.pass = {};
  chosen_ = 0;
}

void GradientBuckets::renew() {
  if (are_old_) make_buckets();
}

void GradientBuckets::make_ready(TrainedParameter& parameter, TrainedParameter::Earlier earlier) {
  if (parameter.is_occupied()) renew_bucket(parameter.bucket, earlier);
  parameter.fill_place(earlier);
  parameter.pass.is_ready = true;
}

// A tensor of the program occupies a place, so the bucket gets other memory.
void GradientBuckets::renew_bucket(std::size_t index, TrainedParameter::Earlier earlier) {
  GradientBucket& bucket = buckets_[index];
  const GradientsToAverage& old = bucket.contents();
  std::vector<GradientBucket::Parameter> contents;
  for (const GradientsToAverage::Gradient& gradient : old.gradients) {
    contents.push_back({gradient.name, gradient.parameter});
  }
  GradientBucket renewed(group_, index, bucket.memory().dtype, std::move(contents));
  if (old.is_last) renewed.set_last();
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const auto parameter = std::ranges::find_if(parameters_, [&](const TrainedParameter& one) {
      return one.place.is_same(bucket.place(i));
    });
    parameter->move_to(index, renewed.place(i), renewed.place_memory(i));
    if (parameter->pass.is_ready) parameter->fill_place(earlier);
  }
  bucket = std::move(renewed);
}

bool GradientBuckets::would_change(const std::vector<std::size_t>& order) const {
  const auto as_sets = [](BucketAssignment buckets) {
    for (std::vector<std::size_t>& bucket : buckets) std::ranges::sort(bucket);
    return buckets;
  };
  return as_sets(assignment(order)) != as_sets(assignment(order_));
}

void GradientBuckets::set_order(std::vector<std::size_t> order) {
  order_ = std::move(order);
  are_old_ = true;
}

void GradientBuckets::make_sparse(TrainedParameter& parameter) {
  if (!std::exchange(parameter.is_sparse, true)) are_old_ = true;
}

// Gradients are computed about in the order of the buckets, so only the next ones are expected.
const TrainedParameter* GradientBuckets::choose(std::size_t bytes) {
  constexpr std::size_t kNext = 8;
  while (chosen_ < order_.size() && parameters_[order_[chosen_]].pass.is_final) ++chosen_;
  for (std::size_t i = chosen_; i < std::min(chosen_ + kNext, order_.size()); ++i) {
    const TrainedParameter& parameter = parameters_[order_[i]];
    if (parameter.expects_gradient() && parameter.memory->bytes() == bytes) return &parameter;
  }
  return nullptr;
}

}  // namespace peal::train
