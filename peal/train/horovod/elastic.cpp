#include "peal/train/horovod/elastic.h"

#include <algorithm>
#include <cstdint>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/horovod/elastic_rounds.h"
#include "peal/train/horovod/errors.h"
#include "peal/train/horovod/optimizer_values.h"

namespace peal::hvd::elastic {
namespace {

/// A program that fails in the same way after each restart must end.
constexpr int kRestartsWithoutCommit = 10;

}  // namespace

// ---- State

void State::add_reset_callback(std::function<void()> callback) {
  reset_callbacks_.push_back(std::move(callback));
}

void State::commit() {
  save();
  ++commits_;
  check_host_updates();
}

void State::check_host_updates() {
  const bool asks = rank() == 0 && is_in_elastic_job();
  const bool has_changed = asks && elastic_host_changes() != rendezvous::HostChanges::kNone;
  if (broadcast_value(has_changed, 0, {.name = "elastic.host_updates"})) {
    throw HostsUpdatedInterrupt();
  }
}

void State::call_reset_callbacks() const {
  for (const auto& callback : reset_callbacks_) callback();
}

// ---- the parts of a TorchState

class TorchState::Part {
 public:
  Part() = default;
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  virtual void save() = 0;
  virtual void restore() = 0;
  /// Takes over the values of rank 0.
  virtual void sync() = 0;
};

namespace {

class ModulePart final : public TorchState::Part {
 public:
  explicit ModulePart(torch::nn::Module& module) : module_(module) { save(); }

  void save() override {
    const torch::NoGradGuard no_grad;
    saved_.clear();
    for (const Tensor& tensor : tensors()) saved_.push_back(tensor.clone());
  }
  void restore() override {
    const torch::NoGradGuard no_grad;
    const Tensors now = tensors();
    for (std::size_t i = 0; i < now.size(); ++i) now[i].copy_(saved_.at(i));
  }
  void sync() override { broadcast_parameters(module_, 0); }

 private:
  Tensors tensors() const {
    Tensors all = module_.parameters();
    for (const Tensor& buffer : module_.buffers()) all.push_back(buffer);
    return all;
  }

  torch::nn::Module& module_;
  Tensors saved_;
};

class OptimizerPart final : public TorchState::Part {
 public:
  explicit OptimizerPart(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) { save(); }

  void save() override { saved_ = copy_of_state(optimizer_); }
  void restore() override { load_state(optimizer_, saved_); }
  void sync() override { broadcast_optimizer_state(optimizer_, 0); }

 private:
  torch::optim::Optimizer& optimizer_;
  train::OptimizerState saved_;
};

class SamplerPart final : public TorchState::Part {
 public:
  explicit SamplerPart(const ElasticSampler& sampler) : sampler_(sampler) { save(); }

  void save() override { saved_ = {sampler_.epoch(), sampler_.processed()}; }
  void restore() override { sampler_.seek(saved_.epoch, saved_.processed); }
  void sync() override {
    const Point point = broadcast_value(
        Point{sampler_.epoch(), sampler_.processed()}, 0, {.name = "elastic.sampler"});
    sampler_.seek(point.epoch, point.processed);
  }

 private:
  struct Point {
    std::uint64_t epoch;
    std::size_t processed;
  };

  ElasticSampler sampler_;  // shares the state of the program's sampler
  Point saved_{};
};

class BytesPart final : public TorchState::Part {
 public:
  BytesPart(std::string name,
            std::function<std::string()> read,
            std::function<void(const std::string&)> write)
      : name_(std::move(name)), read_(std::move(read)), write_(std::move(write)) {
    save();
  }

  void save() override { saved_ = read_(); }
  void restore() override { write_(saved_); }
  void sync() override { write_(broadcast_bytes(read_(), 0, {.name = "elastic." + name_})); }

 private:
  std::string name_;
  std::function<std::string()> read_;
  std::function<void(const std::string&)> write_;
  std::string saved_;
};

}  // namespace

// ---- TorchState

TorchState::TorchState() = default;
TorchState::~TorchState() = default;

TorchState& TorchState::add(torch::nn::Module& module) {
  parts_.push_back(std::make_unique<ModulePart>(module));
  return *this;
}

TorchState& TorchState::add(torch::optim::Optimizer& optimizer) {
  parts_.push_back(std::make_unique<OptimizerPart>(optimizer));
  return *this;
}

TorchState& TorchState::add(ElasticSampler& sampler) {
  parts_.push_back(std::make_unique<SamplerPart>(sampler));
  return *this;
}

TorchState& TorchState::add(const std::string& name, std::string& value) {
  std::string* const place = &value;
  return add_bytes(
      name, [place] { return *place; }, [place](const std::string& bytes) { *place = bytes; });
}

TorchState& TorchState::add_bytes(const std::string& name, Read read, Write write) {
  parts_.push_back(std::make_unique<BytesPart>(name, std::move(read), std::move(write)));
  return *this;
}

void TorchState::save() {
  for (const auto& part : parts_) part->save();
}

void TorchState::restore() {
  for (const auto& part : parts_) part->restore();
}

void TorchState::sync() {
  for (const auto& part : parts_) part->sync();
  save();
}

// ---- run

namespace {

/// The options without process sets that have a rank beyond the new size.
InitOptions fitting(InitOptions options, int size) {
  std::erase_if(options.process_sets, [&](const std::vector<Rank>& ranks) {
    return std::ranges::any_of(ranks, [&](Rank rank) { return rank >= size; });
  });
  return options;
}

/// Errors: those that end the job for this process.
int size_of_next_round(const InitOptions& options) {
  const auto place = next_elastic_round(options.interrupt);
  if (!place) throw Error(ErrorKind::kAborted, elastic_removal_text());
  return std::stoi(place->at("HOROVOD_SIZE"));
}

/// Whether the error means that the group has ended, and another round may do better. Operations of
/// other groups, such as those of SyncBatchNorm, throw Error.
bool has_ended_the_group(const Error& error) {
  return is_loss(error.kind()) || error.kind() == ErrorKind::kTimeout ||
         (dynamic_cast<const HorovodInternalError*>(&error) != nullptr &&
          error.kind() != ErrorKind::kMismatch);
}

/// Counts errors in a row without a commit between them.
class Restarts {
 public:
  explicit Restarts(const State& state) : state_(state), commits_(state.commits()) {}

  bool are_too_many() {
    count_ = state_.commits() != commits_ ? 1 : count_ + 1;
    commits_ = state_.commits();
    return count_ >= kRestartsWithoutCommit;
  }

 private:
  const State& state_;
  std::int64_t commits_;
  int count_ = 0;
};

}  // namespace

void run(State& state, const std::function<void()>& function, const InitOptions& options) {
  Restarts restarts(state);
  bool is_in_round = true;
  while (true) {
    int size = 0;
    if (!is_in_round) {
      shutdown();
      size = size_of_next_round(options);
    }
    try {
      if (!is_in_round) {
        init(fitting(options, size));
        state.call_reset_callbacks();
      }
      is_in_round = false;
      state.sync();
      mark_elastic_synchronized();
      function();
      break;
    } catch (const HostsUpdatedInterrupt&) {
      if (!is_in_elastic_job()) throw;
    } catch (const Error& error) {
      const bool can_go_on = is_in_elastic_job() && has_ended_the_group(error);
      if (!can_go_on || restarts.are_too_many()) throw;
      state.restore();
    }
  }
  // Outside of the try: an error here must not train again.
  if (is_in_elastic_job()) finish_elastic_job();
}

}  // namespace peal::hvd::elastic
