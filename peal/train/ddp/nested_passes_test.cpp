// Backward passes inside a backward pass, as by re-entrant checkpointing.
#include <functional>
#include <memory>
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
using ::testing::HasSubstr;
using testing::on_ranks;
using torch::Tensor;
using torch::autograd::variable_list;

/// Runs a function without storing its intermediate values; backward runs it again.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  using Segment = std::function<Tensor(const Tensor&)>;

  static Tensor forward(torch::autograd::AutogradContext* context,
                        const Tensor& x,
                        const Segment* segment) {
    context->save_for_backward({x});
    context->saved_data["segment"] = reinterpret_cast<std::int64_t>(segment);
    const torch::NoGradGuard no_grad;
    return (*segment)(x);
  }

  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& gradients) {
    const auto* segment = reinterpret_cast<const Segment*>(context->saved_data["segment"].toInt());
    const torch::AutoGradMode with_grad(true);
    const Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const Tensor y = (*segment)(x);
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), Tensor()};
  }
};

/// Four layers; which of them are checkpointed, and in which depth, depends on `Use`.
struct Deep : torch::nn::Module {
  enum class Use { kPlain, kEach, kInEachOther, kTwice };

  Deep() {
    for (int i = 0; i < 4; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(3, 3)));
      segments.push_back(
          [layer = layers.back()](const Tensor& x) mutable { return torch::tanh(layer(x)); });
    }
    outer = [this](const Tensor& x) { return Checkpoint::apply(segments[1](x), &segments[2]); };
  }

  Tensor forward(Tensor x, Use use) {
    switch (use) {
      case Use::kPlain:
        for (const auto& segment : segments) x = segment(x);
        return x;
      case Use::kEach:
        for (const auto& segment : segments) x = Checkpoint::apply(x, &segment);
        return x;
      case Use::kInEachOther:
        return segments[3](Checkpoint::apply(segments[0](x), &outer));
      case Use::kTwice:
        x = Checkpoint::apply(segments[0](x), &segments[1]);
        return Checkpoint::apply(x, &segments[1]);
    }
    return x;
  }

  std::vector<torch::nn::Linear> layers;
  std::vector<Checkpoint::Segment> segments;
  Checkpoint::Segment outer;
};

Tensor input(Rank rank) {
  return (torch::arange(3.0).view({1, 3}) * 0.1 + rank * 0.3).requires_grad_();
}

/// Gradients of each step on rank 0, after a check that both ranks agree.
std::vector<Tensor> gradients_by_ddp(Deep::Use use, const DataParallelOptions& options) {
  const auto nets = testing::replicas<Deep>(2);
  const auto results = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    DistributedDataParallel model(net, group, options);
    std::vector<Tensor> seen;
    for (int step = 0; step < 4; ++step) {
      net->zero_grad();
      model.forward(input(group->rank()), use).sum().backward();
      seen.push_back(flat_gradients(*net));
    }
    return seen;
  });
  for (std::size_t step = 0; step < results[0].size(); ++step) {
    EXPECT_TRUE(results[0][step].equal(results[1][step]));
  }
  return results[0];
}

Tensor gradients_alone(Deep::Use use) {
  const auto net = testing::replicas<Deep>(1)[0];
  for (Rank rank = 0; rank < 2; ++rank) {
    // The same function without checkpoints.
    Tensor x = input(rank);
    if (use == Deep::Use::kTwice) {
      x = net->segments[1](net->segments[1](net->segments[0](x)));
    } else {
      x = net->forward(x, Deep::Use::kPlain);
    }
    (x.sum() / 2).backward();
  }
  return flat_gradients(*net);
}

DataParallelOptions one_bucket_each(Graph graph = Graph::kMayChange) {
  return {.bucket_cap = 1_B, .first_bucket_cap = 1_B, .graph = graph};
}

TEST(NestedPassesTest, CheckpointedLayersAreAveraged) {
  for (const auto graph : {Graph::kMayChange, Graph::kStatic}) {
    for (const auto use : {Deep::Use::kPlain, Deep::Use::kEach, Deep::Use::kInEachOther}) {
      for (const Tensor& step : gradients_by_ddp(use, one_bucket_each(graph))) {
        EXPECT_TRUE(step.allclose(gradients_alone(use), 1e-5, 1e-6)) << static_cast<int>(use);
      }
    }
  }
}

