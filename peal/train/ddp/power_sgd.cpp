#include "peal/train/ddp/power_sgd.h"

#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/checksum.h"
#include "peal/train/tensors/finishing_work.h"
#include "peal/train/tensors/tensors.h"

namespace peal::train {
namespace {

constexpr std::string_view kError = ".error", kQ = ".q", kIteration = "iteration";

/// Matrices are computed in float32 at least.
torch::ScalarType matrix_type(const Tensor& gradient) {
  const torch::ScalarType type = gradient.scalar_type();
  return type == torch::kHalf || type == torch::kBFloat16 ? torch::kFloat : type;
}

Tensor as_matrix(const Tensor& gradient) {
  return gradient.to(matrix_type(gradient)).reshape({gradient.size(0), -1});
}

}  // namespace

/// What one bucket sends.
struct PowerSgd::Compressed {
  struct Item {
    std::string name;
    Tensor values;  // the gradient, in the bucket
    Tensor matrix;  // M + E
    Tensor p;       // a part of ps, n x r
    Tensor q;       // a part of qs, m x r
  };

  /// Cuts a part of `rows` x `columns` from `block`, from `used` on.
  static Tensor cut(const Tensor& block,
                    std::int64_t& used,
                    std::int64_t rows,
                    std::int64_t columns) {
    const Tensor part = block.narrow(0, used, rows * columns).view({rows, columns});
    used += rows * columns;
    return part;
  }

