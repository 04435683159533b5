#include "peal/train/ddp/place_allocator.h"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::flat_gradients;
using testing::on_ranks;
using torch::Tensor;

constexpr std::int64_t kWidth = 96;  // a weight has 36 KiB

/// Layers of the same size. A batch of kWidth rows has gradients of the same size too, so requests
/// for them may get the place of a weight's gradient.
struct Square : torch::nn::Module {
  Square() {
    for (int i = 0; i < 4; ++i) {
      layers.push_back(
          register_module("layer" + std::to_string(i), torch::nn::Linear(kWidth, kWidth)));
    }
  }
  Tensor forward(Tensor x) {
    for (auto& layer : layers) {
      x = torch::tanh(layer(x));
      between.push_back(x);
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
  std::vector<Tensor> between;
};

Tensor input_for(Rank rank, std::int64_t rows, int step) {
  const auto random =
      at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank * 1000 + step + rows));
  return torch::randn({rows, kWidth}, random).requires_grad_();
}

TEST(PlaceAllocatorTest, ATensorMayUseAPlaceAndReturnsIt) {
  const Memory memory(new std::byte[64]);
  const auto place = c10::make_intrusive<PlaceMemory>(memory, memory.get(), std::size_t{64});
  PlaceAllocator allocator([&](std::size_t bytes) {
    return bytes == 64 && !place->is_in_use() ? place.get() : nullptr;
  });
  EXPECT_NE(torch::empty({16}).data_ptr(), memory.get()) << "before start()";
  allocator.start();
  {
    const Tensor in_place = torch::empty({16});
    EXPECT_EQ(in_place.data_ptr(), memory.get());
    EXPECT_TRUE(place->is_in_use());
    EXPECT_NE(torch::empty({16}).data_ptr(), memory.get()) << "it is in use";
  }
  EXPECT_FALSE(place->is_in_use());
  EXPECT_NE(torch::empty({17}).data_ptr(), memory.get()) << "another size";
  std::thread([&] { EXPECT_NE(torch::empty({16}).data_ptr(), memory.get()); }).join();
  allocator.stop();
  EXPECT_NE(torch::empty({16}).data_ptr(), memory.get()) << "after stop()";
}

TEST(PlaceAllocatorTest, TensorsOfAStorageMoveOutTogetherAndKeepTheirValues) {
  const Memory memory(new std::byte[64]);
  const auto place = c10::make_intrusive<PlaceMemory>(memory, memory.get(), std::size_t{64});
  PlaceAllocator allocator([&](std::size_t) { return place->is_in_use() ? nullptr : place.get(); });
  allocator.start();
  const Tensor whole = torch::empty({16});
  allocator.stop();
  whole.fill_(3);
  const Tensor part = whole.slice(0, 4, 8);
  move_out_of_place(whole);
  EXPECT_FALSE(place->is_in_use());
  std::fill_n(memory.get(), 64, std::byte{0});
  EXPECT_TRUE(whole.equal(torch::full({16}, 3.0)));
  part.fill_(4);
  EXPECT_EQ(whole[5].item<double>(), 4);
}

/// By rank: how many of the four weights' gradients are computed in their places, in three steps.
/// loss(model, net, input) runs forward.
std::vector<int> computed_in_place(
    const std::function<Tensor(DistributedDataParallel<Square>&, Square&, const Tensor&)>& loss) {
  return on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Square>();
    DistributedDataParallel model(net, group);
    int in_place = 0;
    std::vector<const void*> arrived(4);
    for (std::size_t i = 0; i < 4; ++i) {
      net->layers[i]->weight.register_hook(
          [&arrived, i](const Tensor& gradient) { arrived[i] = gradient.data_ptr(); });
    }
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      loss(model, *net, input_for(group->rank(), 8, step)).backward();
      for (std::size_t i = 0; i < 4; ++i) {
        in_place += net->layers[i]->weight.grad().data_ptr() == arrived[i];
      }
    }
    return in_place;
  });
}

