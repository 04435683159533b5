// PowerSGD: a communication hook that sends matrices of low rank in place of gradients.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "peal/train/ddp/communication_hook.h"

namespace peal::train {

struct PowerSgdOptions {
  std::int64_t matrix_rank = 1;
  /// The first passes send whole gradients, because gradients change most at the beginning.
  std::int64_t start_iteration = 1000;
  /// Gradients that would not become smaller by this factor are sent whole.
  double min_compression_rate = 2;
  /// Whether the next pass adds what this pass has lost. Without it, training converges worse.
  enum class ErrorFeedback : unsigned char { kOff, kOn };
  ErrorFeedback error_feedback = ErrorFeedback::kOn;
  /// Whether a pass begins with the matrix Q of the last pass, or with random numbers.
  enum class WarmStart : unsigned char { kOff, kOn };
  WarmStart warm_start = WarmStart::kOn;
  std::uint64_t seed = 0;  // the same on every rank
};

/// For a gradient as a matrix M of n rows (its first dimension) and m columns, with its error E and
/// a matrix Q of m rows and r columns:
///   P = orthogonal basis of the columns of the sum over ranks of (M + E) Q
///   Q = mean over ranks of (M + E)^T P
///   result = P Q^T
///   E = M + E - result
/// Compressed are gradients with at least 2 dimensions for which (n + m) * r * min_compression_rate
/// < n * m. All others are averaged by all_reduce.
///
/// E and Q belong to a parameter and are stored by its name, because parameters may move to other
/// buckets. E differs between ranks: save the state of each rank in a checkpoint.
/// Threads, Order: as CommunicationHook.
/// Cost: (n + m) * r elements on the wire for n * m; 4 products of matrices with r columns, and a
/// QR
///   decomposition. Memory: E has the size of the gradient.
/// Source: Vogels et al. 2019, PowerSGD: Practical Low-Rank Gradient Compression for Distributed
///   Optimization, algorithms 1 and 2.
class PowerSgd final : public CommunicationHook {
 public:
  explicit PowerSgd(PowerSgdOptions options = {});

  WorkPtr start(ProcessGroup& group, const GradientsToAverage& bucket, Timeout timeout) override;

  /// The number of passes so far.
  std::int64_t iteration() const { return iteration_; }

  /// E and Q of each compressed parameter, under "<parameter>.error" and "<parameter>.q", and
  /// "iteration".
  std::map<std::string, torch::Tensor> state() const;
  /// Replaces the state.
  /// Errors: usage (a name that is not of a state).
  void load_state(const std::map<std::string, torch::Tensor>& state);

 private:
  struct Memory {
    torch::Tensor error;  // n x m
    torch::Tensor q;      // m x r
  };
  struct Compressed;

  bool compresses(const torch::Tensor& gradient) const;
  torch::Tensor random_q(const std::string& name, const torch::Tensor& matrix) const;

  PowerSgdOptions options_;
  std::int64_t iteration_ = 0;
  std::map<std::string, Memory> memory_;  // by parameter
};

}  // namespace peal::train
