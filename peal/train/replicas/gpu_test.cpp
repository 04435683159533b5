// DataParallel with replicas on a GPU, alone and beside the CPU.
#include <ATen/autocast_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/train/replicas/testing/passes.h"
#include "peal/train/testing/gpus.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::expect_close;
using testing::flat_gradients;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::kGpu;
using testing::loss_of;
using testing::make_batch;
using testing::make_net;
using testing::thrown_text;
using torch::Tensor;

class DataParallelOnGpusTest : public testing::GpuTest {};

using Devices = std::vector<torch::Device>;

torch::nn::Sequential net_on(const torch::Device& device) {
  torch::nn::Sequential net = make_net();
  net->to(device);
  return net;
}

TEST_F(DataParallelOnGpusTest, OutputsAndGradientsAreThoseOfTheModuleOnTheWholeBatch) {
  const torch::Device cpu = torch::kCPU;
  for (const Devices& devices : {Devices{kGpu},
                                 Devices{kGpu, kGpu},
                                 Devices{kGpu, kGpu, kGpu},
                                 Devices{kGpu, cpu},
                                 Devices{cpu, kGpu}}) {
    for (const torch::Device& input : {cpu, kGpu}) {
      for (const std::int64_t samples : {1, 2, 7}) {
        SCOPED_TRACE(c10::str(
            torch::ArrayRef<torch::Device>(devices), ", input on ", input, ", samples ", samples));
        auto net = net_on(devices[0]);
        auto plain = net_on(devices[0]);
        DataParallel model(net, {.devices = devices});
        Tensor x = make_batch(samples).to(input).requires_grad_();
        Tensor plain_x = make_batch(samples).to(devices[0]).requires_grad_();
        const Tensor output = model.forward(x);
        const Tensor plain_output = plain->forward(plain_x);
        EXPECT_EQ(output.device(), devices[0]);
        expect_close(output, plain_output);
        loss_of(output).backward();
        loss_of(plain_output).backward();
        expect_close(flat_gradients(*net), flat_gradients(*plain));
        expect_close(x.grad(), plain_x.grad());
      }
    }
  }
}

TEST_F(DataParallelOnGpusTest, TrainingIsThatOfTheModule) {
  auto net = net_on(kGpu);
  auto plain = net_on(kGpu);
  DataParallel model(net, {.devices = {kGpu, kGpu}});
  torch::optim::Adam optimizer(net->parameters());
  torch::optim::Adam plain_optimizer(plain->parameters());
  for (int step = 0; step < 20; ++step) {
    const Tensor x = make_batch(2 + step % 5).to(kGpu);
    optimizer.zero_grad();
    loss_of(model.forward(x)).backward();
    optimizer.step();
    plain_optimizer.zero_grad();
    loss_of(plain->forward(x)).backward();
    plain_optimizer.step();
    expect_close(flat_parameters(*net), flat_parameters(*plain));
  }
}

TEST_F(DataParallelOnGpusTest, AModuleOnAGpuHasAReplicaOnEachGpu) {
  DataParallel model(net_on(kGpu));
  EXPECT_EQ(model.forward(make_batch(3)).device(), kGpu);
}

/// Its layers keep their weights in one piece of memory on a GPU.
struct Recurrent : torch::nn::Cloneable<Recurrent> {
  Recurrent() { reset(); }
  void reset() override {
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(3, 4).num_layers(2).batch_first(true)));
  }
  Tensor forward(const Tensor& x) { return std::get<0>(lstm(x)).select(1, -1); }
  torch::nn::LSTM lstm = nullptr;
};

TEST_F(DataParallelOnGpusTest, ARecurrentModuleHasTheGradientsOfTheWholeBatch) {
  const auto nets = testing::replicas<Recurrent>(2);
  for (const auto& net : nets) net->to(kGpu, torch::kFloat64);
  DataParallel model(nets[0], {.devices = {kGpu, kGpu}});
  const Tensor x = make_batch(6).view({2, 3, 3}).repeat({3, 1, 1}).to(kGpu);
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor output = model.forward(x);
    const Tensor plain_output = nets[1]->forward(x);
    expect_close(output, plain_output);
    loss_of(output).backward();
    loss_of(plain_output).backward();
    expect_close(flat_gradients(*nets[0]), flat_gradients(*nets[1]));
  }
}