TEST(PlaceAllocatorTest, LargeGradientsAreComputedInTheirPlaces) {
  EXPECT_THAT(computed_in_place([](auto& model, Square&, const Tensor& input) {
                return model.forward(input).sum();
              }),
              Each(3 * 4));
}

TEST(PlaceAllocatorTest, WithoutTheWrappersForwardTheyAreFromTheFirstArrivalOn) {
  EXPECT_THAT(computed_in_place(
                  [](auto&, Square& net, const Tensor& input) { return net.forward(input).sum(); }),
              Each(3 * 3));
}

TEST(PlaceAllocatorTest, TensorsBetweenForwardAndBackwardGetNoPlaces) {
  EXPECT_THAT(computed_in_place([](auto& model, Square& net, const Tensor& input) {
                Tensor loss = model.forward(input).sum();
                for (const auto& layer : net.layers) {
                  net.between.push_back(layer->weight.detach().clone());  // kept to the end
                }
                return loss;
              }),
              Each(3 * 4));
}

/// What a program may keep from a pass.
enum class Kept { kNothing, kGradientsOfHooks, kGradientsBetween, kGraph };

/// The gradients of some steps, and the values that were kept.
std::vector<Tensor> steps_with(Computation computation,
                               Kept kept,
                               std::int64_t rows,
                               Average average) {
  const auto nets = testing::replicas<Square>(2);
  return on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    DistributedDataParallel model(
        net, group, {.bucket_cap = 40'000_B, .average = average, .computation = computation});
    std::vector<Tensor> of_hooks, seen;
    if (kept == Kept::kGradientsOfHooks) {
      for (auto& layer : net->layers) {
        layer->weight.register_hook([&](const Tensor& gradient) { of_hooks.push_back(gradient); });
      }
    }
    for (int step = 0; step < 5; ++step) {
      net->zero_grad();
      net->between.clear();
      const Tensor x = input_for(group->rank(), rows, step);
      const Tensor y = model.forward(x);
      for (Tensor& one : net->between) {
        if (kept == Kept::kGradientsBetween) one.retain_grad();
      }
      const Tensor loss = y.square().sum();
      loss.backward({}, /*retain_graph=*/kept == Kept::kGraph);
      if (kept == Kept::kGraph) loss.backward();
      seen.push_back(flat_gradients(*net));
      seen.push_back(x.grad().clone());
      for (const Tensor& one : net->between) {
        if (one.requires_grad() && kept == Kept::kGradientsBetween) seen.push_back(one.grad());
      }
    }
    seen.insert(seen.end(), of_hooks.begin(), of_hooks.end());
    return seen;
  })[0];
}

TEST(PlaceAllocatorTest, ComputingInPlaceChangesNoValueThatTheProgramSees) {
  for (const auto kept :
       {Kept::kNothing, Kept::kGradientsOfHooks, Kept::kGradientsBetween, Kept::kGraph}) {
    for (const std::int64_t rows : {std::int64_t{8}, kWidth}) {
      for (const auto average : {Average::kMean, Average::kBySamples}) {
        const auto copied = steps_with(Computation::kCopied, kept, rows, average);
        const auto in_place = steps_with(Computation::kInPlace, kept, rows, average);
        ASSERT_EQ(copied.size(), in_place.size());
        for (std::size_t i = 0; i < copied.size(); ++i) {
          EXPECT_TRUE(copied[i].equal(in_place[i]))
              << "kept " << static_cast<int>(kept) << ", " << rows << " rows, tensor " << i;
        }
      }
    }
  }
}

TEST(PlaceAllocatorTest, ATensorThatKeepsAPlaceOutlivesTheWrapper) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Square>();
    Tensor kept;
    {
      DistributedDataParallel model(net, group);
      const Tensor y = model.forward(input_for(group->rank(), kWidth, 0));
      for (Tensor& one : net->between) one.retain_grad();
      y.sum().backward();
      kept = net->between[1].grad();
    }
    const Tensor copy = kept.clone();
    net->zero_grad();
    return kept.equal(copy);
  });
  EXPECT_THAT(results, Each(true));
}

}  // namespace
}  // namespace peal::train
