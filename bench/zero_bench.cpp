// The time of an optimizer's step, and the memory of its state: AdamW on every rank, as with plain
// DistributedDataParallel, against ZeroRedundancyOptimizer. Run by hand:
//   cmake build/release -DPEAL_BENCH=ON && ninja -C build/release zero_bench
//   build/release/bin/zero_bench [WIDTH [LAYERS [STEPS]]]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/init/init.h"
#include "peal/launch/spawn.h"
#include "peal/train/optim/fused_step.h"
#include "peal/train/optim/optimizer_state.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"

#include "training_step.h"

namespace {

namespace train = peal::train;
using Clock = std::chrono::steady_clock;

struct Sizes {
  std::int64_t width = 1000;
  int layers = 10;
  int steps = 30;
};

torch::nn::Sequential make_net(const Sizes& sizes) {
  torch::nn::Sequential net;
  for (int i = 0; i < sizes.layers; ++i) {
    net->push_back(torch::nn::Linear(sizes.width, sizes.width));
  }
  for (torch::Tensor parameter : net->parameters()) {
    parameter.mutable_grad() = torch::full_like(parameter.detach(), 1e-3);
  }
  return net;
}

/// The times of one way to step, in milliseconds.
class Way {
 public:
  explicit Way(std::function<void()> step) : step_(std::move(step)) {}

  /// All ranks begin together, and the step ends when it has ended on all ranks.
  void measure(peal::ProcessGroup& group) {
    group.barrier();
    const auto start = Clock::now();
    step_();
    group.barrier();
    times_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  double median_time() const { return median(times_); }

 private:
  std::function<void()> step_;
  std::vector<double> times_;
};

double megabytes(const train::OptimizerState& state) {
  double bytes = 0;
  for (const auto& [name, fields] : state.parameters) {
    for (const auto& [field, value] : fields) bytes += static_cast<double>(value.nbytes());
  }
  return bytes / 1e6;
}

struct Figures {
  double plain = 0, fused = 0, zero = 0;   // milliseconds
  double plain_state = 0, zero_state = 0;  // MB
};

Figures measure(const Sizes& sizes) {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  auto plain_net = make_net(sizes);
  auto fused_net = make_net(sizes);
  auto zero_net = make_net(sizes);
  torch::optim::AdamW plain(plain_net->parameters());
  torch::optim::AdamW fused(fused_net->parameters());
  train::ZeroRedundancyOptimizer<torch::optim::AdamW> zero(group, zero_net, {});
  Way plain_way([&] { plain.step(); });
  Way fused_way([&] { train::fused_step(fused); });
  Way zero_way([&] { zero.step(); });
  // In turns, so that other programs on the machine disturb all ways alike.
  for (int i = 0; i < sizes.steps; ++i) {
    for (Way* way : {&plain_way, &fused_way, &zero_way}) way->measure(*group);
  }
  return {plain_way.median_time(),
          fused_way.median_time(),
          zero_way.median_time(),
          megabytes(train::read_optimizer_state(plain, plain_net->named_parameters())),
          megabytes(train::read_optimizer_state(zero.local(), zero_net->named_parameters()))};
}

Sizes read_sizes(int argc, char** argv) {
  Sizes sizes;
  if (argc > 1) sizes.width = std::stol(argv[1]);
  if (argc > 2) sizes.layers = std::stoi(argv[2]);
  if (argc > 3) sizes.steps = std::stoi(argv[3]);
  return sizes;
}

}  // namespace

int main(int argc, char** argv) try {
  const Sizes sizes = read_sizes(argc, argv);
  std::cout << "AdamW, " << sizes.layers * sizes.width * (sizes.width + 1)
            << " parameters of f32; the median of " << sizes.steps << " steps\n"
            << "ranks  AdamW::step   fused_step      ZeRO   state   state with ZeRO\n"
            << std::fixed;
  for (const int ranks : {1, 2, 4}) {
    const Figures figures = peal::spawn(ranks, [&](peal::Rank) { return measure(sizes); })[0];
    std::cout << std::setw(5) << ranks << std::setprecision(1) << std::setw(10) << figures.plain
              << " ms" << std::setw(10) << figures.fused << " ms" << std::setw(8) << figures.zero
              << " ms" << std::setw(6) << std::setprecision(0) << figures.plain_state << " MB"
              << std::setw(15) << figures.zero_state << " MB" << std::endl;
  }
  return 0;
} catch (const peal::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