TEST_F(DataParallelOnGpusTest, BatchNormKeepsTheStatisticsOfReplicaZero) {
  torch::nn::BatchNorm1d net(3);
  torch::nn::BatchNorm1d plain(3);
  net->to(kGpu, torch::kFloat64);
  plain->to(kGpu, torch::kFloat64);
  DataParallel model(net, {.devices = {kGpu, kGpu}});
  for (const std::int64_t samples : {8, 6}) {
    const Tensor x = make_batch(samples).to(kGpu);
    model.forward(x);
    plain->forward(x.narrow(0, 0, samples / 2));  // the part of replica 0
  }
  expect_close(net->running_mean, plain->running_mean);
  expect_close(net->running_var, plain->running_var);
  EXPECT_EQ(net->num_batches_tracked.item<int>(), 2);
  net->eval();
  plain->eval();
  const Tensor x = make_batch(5).to(kGpu);
  expect_close(model.forward(x), plain->forward(x));
}

TEST_F(DataParallelOnGpusTest, AutocastForCudaHoldsInTheReplicasWithItsType) {
  auto net = net_on(kGpu);
  auto plain = net_on(kGpu);
  net->to(torch::kFloat32);
  plain->to(torch::kFloat32);
  DataParallel model(net, {.devices = {kGpu, kGpu}});
  const auto type_before = at::autocast::get_autocast_dtype(at::kCUDA);
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    at::autocast::set_autocast_dtype(at::kCUDA, type);
    const Tensor x = make_batch(4).to(kGpu, torch::kFloat32);
    const Tensor output = model.forward(x);
    const Tensor plain_output = plain->forward(x);
    at::autocast::set_autocast_enabled(at::kCUDA, false);
    at::autocast::set_autocast_dtype(at::kCUDA, type_before);
    at::autocast::clear_cache();
    EXPECT_EQ(output.scalar_type(), type);
    EXPECT_TRUE(output.allclose(plain_output, 1e-2, 1e-2));
    output.sum().backward();
    EXPECT_EQ(net->parameters()[0].grad().scalar_type(), torch::kFloat32);
  }
}

TEST_F(DataParallelOnGpusTest, GradModeAndInferenceModeHoldInTheReplicas) {
  DataParallel model(net_on(kGpu), {.devices = {kGpu, kGpu}});
  const Tensor x = make_batch(4).to(kGpu);
  EXPECT_TRUE(model.forward(x).requires_grad());
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(model.forward(x).requires_grad());
  }
  {
    const c10::InferenceMode inference;
    EXPECT_TRUE(model.forward(x).is_inference());
  }
}

TEST_F(DataParallelOnGpusTest, DropoutFollowsFromTheSeedIfEachGpuHasOneReplica) {
  torch::nn::Dropout net(0.5);
  for (const Devices& devices : {Devices{kGpu}, Devices{kGpu, torch::kCPU}}) {
    DataParallel model(net, {.devices = devices});
    const auto output = [&](std::uint64_t seed) {
      torch::manual_seed(seed);
      return model.forward(torch::ones({2, 1000}, kGpu));
    };
    const Tensor first = output(1);
    EXPECT_TRUE(output(1).equal(first));
    EXPECT_FALSE(output(2).equal(first));
    EXPECT_FALSE(first[0].equal(first[1])) << "two replicas have the same numbers";
  }
}

const c10::impl::VirtualGuardImpl& cuda() {
  static const c10::impl::VirtualGuardImpl guards(torch::kCUDA);
  return guards;
}

/// Notes the stream and the device of the threads that compute.
struct Streams : torch::nn::Cloneable<Streams> {
  explicit Streams(Guarded<std::vector<c10::Stream>>& seen) : seen_(&seen) {}
  void reset() override {}
  Tensor forward(const Tensor& x) {
    EXPECT_EQ(cuda().getDevice(), kGpu);
    seen_->with([](auto& seen) { seen.push_back(cuda().getStream(kGpu)); });
    return x + 1;
  }
  Guarded<std::vector<c10::Stream>>* seen_;
};

TEST_F(DataParallelOnGpusTest, ReplicasComputeOnTheStreamOfTheCaller) {
  Guarded<std::vector<c10::Stream>> seen;
  DataParallel model(std::make_shared<Streams>(seen), {.devices = {kGpu, kGpu}});
  const Tensor x = make_batch(4).to(kGpu);
  const c10::Stream other = cuda().getNewStream(kGpu);
  ASSERT_NE(other, cuda().getStream(kGpu));
  for (const c10::Stream& stream : {other, cuda().getStream(kGpu)}) {
    const c10::StreamGuard as_caller(stream);
    seen.with([](auto& all) { all.clear(); });
    model.forward(x);
    EXPECT_EQ(cuda().getStream(kGpu), stream);
    EXPECT_THAT(seen.with([](auto& all) { return all; }), ::testing::ElementsAre(stream, stream));
  }
}

