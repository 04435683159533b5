// A worker of an elastic job that trains with Horovod's API, for hvd_elastic_test.cpp:
//   SAMPLES MILLISECONDS  an epoch of that many samples, one for each rank in a step; each step
//                         takes that long
// It prints the line of worker.cpp at the beginning of each round. At the end, rank 0 prints "ok"
// if the state is right, else what is wrong.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <torch/torch.h>

#include "peal/horovod.h"

namespace {

namespace hvd = peal::hvd;
using torch::Tensor;

void say(const std::string& text) { std::cout << text << std::endl; }

/// The sum of all samples that were used, and how often each was used.
struct Net : torch::nn::Module {
  explicit Net(std::int64_t samples) {
    sum = register_parameter("sum", torch::zeros({1}, torch::kFloat64));
    ledger = register_buffer("ledger", torch::zeros({samples}, torch::kInt64));
    register_module("norm", norm);
  }
  Tensor sum, ledger;
  peal::train::SyncBatchNorm norm = hvd::SyncBatchNorm(torch::nn::BatchNormOptions(1));
};

void say_place(std::int64_t round, std::int64_t step) {
  say(c10::str("pid ",
               ::getpid(),
               ": round ",
               round,
               ", rank ",
               hvd::rank(),
               " of ",
               hvd::size(),
               ", local ",
               hvd::local_rank(),
               " of ",
               hvd::local_size(),
               ", cross ",
               hvd::cross_rank(),
               " of ",
               hvd::cross_size(),
               " on ",
               ::getenv("HOROVOD_HOSTNAME"),
               "[",
               ::getenv("HOROVOD_RANK"),
               "], step ",
               step));
}

/// What is wrong with the state after the epoch; empty if nothing is.
std::string problem_of(const Net& net, const hvd::ElasticSampler& sampler, std::int64_t samples) {
  const Tensor numbers = torch::arange(1, samples + 1, torch::kInt64);
  const Tensor wanted = (net.ledger * numbers).sum().to(torch::kFloat64);
  if (net.sum.item<double>() != -wanted.item<double>()) {
    return c10::str("the sum is ", net.sum.item<double>(), ", but must be -", wanted);
  }
  const auto used = net.ledger.sum().item<std::int64_t>();
  const bool is_each_used = net.ledger.min().item<std::int64_t>() > 0;
  // In the last step some ranks may get repeated samples.
  if (!is_each_used || used >= samples + hvd::size()) return c10::str("the ledger is ", net.ledger);
  return sampler.processed() == static_cast<std::size_t>(samples) ? "" : "the epoch has not ended";
}

void train(std::int64_t samples, std::chrono::milliseconds pause) {
  torch::set_num_threads(1);
  hvd::init();
  const auto net = std::make_shared<Net>(samples);
  hvd::DistributedOptimizer optimizer(
      torch::optim::SGD({net->sum}, 1.0), net->named_parameters(), {.op = hvd::Sum});
  hvd::ElasticSampler sampler(static_cast<std::size_t>(samples));
  std::int64_t round = 0, step = 0;
  hvd::elastic::TorchState state;
  state.add(*net).add(optimizer).add(sampler).add("round", round).add("step", step);
  hvd::elastic::run(state, [&] {
    ++round;
    state.save();
    say_place(round, step);
    sampler.reset();
    while (const auto batch = sampler.next(1)) {
      const auto sample = static_cast<std::int64_t>(batch->front());
      optimizer.zero_grad();
      (net->sum * static_cast<double>(sample + 1)).sum().backward();
      optimizer.step();
      const Tensor here = torch::one_hot(torch::tensor(sample), samples);
      net->ledger.add_(hvd::allreduce(here, {.name = "ledger", .op = hvd::Sum}));
      net->norm(torch::ones({2, 1}));
      sampler.record_batch(1);
      ++step;
      std::this_thread::sleep_for(pause);
      state.commit();
    }
  });
  const std::string problem = problem_of(*net, sampler, samples);
  if (hvd::rank() == 0) say(problem.empty() ? "ok" : problem);
  hvd::shutdown();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  try {
    train(std::stol(arguments[1]), std::chrono::milliseconds(std::stol(arguments[2])));
    return 0;
  } catch (const std::exception& error) {
    say(std::string("ended by ") + error.what());
    return 3;
  }
}
