// Training that continues when ranks are lost, added or removed. For training programs, by
// peal/horovod.h.
//
//   hvd::init();
//   std::int64_t step = 0;
//   hvd::elastic::TorchState state;
//   state.add(*net).add(optimizer).add(sampler).add("step", step);
//   hvd::elastic::run(state, [&] {
//     for (; step < 1000; ++step) {
//       ... a step of training ...
//       if (step % 10 == 0) state.commit();
//     }
//   });
#pragma once

#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "peal/train/horovod/elastic_sampler.h"
#include "peal/train/horovod/functions.h"
#include "peal/train/horovod/init.h"

namespace peal::hvd::elastic {

/// Leaves the function of `run`, because the hosts have changed. Programs that catch all exceptions
/// must let it pass.
class HostsUpdatedInterrupt final : public std::exception {
 public:
  const char* what() const noexcept override {
    return "the hosts of the elastic job have changed: the ranks begin a new round";
  }
};

/// What the ranks of an elastic job keep equal.
/// Threads: one at a time.
class State {
 public:
  State() = default;
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Keeps a copy of the state in memory.
  virtual void save() = 0;
  /// Returns to the last copy.
  virtual void restore() = 0;
  /// Takes over the state of rank 0, and saves it. Order: called by all ranks.
  virtual void sync() = 0;

  /// Called after each change of the ranks: after init, before sync. For example to scale the
  /// learning rate by size().
  void add_reset_callback(std::function<void()> callback);

  /// Saves, and ends the round on all ranks if the hosts have changed.
  /// Order: called by all ranks. Errors: HostsUpdatedInterrupt, those of broadcast.
  /// Cost: a copy of the state; rank 0 asks the driver (some 50 us); a broadcast.
  void commit();
  /// As commit, without saving.
  void check_host_updates();

  std::int64_t commits() const { return commits_; }
  void call_reset_callbacks() const;

 private:
  std::vector<std::function<void()>> reset_callbacks_;
  std::int64_t commits_ = 0;
};

/// Borrows the objects that are added; copies are deep.
class TorchState final : public State {
 public:
  TorchState();
  ~TorchState() override;

  /// Parameters and buffers.
  TorchState& add(torch::nn::Module& module);
  template <class Module>
  TorchState& add(torch::nn::ModuleHolder<Module>& module) {
    return add(*module);
  }
  /// The options and the state, as broadcast_optimizer_state.
  TorchState& add(torch::optim::Optimizer& optimizer);
  /// The epoch and the used samples; the rest of the epoch is divided among the present ranks.
  TorchState& add(ElasticSampler& sampler);
  /// A value without pointers. The name is different from those of other values.
  template <class Value>
  requires std::is_trivially_copyable_v<Value> TorchState& add(const std::string& name,
                                                               Value& value) {
    Value* const place = &value;
    return add_bytes(
        name,
        [place] { return std::string(reinterpret_cast<const char*>(place), sizeof *place); },
        [place](const std::string& bytes) { std::memcpy(place, bytes.data(), sizeof *place); });
  }
  TorchState& add(const std::string& name, std::string& value);

  void save() override;
  void restore() override;
  void sync() override;

  /// How a part of the state is kept.
  class Part;

 private:
  using Read = std::function<std::string()>;
  using Write = std::function<void(const std::string& bytes)>;
  TorchState& add_bytes(const std::string& name, Read read, Write write);

  std::vector<std::unique_ptr<Part>> parts_;
};

/// Calls `function` until it returns. Before each call, all ranks take over the state of rank 0. If
/// the group has ended (a rank is lost), the state returns to the last commit. Then, and after
/// HostsUpdatedInterrupt, the ranks shut down and init again, in the next round of the driver.
/// Call init first, and no operations between init and `run`: ranks that are added later would not
/// take part in them. `options`: for later inits. Process sets that have a rank beyond the new size
/// are left out.
/// Order: called by all ranks.
/// Errors: mismatch passes, because it would come again. The error of a lost rank passes if no
///   driver has started this process, and after 10 errors without a commit. aborted: the driver has
///   ended the job, or has removed this process. All errors of `function`.
void run(State& state, const std::function<void()>& function, const InitOptions& options = {});

}  // namespace peal::hvd::elastic
