// The trained parameters of a model, and the buckets in which their gradients are collected. Used
// by GradientReducer.
#pragma once

#include <cstddef>
#include <vector>

#include "peal/group/process_group.h"
#include "peal/train/ddp/bucket_assignment.h"
#include "peal/train/ddp/gradient_bucket.h"
#include "peal/train/ddp/model_tensors.h"
#include "peal/train/ddp/place_allocator.h"
#include "peal/train/ddp/trained_parameter.h"

namespace peal::train {

/// Each dense gradient has a place in a bucket. A sparse gradient has none.
/// Threads: one at a time. Order: ranks with equal models, orders and sparse parameters make equal
///   buckets.
class GradientBuckets final {
 public:
  /// Keeps the reference.
  GradientBuckets(ProcessGroup& group, BucketCaps caps) : group_(group), caps_(caps) {}

  /// Lists the parameters of the model that require gradients, and makes their buckets, in the
  /// reverse order of registration. Parameters that were listed before keep their window.
  /// Errors: resource. Cost: allocates all buckets.
  void adopt(const ModelTensors& model);

  /// Begins a pass of all parameters.
  void begin_pass();
  /// Makes new buckets if the order or the sparse parameters have changed. Not inside of a pass,
  /// after the first gradient.
  /// Errors, Cost: as adopt.
  void renew();

  std::vector<TrainedParameter>& parameters() { return parameters_; }
  const std::vector<TrainedParameter>& parameters() const { return parameters_; }
  const std::vector<GradientBucket>& buckets() const { return buckets_; }

  /// Fills the place of the gradient with what this rank contributes. Moves the bucket to other
  /// memory if another tensor occupies the place.
  /// Errors: resource, unsupported (a gradient that can be differentiated again).
  void make_ready(TrainedParameter& parameter, TrainedParameter::Earlier earlier);

  /// Whether buckets in this order would contain other gradients.
  bool would_change(const std::vector<std::size_t>& order) const;
  /// The order of gradients in the buckets, from the next renew() on.
  void set_order(std::vector<std::size_t> order);
  /// From the next renew() on, the gradient of the parameter is in no bucket.
  void make_sparse(TrainedParameter& parameter);

  /// For PlaceAllocator. Autograd asks for memory for a result of `bytes`, which may be one of the
  /// next gradients. Returns the parameter of the first such gradient of this size, or null.
  const TrainedParameter* choose(std::size_t bytes);

 private:
  void list_parameters(const ModelTensors& model);
  BucketAssignment assignment(const std::vector<std::size_t>& order) const;
  void make_buckets();
  void add_bucket(const std::vector<std::size_t>& indices);
  void renew_bucket(std::size_t index, TrainedParameter::Earlier earlier);

  ProcessGroup& group_;
  BucketCaps caps_;
  std::vector<TrainedParameter> parameters_;  // those that require gradients, each once
  std::vector<std::size_t> order_;            // of the gradients in the buckets
  std::vector<GradientBucket> buckets_;
  bool are_old_ = false;    // order_ or the sparse parameters have changed
  std::size_t chosen_ = 0;  // all gradients in order_ before it have their last value in this pass
};

}  // namespace peal::train
