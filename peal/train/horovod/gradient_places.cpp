#include "peal/train/horovod/gradient_places.h"

#include <limits>
#include <utility>

#include <torch/torch.h>

#include "peal/train/ddp/backward_end.h"
#include "peal/train/ddp/model_tensors.h"
#include "peal/train/ddp/trained_parameter.h"

namespace peal::hvd {
namespace {

using torch::Tensor;
using train::NamedTensor;
using train::TrainedParameter;

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// All gradients of a type are neighbours.
constexpr train::BucketCaps kOneBucket = {Bytes(std::numeric_limits<std::int64_t>::max()),
                                          Bytes(std::numeric_limits<std::int64_t>::max())};

class ParametersOfOptimizer final : public train::ModelTensors {
 public:
  explicit ParametersOfOptimizer(std::vector<NamedTensor> parameters)
      : parameters_(std::move(parameters)) {}

  std::vector<NamedTensor> parameters() const override { return parameters_; }
  std::vector<NamedTensor> buffers() const override { return {}; }
  void visit_parameters(c10::function_ref<void(const Tensor&)> visit) const override {
    for (const NamedTensor& one : parameters_) visit(one.value());
  }

 private:
  std::vector<NamedTensor> parameters_;
};

bool has_place(const Tensor& parameter) { return parameter.is_cpu() && parameter.requires_grad(); }

/// Whether the program still has the tensor of the place. The parameter's list and the bucket hold
/// a reference each.
bool is_kept(const TrainedParameter& parameter) {
  return parameter.place.use_count() > 2 || parameter.place.storage().use_count() > 1;
}

}  // namespace

GradientPlaces::GradientPlaces(ProcessGroupPtr group, const std::vector<NamedTensor>& parameters)
    : group_(std::move(group)),
      buckets_(*group_, kOneBucket),
      allocator_([this](std::size_t bytes) -> train::PlaceMemory* {
        if (train::current_backward() == -1) return nullptr;
        const TrainedParameter* const next = buckets_.choose(bytes);
        return next != nullptr && !is_kept(*next) ? next->memory.get() : nullptr;
      }) {
  std::vector<NamedTensor> placed;
  for (const NamedTensor& one : parameters) {
    index_of_.push_back(has_place(one.value()) ? placed.size() : kNone);
    if (has_place(one.value())) placed.push_back(one);
  }
  buckets_.adopt(ParametersOfOptimizer(std::move(placed)));
  begin_step();
}

TrainedParameter* GradientPlaces::place_of(std::size_t parameter) {
  const std::size_t index = index_of_[parameter];
  return index == kNone ? nullptr : &buckets_.parameters()[index];
}

Tensor GradientPlaces::computed(std::size_t parameter, const Tensor& gradient) {
  const train::PlacesPaused paused;
  TrainedParameter* const place = place_of(parameter);
  // If the parameter already has a gradient, autograd adds to it, in the memory where it is.
  if (place == nullptr || !gradient.defined() || place->tensor.grad().defined() ||
      torch::GradMode::is_enabled() || is_kept(*place)) {
    return gradient;
  }
  return place->accumulate(gradient, 1, TrainedParameter::Earlier::kIsAveraged);
}

void GradientPlaces::accumulated(std::size_t parameter) {
  if (TrainedParameter* const place = place_of(parameter)) place->pass.is_final = true;
}

void GradientPlaces::begin_step() {
  buckets_.begin_pass();
  allocator_.start();
}

}  // namespace peal::hvd
