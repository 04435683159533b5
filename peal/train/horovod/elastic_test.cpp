// Elastic jobs with a driver are in tests/elastic.
#include "peal/train/horovod/elastic.h"

#include <algorithm>
#include <set>

#include "peal/train/horovod/optimizer_values.h"
#include "peal/train/horovod/testing/processes.h"

namespace peal::hvd {
namespace {

using testing::Findings;
using testing::on_processes;

std::vector<std::size_t> all_of(ElasticSampler& sampler, std::size_t batch_size) {
  std::vector<std::size_t> all;
  sampler.reset();
  while (const auto batch = sampler.next(batch_size)) {
    all.insert(all.end(), batch->begin(), batch->end());
  }
  return all;
}

TEST(ElasticSampler, GivesTheSamplesOfAnEpochToTheRanksAndContinues) {
  on_processes(3, [](Findings& findings) {
    ElasticSampler sampler(10, ElasticSampler::Order::kSequential);
    ElasticSampler copy = sampler;  // as in a data loader
    const auto first = static_cast<std::size_t>(rank());
    findings.expect(
        all_of(copy, 2) == std::vector<std::size_t>{first, first + 3, first + 6, (first + 9) % 10},
        "the epoch");
    sampler.record_batch(2);
    findings.expect(copy.processed() == 6, "the used samples");
    // 6, 7, 8, 9 are left, and then 6 and 7 again.
    const std::vector<std::vector<std::size_t>> rest = {{6, 9}, {7, 6}, {8, 7}};
    findings.expect(all_of(sampler, 1) == rest[first], "the rest");
    sampler.record_batch(2);
    findings.expect(sampler.processed() == 10 && all_of(sampler, 1).empty(), "the end");
    sampler.set_epoch(1);
    findings.expect(sampler.processed() == 0 && sampler.size() == 4, "the next epoch");
  });
}

TEST(ElasticSampler, ShufflesEachEpochInAnotherOrder) {
  on_processes(1, [](Findings& findings) {
    ElasticSampler sampler(50, ElasticSampler::Order::kShuffled, 7);
    const std::vector<std::size_t> first = all_of(sampler, 8);
    sampler.set_epoch(1);
    const std::vector<std::size_t> second = all_of(sampler, 8);
    findings.expect(first != second, "the same order");
    findings.expect(std::set(first.begin(), first.end()).size() == 50, "a sample is missing");
    findings.expect(std::set(second.begin(), second.end()).size() == 50, "a sample is missing");
  });
}

TEST(TorchState, RestoresDeepCopiesAndTakesOverTheStateOfRank0) {
  on_processes(2, [](Findings& findings) {
    torch::nn::Linear net(2, 1);
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    ElasticSampler sampler(8);
    int epoch = 0;
    std::string text = "old";
    elastic::TorchState state;
    state.add(net).add(optimizer).add(sampler).add("epoch", epoch).add("text", text);
    const auto step = [&] {
      optimizer.zero_grad();
      net(torch::ones({1, 2})).sum().backward();
      optimizer.step();
      sampler.record_batch(1);
      ++epoch;
      text += "!";
    };
    step();
    state.save();
    const Tensor weight = net->weight.detach().clone();
    const auto momentum = [&] {
      return copy_of_state(optimizer).parameters.at("0.0").at("momentum_buffer");
    };
    const Tensor saved_momentum = momentum();
    step();
    state.restore();
    findings.expect_equal(net->weight.detach(), weight, "the weight");
    findings.expect_equal(momentum(), saved_momentum, "the momentum");
    findings.expect(epoch == 1 && text == "old!" && sampler.processed() == 2, "the values");

    if (rank() == 0) step();
    state.sync();
    findings.expect_equal(allreduce(net->weight.detach(), {.op = Min}),
                          allreduce(net->weight.detach(), {.op = Max}),
                          "the weights differ");
    findings.expect(epoch == 2 && text == "old!!" && sampler.processed() == 4, "values of rank 0");
    state.commit();
    findings.expect(state.commits() == 1, "the commits");
  });
}

TEST(ElasticRun, WithoutADriverCallsTheFunctionOnceAndLetsErrorsPass) {
  on_processes(2, [](Findings& findings) {
    int calls = 0;
    elastic::TorchState state;
    elastic::run(state, [&] { ++calls; });
    findings.expect(calls == 1, "the calls");
    findings.expect_error<HorovodInternalError>(
        ErrorKind::kMismatch,
        "Mismatched",
        [&] { elastic::run(state, [&] { allreduce(torch::ones({rank() + 1}), {.name = "x"}); }); },
        "a mismatch");
  });
}

}  // namespace
}  // namespace peal::hvd