  std::vector<Item> items;
  Tensor ps, qs;
  Tensors whole;  // gradients that are not compressed
};

PowerSgd::PowerSgd(PowerSgdOptions options) : options_(options) {
  const bool uses_memory = options.error_feedback == PowerSgdOptions::ErrorFeedback::kOn ||
                           options.warm_start == PowerSgdOptions::WarmStart::kOn;
  if (options.matrix_rank < 1 || options.start_iteration < 0 ||
      (uses_memory && options.start_iteration < 2) || !(options.min_compression_rate >= 1)) {
    throw Error(ErrorKind::kUsage,
                c10::str("PowerSGD of rank ",
                         options.matrix_rank,
                         " from pass ",
                         options.start_iteration,
                         " on, for a rate of ",
                         options.min_compression_rate,
                         ": the rank and the rate are at least 1, and the first compressed pass at "
                         "least 2 (or 0 without error feedback and warm start)"));
  }
}

bool PowerSgd::compresses(const Tensor& gradient) const {
  if (gradient.dim() < 2 || !gradient.is_floating_point() || gradient.numel() == 0) return false;
  const std::int64_t rows = gradient.size(0), columns = gradient.numel() / rows;
  return static_cast<double>((rows + columns) * options_.matrix_rank) *
             options_.min_compression_rate <
         static_cast<double>(gradient.numel());
}

Tensor PowerSgd::random_q(const std::string& name, const Tensor& matrix) const {
  const bool is_new_each_time = options_.warm_start == PowerSgdOptions::WarmStart::kOff;
  const std::uint64_t seed =
      options_.seed + (is_new_each_time ? static_cast<std::uint64_t>(iteration_) : 0);
  const at::Generator random = at::detail::createCPUGenerator(
      checksum(std::as_bytes(std::span(name.data(), name.size())), seed));
  return torch::randn({matrix.size(1), options_.matrix_rank}, random, matrix.scalar_type());
}

WorkPtr PowerSgd::start(ProcessGroup& group, const GradientsToAverage& bucket, Timeout timeout) {
  const torch::NoGradGuard no_grad;
  const ReduceOptions mean{.op = ReduceOp::kAvg, .timeout = timeout};
  const bool whole_pass = iteration_ < options_.start_iteration;
  const bool feeds_back = options_.error_feedback == PowerSgdOptions::ErrorFeedback::kOn;
  const auto sent = std::make_shared<Compressed>();
  std::int64_t rows = 0, columns = 0;
  for (const GradientsToAverage::Gradient& one : bucket.gradients) {
    if (whole_pass || !compresses(one.values)) {
      sent->whole.push_back(one.values);
      continue;
    }
    Compressed::Item& item = sent->items.emplace_back();
    item.name = one.name;
    item.values = one.values;
    item.matrix = as_matrix(one.values);
    Memory& memory = memory_[one.name];
    const std::vector<std::int64_t> q_shape = {item.matrix.size(1), options_.matrix_rank};
    // The parameter may have been replaced.
    if (memory.q.defined() && memory.q.sizes() != q_shape) memory = {};
    if (memory.error.defined() && memory.error.sizes() != item.matrix.sizes()) memory = {};
    if (feeds_back && memory.error.defined()) item.matrix = item.matrix + memory.error;
    if (!memory.q.defined() || options_.warm_start == PowerSgdOptions::WarmStart::kOff) {
      memory.q = random_q(one.name, item.matrix);
    }
    rows += item.matrix.size(0);
    columns += item.matrix.size(1);
  }
  if (bucket.is_last) ++iteration_;
  if (sent->items.empty()) return all_reduce_async(group, bucket.flat, mean);

  const std::int64_t rank = options_.matrix_rank;
  const auto type = torch::dtype(sent->items.front().matrix.scalar_type());
  sent->ps = torch::empty({rows * rank}, type);
  sent->qs = torch::empty({columns * rank}, type);
  std::int64_t used_p = 0, used_q = 0;
  for (Compressed::Item& item : sent->items) {
    item.p = Compressed::cut(sent->ps, used_p, item.matrix.size(0), rank);
    item.q = Compressed::cut(sent->qs, used_q, item.matrix.size(1), rank);
    at::mm_out(item.p, item.matrix, memory_[item.name].q);
  }
  WorkPtr ps = all_reduce_async(group, sent->ps, mean);
  WorkPtr whole = sent->whole.empty() ? nullptr : all_reduce_async(group, sent->whole, mean);
  return finish_with(std::move(ps), [this, sent, whole, mean, feeds_back, &group] {
    const torch::NoGradGuard no_history;
    if (whole) whole->wait();
    for (Compressed::Item& item : sent->items) {
      item.p = std::get<0>(torch::linalg_qr(item.p));
      at::mm_out(item.q, item.matrix.t(), item.p);
    }
    all_reduce(group, sent->qs, mean);
    for (const Compressed::Item& item : sent->items) {
      const Tensor result = torch::mm(item.p, item.q.t());
      item.values.copy_(result.view(item.values.sizes()));
      Memory& memory = memory_[item.name];
      memory.q = item.q.clone();
      // An overflow must not stay in the error for ever.
      const bool is_finite = std::isfinite(result.sum().item<double>());
      if (feeds_back) memory.error = is_finite ? item.matrix - result : Tensor();
    }
  });
}

std::map<std::string, Tensor> PowerSgd::state() const {
  std::map<std::string, Tensor> state;
  for (const auto& [name, memory] : memory_) {
    if (memory.error.defined()) state[name + std::string(kError)] = memory.error;
    if (memory.q.defined()) state[name + std::string(kQ)] = memory.q;
  }
  state[std::string(kIteration)] = torch::tensor(iteration_);
  return state;
}

void PowerSgd::load_state(const std::map<std::string, Tensor>& state) {
  std::map<std::string, Memory> memory;
  std::int64_t iteration = 0;
  for (const auto& [name, tensor] : state) {
    const std::string_view key = name;
    if (key == kIteration) {
      iteration = tensor.item<std::int64_t>();
    } else if (key.ends_with(kError)) {
      memory[name.substr(0, name.size() - kError.size())].error = tensor.clone();
    } else if (key.ends_with(kQ)) {
      memory[name.substr(0, name.size() - kQ.size())].q = tensor.clone();
    } else {
      throw Error(ErrorKind::kUsage,
                  "\"" + name + "\" is not a name in a state of PowerSGD: load what state() saved");
    }
  }
  memory_ = std::move(memory);
  iteration_ = iteration;
}

}  // namespace peal::train
