// Measures what data-parallel training adds to a step (from build/release/bin):
//   peal run -n 2 ./train_bench [--rounds N] [--json FILE] [MODEL...]
// Columns:
// - "alone": the step of processes that do not communicate
// - "lockstep": the same with a barrier after backward, so the cost of the wait for the slower rank
// - "ddp": the step with DistributedDataParallel
// - "horovod": the step with the DistributedOptimizer of peal/horovod.h
// All columns take turns in the same processes, because the speed of the machine changes from
// second to second. The processes keep the memory that they free: otherwise glibc returns it to the
// system in each step of the column whose gradients happen to end the heap. Prints medians over
// rounds, and the medians of the rounds' ratios to "alone". With --json FILE, also writes each
// round to FILE.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <climits>
#include <torch/torch.h>

#include "peal/horovod.h"

#include "gpt/gpt.h"
#include "training_step.h"

namespace {

using Clock = std::chrono::steady_clock;
using torch::Tensor;

enum class Column { kAlone, kLockstep, kDdp, kHorovod };
const std::vector<std::pair<Column, std::string>> kColumns = {{Column::kAlone, "alone"},
                                                              {Column::kLockstep, "lockstep"},
                                                              {Column::kDdp, "ddp"},
                                                              {Column::kHorovod, "horovod"}};

torch::nn::Sequential convolutions() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 3)),
                        nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(32, 64, 3)),
                        nn::ReLU(),
                        nn::MaxPool2d(2),
                        nn::Flatten(),
                        nn::Linear(64 * 12 * 12, 128),
                        nn::ReLU(),
                        nn::Linear(128, 10));
}

torch::nn::Sequential layers() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Linear(1024, 2048),
                        nn::ReLU(),
                        nn::Linear(2048, 2048),
                        nn::ReLU(),
                        nn::Linear(2048, 2048),
                        nn::ReLU(),
                        nn::Linear(2048, 10));
}

/// The same step with Horovod's optimizer.
template <class Module>
Step make_horovod_step(const std::shared_ptr<Module>& net,
                       const Tensor& input,
                       const Tensor& target) {
  using Optimizer = peal::hvd::DistributedOptimizer<torch::optim::SGD>;
  const auto optimizer = std::make_shared<Optimizer>(torch::optim::SGD(net->parameters(), 0.001),
                                                     net->named_parameters());
  return [=] {
    optimizer->zero_grad();
    const Tensor output = net->forward(input);
    torch::cross_entropy_loss(output.flatten(0, -2), target.flatten()).backward();
    optimizer->step();
  };
}

/// The step of a column.
template <class Module>
Step step_of(Column column,
             const peal::ProcessGroupPtr& group,
             const std::shared_ptr<Module>& net,
             const Tensor& input,
             const Tensor& target) {
  if (column == Column::kHorovod) return make_horovod_step(net, input, target);
  return make_step(
      net,
      column == Column::kDdp ? group : nullptr,
      input,
      target,
      column == Column::kLockstep ? [group] { group->barrier(); } : std::function<void()>());
}

/// What the tables of docs/performance.md call the steps.
const std::map<std::string, std::string> kModels = {
    {"conv", "step of a small convolutional network"},
    {"mlp", "step of an MLP of 10 million parameters"},
    {"gpt", "step of a GPT of 10 million parameters"}};

/// Processor time of all threads, in milliseconds.
double processor_time() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double time_of(const Step& step) {
  const auto begin = Clock::now();
  step();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void measure(const std::string& name,
             const peal::ProcessGroupPtr& group,
             int rounds,
             std::ostream* json,
             const std::function<Step(Column)>& make) {
  std::map<std::string, Step> steps;
  std::map<std::string, std::vector<double>> times, processor;
  for (const auto& [column, title] : kColumns) {
    torch::manual_seed(1);
    steps[title] = make(column);
    for (int i = 0; i < 3; ++i) steps[title]();
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kColumns.size(); ++i) {  // each round begins with another column
      const std::string& title =
          kColumns[(i + static_cast<std::size_t>(round)) % kColumns.size()].second;
      group->barrier();
      steps[title]();
      std::vector<double> samples;
      const double begin = processor_time();
      for (int sample = 0; sample < 3; ++sample) samples.push_back(time_of(steps[title]));
      std::vector<double> of_ranks = {median(samples), (processor_time() - begin) / 3};
      group->all_reduce(of_ranks, {.op = peal::ReduceOp::kAvg});
      times[title].push_back(of_ranks[0]);
      processor[title].push_back(of_ranks[1]);
    }
  }
  if (group->rank() != 0) return;
  for (const auto& [column, title] : kColumns) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times[title].size(); ++i) {
      ratios.push_back(times[title][i] / times["alone"][i]);
    }
    std::printf("%-6s %-9s %9.3f ms  %.3f of alone  (processor %9.3f ms)\n",
                name.c_str(),
                title.c_str(),
                median(times[title]),
                median(ratios),
                median(processor[title]));
    if (json == nullptr) continue;
    for (const double ms : times[title]) {
      *json << R"({"part": "cpp", "backend": ")" << title << R"(", "what": ")" << kModels.at(name)
            << R"(", "us": )" << 1e3 * ms << "}\n";
    }
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 20;
  std::string json_path;
  std::vector<std::string> models;
  CLI::App app("Measures what data-parallel training adds to a step.");
  app.add_option("--rounds", rounds, "Number of rounds")->check(CLI::PositiveNumber);
  app.add_option("--json", json_path, "Also write every round to this file");
  app.add_option("models", models, "conv, mlp or gpt; default: all")->check(CLI::IsMember(kModels));
  CLI11_PARSE(app, argc, argv);
  if (models.empty()) models = {"conv", "mlp", "gpt"};

  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  torch::set_num_threads(1);
  peal::hvd::init();
  const peal::ProcessGroupPtr group = peal::hvd::process_group();
  std::ofstream json;
  if (!json_path.empty() && group->rank() == 0) json.open(json_path);
  torch::manual_seed(static_cast<std::uint64_t>(group->rank() + 1));
  for (const std::string& name : models) {
    measure(name, group, rounds, json.is_open() ? &json : nullptr, [&](Column column) -> Step {
      if (name == "gpt") {
        const auto text = torch::randint(65, {8, 65}, torch::kInt64);
        return step_of(column,
                       group,
                       Gpt(GptOptions{}).ptr(),
                       text.narrow(1, 0, 64).contiguous(),
                       text.narrow(1, 1, 64).contiguous());
      }
      const bool is_conv = name == "conv";
      const auto input = is_conv ? torch::randn({8, 1, 28, 28}) : torch::randn({64, 1024});
      return step_of(column,
                     group,
                     (is_conv ? convolutions() : layers()).ptr(),
                     input,
                     torch::randint(10, {input.size(0)}, torch::kInt64));
    });
  }
  return 0;
}
