// Norms of gradients that depend only on their values: not on the number of threads, and not on the
// kernels that LibTorch chooses for a processor. So ranks with equal gradients get equal bits.
#pragma once

#include <vector>

#include <torch/types.h>

namespace peal::train {

/// The contribution of some elements to a norm: sum of |x|^p, or max of |x| for p = infinity.
class NormTerm {
 public:
  /// Errors: usage (p is not positive).
  explicit NormTerm(double p);

  /// Adds all elements of `gradient`, of any strides; a sparse gradient has its coalesced values.
  /// Errors: unsupported (another layout; integers).
  /// Cost: reads the elements once; sums in f64 on the CPU, to which it copies other gradients.
  void add(const torch::Tensor& gradient);
  /// Adds a contribution of other elements.
  void add(double value);

  bool is_maximum() const;
  double value() const { return value_; }
  /// The norm of all elements added: value^(1/p), or value.
  double norm() const;

 private:
  double p_;
  double value_ = 0;
};

/// The gradients of the parameters: each parameter once, without those that have no gradient.
std::vector<torch::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters);

}  // namespace peal::train
