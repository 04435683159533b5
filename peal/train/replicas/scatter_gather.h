// Splits the arguments of a module among replicas, and joins their outputs. Used by `DataParallel`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace peal::train {

/// How many samples each replica gets, and where.
struct Split {
  std::int64_t dim = 0;
  std::vector<std::int64_t> sizes{};
  std::vector<torch::Device> devices{};

  std::size_t count() const { return sizes.size(); }
};

/// Divides `samples` samples among the devices: the parts differ by one at most, larger parts
/// first. With fewer samples than devices, the first devices get one each; without samples, the
/// first device gets the empty batch.
Split split_evenly(std::int64_t samples, std::int64_t dim, std::vector<torch::Device> devices);

/// The number of samples that the arguments have in common: tensors, std::vector and std::optional
/// of tensors have samples, other arguments do not.
class SampleCount final {
 public:
  explicit SampleCount(std::int64_t dim) : dim_(dim) {}

  void add(const torch::Tensor& tensor);
  void add(const std::optional<torch::Tensor>& tensor);
  void add(const std::vector<torch::Tensor>& tensors);
  template <class Other>
  void add(const Other&) {}

  /// Errors: usage (no argument has samples).
  std::int64_t count() const;

 private:
  std::int64_t dim_;
  std::optional<std::int64_t> count_;
};

/// The part of each replica. Autograd records the split. Undefined tensors go to all replicas.
std::vector<torch::Tensor> scatter(const torch::Tensor& tensor, const Split& split);
std::vector<std::optional<torch::Tensor>> scatter(const std::optional<torch::Tensor>& tensor,
                                                  const Split& split);
std::vector<std::vector<torch::Tensor>> scatter(const std::vector<torch::Tensor>& tensors,
                                                const Split& split);
/// Every replica gets a copy.
template <class Other>
std::vector<std::decay_t<Other>> scatter(const Other& value, const Split& split) {
  return std::vector<std::decay_t<Other>>(split.count(), value);
}

/// out = parts[0] parts[1] ... along `dim`, on `device`. Numbers (no dimension) become a vector.
torch::Tensor gather(const std::vector<torch::Tensor>& parts,
                     std::int64_t dim,
                     const torch::Device& device);

template <class T>
inline constexpr bool kIsTensorVector = std::is_same_v<T, std::vector<torch::Tensor>>;
template <class T>
inline constexpr bool kIsTuple = false;
template <class... Parts>
inline constexpr bool kIsTuple<std::tuple<Parts...>> = true;
template <class First, class Second>
inline constexpr bool kIsTuple<std::pair<First, Second>> = true;

/// Joins tensors, and the tensors in vectors, tuples and pairs.
template <class Output>
Output gather_outputs(std::vector<Output> outputs, std::int64_t dim, const torch::Device& device) {
  const auto of_each = [&](const auto& part_of) {
    std::vector<std::remove_cvref_t<decltype(part_of(outputs[0]))>> parts;
    for (const Output& output : outputs) parts.push_back(part_of(output));
    return gather_outputs(std::move(parts), dim, device);
  };
  if constexpr (std::is_same_v<Output, torch::Tensor>) {
    return gather(outputs, dim, device);
  } else if constexpr (kIsTensorVector<Output>) {
    Output joined;
    for (std::size_t i = 0; i < outputs[0].size(); ++i) {
      joined.push_back(of_each([&](const Output& output) { return output.at(i); }));
    }
    return joined;
  } else {
    static_assert(kIsTuple<Output>,
                  "DataParallel joins outputs that are tensors, or vectors, tuples and pairs of "
                  "tensors");
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Output(of_each([](const Output& output) { return std::get<I>(output); })...);
    }
    (std::make_index_sequence<std::tuple_size_v<Output>>());
  }
}

}  // namespace peal::train
