// Reduces the gradients of an optimizer while backward runs. Used by DistributedOptimizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/optim/optimizer.h>

#include "peal/train/ddp/gradient_hook.h"
#include "peal/train/horovod/distributed_options.h"
#include "peal/train/horovod/functions.h"
#include "peal/train/horovod/gradient_places.h"

namespace peal::hvd {

/// Backward starts the reduction of each gradient that has its last contribution. Does nothing in a
/// set of one rank, unless gradients are to be divided by the number of passes.
/// Threads: one at a time.
class GradientExchange final {
 public:
  /// Errors: usage (a parameter without a name; a wrong option; this rank is not in the set).
  GradientExchange(const torch::optim::Optimizer& optimizer,
                   const NamedTensors& named,
                   DistributedOptions options);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  /// Whether there is something to reduce.
  bool is_active() const { return is_active_; }
  bool is_adasum() const { return options_.op == Adasum; }
  const DistributedOptions& options() const { return options_; }

  /// Waits for all gradients, with zeros for those that backward has not reached. After an error,
  /// the gradients are undefined, and the next step may begin.
  void synchronize();
  /// Before a step. Reduces the gradients, unless the step is inside SkipSynchronize.
  void before_step();
  /// Errors: usage (gradients are being reduced).
  void before_zero_grad();
  /// Gives up what backward has started.
  void forget();
  void set_backward_passes_per_step(int passes);

  /// Between these two, steps use the gradients as they are.
  void begin_skipping();
  void end_skipping();

  // ---- Adasum: the changes of the parameters are reduced
  /// Copies of the parameters.
  Tensors start_of_step() const;
  /// parameter = start + adasum over ranks of (parameter - start)
  void combine_changes(const Tensors& start);

 private:
  struct Parameter {
    std::string name;
    Tensor tensor;
    int passes_left = 1;
    bool is_sparse = false;  // the last gradient was sparse
    std::unique_ptr<train::GradientHook> hook = nullptr;
    std::size_t unit = 0;
  };

  /// Parameters whose gradients are reduced together.
  struct Unit {
    std::vector<std::size_t> parameters = {};
    enum class Kind : std::uint8_t { kParameter, kGroup } kind = Kind::kParameter;
    std::size_t ready = 0;
    PendingPtr pending = nullptr;
  };

  void follow_context();
  void make_places();
  void add_parameters(const torch::optim::Optimizer& optimizer, const NamedTensors& named);
  void add_units();
  void add_unit(std::vector<std::size_t> parameters, Unit::Kind kind);
  void add_given_groups();
  void add_hooks();
  Tensor computed(std::size_t parameter, const Tensor& gradient);
  void accumulated(std::size_t parameter);
  void start(Unit& unit);
  PendingPtr start_sparse(Parameter& parameter);
  Tensor gradient_of(Parameter& parameter) const;
  ReductionOptions reduction(const std::string& name) const;
  void finish(Unit& unit);
  void wait_for_all();

  DistributedOptions options_;
  std::weak_ptr<const void> context_;  // of this round of an elastic job
  bool is_active_ = false;
  int size_ = 1;
  std::vector<Parameter> parameters_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_of_;
  std::vector<Unit> units_;
  std::unique_ptr<GradientPlaces> places_;  // null if gradients have none
  bool is_synchronized_ = false;
  bool skips_ = false;
};

/// While this object lives, steps use the gradients as they are.
class SkipSynchronize final {
 public:
  explicit SkipSynchronize(GradientExchange& exchange);
  ~SkipSynchronize();
  SkipSynchronize(const SkipSynchronize&) = delete;
  SkipSynchronize& operator=(const SkipSynchronize&) = delete;

 private:
  GradientExchange& exchange_;
};

}  // namespace peal::hvd
