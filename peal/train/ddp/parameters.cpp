#include "peal/train/ddp/parameters.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/checksum.h"
#include "peal/train/tensors/agreement.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

/// The type of a gradient as a number that ranks can compare.
constexpr std::int64_t kNoGradient = -1;
torch::ScalarType type_of(std::int64_t number) { return static_cast<torch::ScalarType>(number); }

std::vector<std::int64_t> gradient_types(const std::vector<NamedTensor>& parameters) {
  std::vector<std::int64_t> types;
  for (const NamedTensor& parameter : parameters) {
    const Tensor& gradient = parameter->grad();
    types.push_back(gradient.defined() ? static_cast<std::int64_t>(gradient.scalar_type())
                                       : kNoGradient);
  }
  return types;
}

template <class T>
std::int64_t checksum_of(std::span<const T> values, std::int64_t seed = 0) {
  return std::bit_cast<std::int64_t>(
      checksum(std::as_bytes(values), std::bit_cast<std::uint64_t>(seed)));
}

std::int64_t checksum_of_shapes(const std::vector<NamedTensor>& parameters) {
  std::int64_t sum = 0;
  for (const NamedTensor& parameter : parameters) {
    sum = checksum_of(std::span(parameter.key().data(), parameter.key().size()), sum);
    sum = checksum_of(std::span(parameter->sizes().data(), parameter->sizes().size()), sum);
  }
  return sum;
}

std::vector<std::string> describe(const std::vector<NamedTensor>& parameters) {
  std::vector<std::string> lines;
  for (const NamedTensor& parameter : parameters) {
    lines.push_back(c10::str(parameter.key(), " (shape ", parameter->sizes(), ")"));
  }
  return lines;
}

/// For each parameter, sets `types` to the gradient type of any rank that has a gradient.
void unite(ProcessGroup& group,
           const std::vector<NamedTensor>& parameters,
           std::vector<std::int64_t>& types,
           Timeout timeout) {
  const auto count = static_cast<std::ptrdiff_t>(types.size());
  std::vector<std::int64_t> largest = types;  // followed by the negated smallest types
  for (const std::int64_t type : types) {
    largest.push_back(type == kNoGradient ? std::numeric_limits<std::int64_t>::min() : -type);
  }
  group.all_reduce(largest, {.op = ReduceOp::kMax, .timeout = timeout});
  types.assign(largest.begin(), largest.begin() + count);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == kNoGradient || largest[types.size() + i] == -types[i]) continue;
    throw Error(ErrorKind::kMismatch,
                c10::str("the gradients of ",
                         parameters[i].key(),
                         " have different types, among them ",
                         type_of(types[i]),
                         " and ",
                         type_of(-largest[types.size() + i]),
                         ": convert the module in the same way on every rank"));
  }
}

/// Returns if all ranks have the same parameters. `types` then holds the type of each gradient that
/// some rank has.
void agree_on_gradients(ProcessGroup& group,
                        const std::vector<NamedTensor>& parameters,
                        std::vector<std::int64_t>& types,
                        Timeout timeout) {
  const std::int64_t shapes = checksum_of_shapes(parameters);
  const std::int64_t present = checksum_of(std::span<const std::int64_t>(types));
  std::vector<std::int64_t> largest = {shapes, ~shapes, present, ~present};  // ~: smallest
  group.all_reduce(largest, {.op = ReduceOp::kMax, .timeout = timeout});
  if (largest[0] != ~largest[1]) {
    require_agreement(group,
                      {.what = "parameters", .advice = "every rank must build the same model"},
                      describe(parameters),
                      timeout);
  }
  if (largest[2] != ~largest[3]) unite(group, parameters, types, timeout);
}

void broadcast_all(ProcessGroup& group,
                   std::vector<NamedTensor> tensors,
                   const std::vector<NamedTensor>& more,
                   Rank root,
                   Timeout timeout) {
  tensors.insert(tensors.end(), more.begin(), more.end());
  Tensors all;
  for (const NamedTensor& tensor : distinct(tensors)) all.push_back(tensor.value());
  for (const Tensors& same_type : by_type(all)) {
    broadcast(group, same_type, root, {.timeout = timeout});
  }
}

}  // namespace

void broadcast_parameters(ProcessGroup& group,
                          const torch::nn::Module& module,
                          Rank root,
                          Timeout timeout) {
  broadcast_all(
      group, module.named_parameters().items(), module.named_buffers().items(), root, timeout);
}

void broadcast_parameters(ProcessGroup& group,
                          const ModelTensors& model,
                          Rank root,
                          Timeout timeout) {
  broadcast_all(group, model.parameters(), model.buffers(), root, timeout);
}

void average_gradients(ProcessGroup& group, const torch::nn::Module& module, Timeout timeout) {
  const std::vector<NamedTensor> parameters = distinct(module.named_parameters().items());
  std::vector<std::int64_t> types = gradient_types(parameters);
  agree_on_gradients(group, parameters, types, timeout);
  Tensors gradients;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (types[i] == kNoGradient) continue;
    Tensor& gradient = parameters[i]->mutable_grad();
    if (!gradient.defined()) {
      gradient = torch::zeros_like(parameters[i]->detach(), type_of(types[i]));
    }
    gradients.push_back(gradient);
  }
  for (const Tensors& same_type : by_type(gradients)) {
    all_reduce(group, same_type, {.op = ReduceOp::kAvg, .timeout = timeout});
  }
}

}  // namespace peal::train
