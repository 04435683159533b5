#include "peal/train/optim/gradient_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Elements that one thread adds alone. The parts are added in order, so the number of threads does
/// not change the sum.
constexpr std::int64_t kPart = 1 << 15;

/// NaN if one of them is NaN.
double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }

/// lane = join(lane, element) over the elements, in several lanes, which the compiler puts in
/// registers. Starts with 0 and joins the lanes at the end by `merge`.
template <class T, class Join, class Merge>
double fold(const T* data, std::int64_t count, Join&& join, Merge&& merge) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      double& mine = lanes[static_cast<std::size_t>(lane)];
      mine = join(mine, std::abs(static_cast<double>(data[i + lane])));
    }
  }
  for (; i < count; ++i) lanes[0] = join(lanes[0], std::abs(static_cast<double>(data[i])));
  double all = 0;
  for (const double lane : lanes) all = merge(all, lane);
  return all;
}

template <class T>
double term_of(const T* data, std::int64_t count, double p) {
  const auto add = [](double sum, double x) { return sum + x; };
  const auto add_square = [](double sum, double x) { return sum + x * x; };
  const auto add_power = [p](double sum, double x) { return sum + std::pow(x, p); };
  if (p == 2) return fold(data, count, add_square, add);
  if (p == 1) return fold(data, count, add, add);
  if (p == kInfinity) return fold(data, count, larger, larger);
  return fold(data, count, add_power, add);
}

/// The terms of the parts of `values`, which is dense.
std::vector<double> terms_of_parts(const torch::Tensor& values, double p) {
  const std::int64_t count = values.numel();
  std::vector<double> parts(static_cast<std::size_t>((count + kPart - 1) / kPart));
  AT_DISPATCH_FLOATING_TYPES_AND2(
      torch::kHalf, torch::kBFloat16, values.scalar_type(), "gradient_norm", [&] {
        const scalar_t* const data = values.const_data_ptr<scalar_t>();
        at::parallel_for(
            0, static_cast<std::int64_t>(parts.size()), 1, [&](std::int64_t from, std::int64_t to) {
              for (std::int64_t part = from; part < to; ++part) {
                const std::int64_t first = part * kPart;
                parts[static_cast<std::size_t>(part)] =
                    term_of(data + first, std::min(kPart, count - first), p);
              }
            });
      });
  return parts;
}

torch::Tensor dense_values(const torch::Tensor& gradient) {
  const bool known_layout = gradient.layout() == torch::kStrided || gradient.is_sparse();
  if (!known_layout || !(gradient.is_floating_point() || gradient.is_complex())) {
    throw Error(ErrorKind::kUnsupported,
                c10::str("a gradient of type ",
                         gradient.scalar_type(),
                         " and layout ",
                         gradient.layout(),
                         " has no norm here: use dense or sparse floating-point gradients"));
  }
  torch::Tensor values = gradient.detach().cpu();
  if (values.is_sparse()) values = values.coalesce().values();
  if (values.is_complex()) values = values.abs();
  return values.is_non_overlapping_and_dense() ? values : values.contiguous();
}

}  // namespace

NormTerm::NormTerm(double p) : p_(p) {
  if (!(p > 0)) {
    throw Error(ErrorKind::kUsage,
                c10::str("a norm of type ", p, " does not exist: pass a positive number"));
  }
}

bool NormTerm::is_maximum() const { return p_ == kInfinity; }

void NormTerm::add(const torch::Tensor& gradient) {
  for (const double part : terms_of_parts(dense_values(gradient), p_)) add(part);
}

void NormTerm::add(double value) { value_ = is_maximum() ? larger(value_, value) : value_ + value; }

double NormTerm::norm() const {
  if (is_maximum() || p_ == 1) return value_;
  return p_ == 2 ? std::sqrt(value_) : std::pow(value_, 1 / p_);
}

std::vector<torch::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : distinct(parameters)) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

}  // namespace peal::train
