#include "peal/train/optim/clip_grad_norm.h"

#include <cmath>
#include <span>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/optim/gradient_norm.h"

namespace peal::train {
namespace {

constexpr double kAvoidDivisionByZero = 1e-6;  // as in torch

void require_maximum(double max_norm) {
  if (max_norm >= 0) return;
  throw Error(ErrorKind::kUsage,
              c10::str("gradients cannot be clipped to a norm of ", max_norm, ": pass 0 or more"));
}

void clip(const std::vector<torch::Tensor>& gradients,
          double norm,
          double max_norm,
          const ClipOptions& options) {
  if (!std::isfinite(norm) && options.non_finite == ClipOptions::NonFinite::kIsError) {
    throw Error(ErrorKind::kUsage,
                c10::str("the norm of the gradients is ",
                         norm,
                         ": some gradient is not finite. Skip this step, or pass such norms with "
                         "NonFinite::kPass"));
  }
  if (std::isinf(max_norm)) return;  // infinity / infinity would be NaN
  const double factor = max_norm / (norm + kAvoidDivisionByZero);
  if (factor >= 1) return;
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& gradient : gradients) gradient.mul_(factor);
}

void add_all(NormTerm& term, const std::vector<torch::Tensor>& gradients) {
  for (const torch::Tensor& gradient : gradients) term.add(gradient);
}

}  // namespace

double clip_grad_norm_(const std::vector<torch::Tensor>& parameters,
                       double max_norm,
                       const ClipOptions& options) {
  require_maximum(max_norm);
  const std::vector<torch::Tensor> gradients = gradients_of(parameters);
  NormTerm term(options.norm_type);
  add_all(term, gradients);
  clip(gradients, term.norm(), max_norm, options);
  return term.norm();
}

double clip_grad_norm_(ProcessGroup& group,
                       const ShardedParameters& parameters,
                       double max_norm,
                       const ClipOptions& options) {
  require_maximum(max_norm);
  std::vector<torch::Tensor> gradients = gradients_of(parameters.shards);
  const std::vector<torch::Tensor> replicas = gradients_of(parameters.replicas);
  NormTerm term(options.norm_type);
  add_all(term, gradients);
  // One rank adds the replicas. So they count once, and with the same bits for all ranks.
  if (group.rank() == 0) add_all(term, replicas);
  double all = term.value();
  group.all_reduce(
      Buffer(std::span(&all, 1)),
      {.op = term.is_maximum() ? ReduceOp::kMax : ReduceOp::kSum, .timeout = options.timeout});
  NormTerm total(options.norm_type);
  total.add(all);
  gradients.insert(gradients.end(), replicas.begin(), replicas.end());
  clip(gradients, total.norm(), max_norm, options);
  return total.norm();
}

}  // namespace peal::train
