// The peak of memory of training steps with the default zero_grad(): a module that trains alone,
// and with DistributedDataParallel. Each of the two has fresh processes. Run by hand:
//   cmake build/release -DPEAL_BENCH=ON && ninja -C build/release memory_bench
//   build/release/bin/memory_bench [MB_OF_GRADIENTS [RANKS [LAYERS]]]
// DistributedDataParallel may take 5% of the gradients' size and 32 MB more than the module alone;
// the exit code is 1 if it takes more.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/init/init.h"
#include "peal/launch/spawn.h"

#include "training_step.h"

namespace {

constexpr int kSteps = 10;
constexpr std::int64_t kSamples = 64;
constexpr double kShareOfGradients = 0.05;
constexpr double kMegabytesOfTheGroup = 32;  // buffers of peal, not of the gradients

struct Sizes {
  double megabytes = 160;  // of gradients
  int ranks = 2;
  int layers = 10;
};

enum class Way { kAlone, kDdp };

/// In MB. PSS: pages that several processes map count once, divided among them.
double memory_of_this_process() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    double kibibytes = 0;
    if (word == "Pss:" && file >> kibibytes) return kibibytes * 1024 / 1e6;
  }
  throw peal::Error(peal::ErrorKind::kUnsupported,
                    "/proc/self/smaps_rollup has no Pss: use Linux 4.14 or newer");
}

/// The largest memory of this process while `step` runs. A thread reads the memory all the time,
/// because the kernel keeps no peak of the PSS.
double peak_of(const Step& step) {
  double peak = memory_of_this_process();
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) peak = std::max(peak, memory_of_this_process());
  });
  step();
  reader.request_stop();
  reader.join();
  return peak;
}

torch::nn::Sequential make_net(const Sizes& sizes) {
  const auto width = static_cast<std::int64_t>(std::sqrt(sizes.megabytes * 1e6 / 4 / sizes.layers));
  torch::nn::Sequential net;
  for (int i = 0; i < sizes.layers; ++i) net->push_back(torch::nn::Linear(width, width));
  return net;
}

double megabytes_of_parameters(const torch::nn::Module& net) {
  double bytes = 0;
  for (const torch::Tensor& parameter : net.parameters()) {
    bytes += static_cast<double>(parameter.nbytes());
  }
  return bytes / 1e6;
}

/// In MB.
struct Figures {
  double gradients = 0;
  double first_step = 0;  // the peak, with the construction of DistributedDataParallel
  double later_steps = 0;
  double peak() const { return std::max(first_step, later_steps); }
};

/// One rank, in a process of its own.
Figures measure(Way way, const Sizes& sizes) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const torch::nn::Sequential net = make_net(sizes);
  const std::int64_t width = net->parameters()[0].size(1);
  const torch::Tensor input = torch::randn({kSamples, width});
  const torch::Tensor target = torch::randint(width, {kSamples}, torch::kInt64);

  Step step;
  const double first = peak_of([&] {
    const auto group = way == Way::kDdp ? peal::init_process_group() : nullptr;
    step = make_step(net.ptr(), group, input, target);
    step();
  });
  // The median, because memory that moves while the kernel counts may count twice.
  std::vector<double> later;
  for (int i = 0; i < kSteps; ++i) later.push_back(peak_of(step));
  return {megabytes_of_parameters(*net), first, median(later)};
}

/// The mean over the ranks. A page of registered memory may count for one rank or for the other, as
/// they use it.
Figures measure_ranks(Way way, const Sizes& sizes) {
  Figures mean;
  for (const Figures& one :
       peal::spawn(sizes.ranks, [&](peal::Rank) { return measure(way, sizes); })) {
    mean.gradients += one.gradients / sizes.ranks;
    mean.first_step += one.first_step / sizes.ranks;
    mean.later_steps += one.later_steps / sizes.ranks;
  }
  return mean;
}

void print(const std::string& title, const Figures& figures) {
  std::cout << std::left << std::setw(26) << title << std::right << std::setw(8)
            << figures.first_step << " MB" << std::setw(12) << figures.later_steps << " MB\n";
}

}  // namespace

int main(int argc, char** argv) try {
  Sizes sizes;
  if (argc > 1) sizes.megabytes = std::stod(argv[1]);
  if (argc > 2) sizes.ranks = std::stoi(argv[2]);
  if (argc > 3) sizes.layers = std::stoi(argv[3]);
  const Figures alone = measure_ranks(Way::kAlone, sizes);
  const Figures ddp = measure_ranks(Way::kDdp, sizes);
  const double more = ddp.peak() - alone.peak();
  const double limit = kShareOfGradients * alone.gradients + kMegabytesOfTheGroup;
  std::cout << std::fixed << std::setprecision(1) << sizes.ranks << " ranks, " << sizes.layers
            << " layers, " << alone.gradients
            << " MB of gradients; the peak of memory for each rank\n"
            << std::setw(37) << "first step" << std::setw(15) << "later steps\n";
  print("the module alone", alone);
  print("DistributedDataParallel", ddp);
  std::cout << "more: " << more << " MB, " << 100 * more / alone.gradients
            << "% of the gradients; the limit is " << limit << " MB" << std::endl;
  return more > limit ? 1 : 0;
} catch (const peal::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