/// Keeps the caller's stream busy for some milliseconds.
Tensor slow_work() {
  const Tensor large = torch::full({4096, 4096}, 1.0 / 4096, kGpu);
  Tensor product = large;
  for (int i = 0; i < 40; ++i) product = product.mm(large);
  return product;  // equal to `large`
}

TEST_F(DataParallelOnGpusTest, ReplicasWaitForTheInputThatAnotherStreamComputes) {
  slow_work();  // the first call loads the kernels, which waits for the GPU
  auto net = net_on(kGpu);
  auto plain = net_on(kGpu);
  DataParallel model(net, {.devices = {kGpu, kGpu}});
  const Tensor values = make_batch(4).to(kGpu);
  const Tensor expected = plain->forward(values);
  const Tensor x = torch::zeros_like(values);
  cuda().synchronizeDevice(0);
  const c10::StreamGuard elsewhere(cuda().getNewStream(kGpu));
  slow_work();
  x.copy_(values);
  const Tensor output = model.forward(x);
  expect_close(output, expected);
  loss_of(output).backward();
  loss_of(expected).backward();
  expect_close(flat_gradients(*net), flat_gradients(*plain));
}

/// Answers late, and with much data, so that a copy of the output takes a while.
struct Late : torch::nn::Cloneable<Late> {
  void reset() override {}
  Tensor forward(const Tensor& x) {
    if (!x.is_cuda()) return x * 2;
    return x * 2 * (slow_work()[0][0] * 4096).round();
  }
};

TEST_F(DataParallelOnGpusTest, AnOutputOnTheCpuIsComplete) {
  slow_work();
  DataParallel model(std::make_shared<Late>(),
                     {.devices = {kGpu, kGpu}, .output_device = torch::kCPU});
  const Tensor x = torch::rand({8, 1 << 20});
  for (int pass = 0; pass < 3; ++pass) {
    const Tensor output = model.forward(x + pass);
    EXPECT_TRUE(output.is_cpu());
    EXPECT_TRUE(output.equal((x + pass) * 2));
  }
}

TEST_F(DataParallelOnGpusTest, AReplicaOnTheCpuGetsAWholeInputFromTheGpu) {
  slow_work();
  DataParallel model(std::make_shared<Late>(), {.devices = {kGpu, torch::kCPU}});
  const Tensor x = torch::rand({8, 1 << 20}, kGpu);
  for (int pass = 0; pass < 3; ++pass) {
    const Tensor late = (x + pass) * (slow_work()[0][0] * 4096).round();
    EXPECT_TRUE(model.forward(late).equal((x + pass) * 2));
  }
}

/// Fails for a batch that begins with a negative number.
struct Picky : torch::nn::Cloneable<Picky> {
  void reset() override {}
  Tensor forward(const Tensor& x) {
    if (x[0][0].item<double>() < -1) return torch::empty({1LL << 46}, x.options());
    if (x[0][0].item<double>() < 0) throw std::runtime_error("a negative sample");
    return x * 2;
  }
};

TEST_F(DataParallelOnGpusTest, AnErrorNamesTheReplicaAndItsDeviceAndTheNextPassWorks) {
  DataParallel model(std::make_shared<Picky>(), {.devices = {kGpu, kGpu}});
  Tensor x = torch::ones({4, 1}, kGpu);
  x[2] = -1;
  EXPECT_THAT(thrown_text([&] { model.forward(x); }),
              HasSubstr("usage: DataParallel: replica 1 on cuda:0 failed: a negative sample"));
  x[2] = -2;
  EXPECT_THAT(thrown_text([&] { model.forward(x); }),
              ::testing::AllOf(HasSubstr("resource: DataParallel: replica 1 on cuda:0 failed: "),
                               HasSubstr("out of memory")));
  x[2] = 1;
  EXPECT_TRUE(model.forward(x).equal(x * 2));
}

TEST_F(DataParallelOnGpusTest, TheModuleMustBeOnTheFirstDevice) {
  EXPECT_THAT(thrown_text([] {
                DataParallel model(make_net(), {.devices = {kGpu, torch::kCPU}});
              }),
              HasSubstr("the parameter 0.weight is on cpu, and the first device is cuda:0"));
}

}  // namespace
}  // namespace peal::train