TEST(NestedPassesTest, ALayerCheckpointedInTwoPlacesIsAveragedIfTheGraphIsStatic) {
  for (const Tensor& step : gradients_by_ddp(Deep::Use::kTwice, one_bucket_each(Graph::kStatic))) {
    EXPECT_TRUE(step.allclose(gradients_alone(Deep::Use::kTwice), 1e-5, 1e-6));
  }
}

TEST(NestedPassesTest, ALayerCheckpointedInTwoPlacesIsOtherwiseAnErrorWithAdvice) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    // Only the first bucket is complete before the second use.
    DistributedDataParallel model(std::make_shared<Deep>(), group, one_bucket_each());
    auto& net = *model;
    for (const int unused : {2, 3}) {
      for (Tensor& parameter : net.layers[static_cast<std::size_t>(unused)]->parameters()) {
        parameter.requires_grad_(false);
      }
    }
    DistributedDataParallel again(model.module(), group, one_bucket_each());
    return testing::thrown_text(
        [&] { again.forward(input(0), Deep::Use::kTwice).sum().backward(); });
  });
  EXPECT_THAT(errors, Each(HasSubstr("Graph::kStatic")));
}

TEST(NestedPassesTest, APassAfterAFaultInsideACheckpointIsAveraged) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Deep>();
    DistributedDataParallel model(net, group);
    int calls = 0;
    const Checkpoint::Segment faulty = [&](const Tensor& x) {
      if (++calls == 2) throw std::runtime_error("a fault in the recomputation");
      return x.clone();
    };
    const std::string error = testing::thrown_text([&] {
      Checkpoint::apply(model.forward(input(0), Deep::Use::kEach), &faulty).sum().backward();
    });
    net->zero_grad();
    model.forward(input(group->rank()), Deep::Use::kPlain).sum().backward();
    return std::pair(error, flat_gradients(*net));
  });
  for (const auto& [error, gradients] : results) {
    EXPECT_THAT(error, HasSubstr("a fault in the recomputation"));
    EXPECT_TRUE(gradients.equal(results[0].second));
  }
}

/// Whether both ranks have the gradients of one process after body(net, model, rank).
template <class Body>
void expect_averaged(Body body) {
  const auto nets = testing::replicas<Deep>(2);
  const auto results = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    DistributedDataParallel model(net, group);
    body(*net, model, group->rank());
    return flat_gradients(*net);
  });
  for (const Tensor& gradients : results) {
    EXPECT_TRUE(gradients.allclose(gradients_alone(Deep::Use::kPlain), 1e-5, 1e-6));
  }
}

TEST(NestedPassesTest, AfterAFaultBehindACheckpointTheModuleItselfIsAveraged) {
  expect_averaged([](Deep& net, auto& model, Rank rank) {
    const Tensor x = input(rank) * 1;
    x.register_hook(
        [](const Tensor&) { throw std::runtime_error("a fault after the nested pass"); });
    const Tensor loss = model.forward(x, Deep::Use::kEach).sum();
    EXPECT_THAT(testing::thrown_text([&] { loss.backward(); }), HasSubstr("after the nested pass"));
    net.zero_grad();
    net.forward(input(rank), Deep::Use::kPlain).sum().backward();  // not by model.forward()
  });
}

TEST(NestedPassesTest, APassInsideTheLastNodeOfAPassIsAveraged) {
  expect_averaged([](Deep&, auto& model, Rank rank) {
    const Tensor leaf = torch::ones({1}).requires_grad_();
    leaf.register_hook([&](const Tensor&) {
      const torch::AutoGradMode with_grad(true);
      model.forward(input(rank), Deep::Use::kPlain).sum().backward();
    });
    (leaf * 2).backward();
  });
}

TEST(NestedPassesTest, APassThatContainsAFailedPassIsAveraged) {
  expect_averaged([](Deep& net, auto& model, Rank rank) {
    const Tensor x = input(rank);
    const Tensor leaf = torch::ones({1}).requires_grad_();
    leaf.register_hook([&](const Tensor&) {
      const torch::AutoGradMode with_grad(true);
      const Tensor other = torch::ones({1, 3}).requires_grad_();
      other.register_hook([](const Tensor&) { throw std::runtime_error("a fault"); });
      testing::thrown_text([&] { model.forward(other, Deep::Use::kPlain).sum().backward(); });
      net.zero_grad();
      net.forward(x, Deep::Use::kPlain).sum().backward();
    });
    (leaf * 2).backward();
  });
}

}  // namespace
}  // namespace peal::train
