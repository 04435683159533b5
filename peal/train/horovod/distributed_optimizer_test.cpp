#include "peal/train/horovod/distributed_optimizer.h"

#include <thread>

#include "peal/train/horovod/testing/processes.h"

namespace peal::hvd {
namespace {

using testing::Findings;
using testing::on_processes;

struct Net : torch::nn::Module {
  Net() {
    torch::manual_seed(3);
    register_module("first", first = torch::nn::Linear(4, 8));
    register_module("second", second = torch::nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first = nullptr, second = nullptr;
};

constexpr std::int64_t kRows = 4;  // of each rank in a step

/// The batch of all ranks.
struct Batch {
  Tensor x, y;
};
Batch batch_of(int step, int ranks) {
  torch::manual_seed(static_cast<std::uint64_t>(100 + step));
  return {torch::randn({kRows * ranks, 4}), torch::randn({kRows * ranks, 3})};
}
Batch rows_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  return {batch.x.narrow(0, first, count), batch.y.narrow(0, first, count)};
}

void backward(Net& net, const Batch& batch) {
  torch::mse_loss(net.forward(batch.x), batch.y).backward();
}

Tensor flat(const torch::nn::Module& module) {
  Tensors all;
  for (const Tensor& parameter : module.parameters()) all.push_back(parameter.detach().flatten());
  return torch::cat(all);
}

torch::optim::SGD make_sgd(const Tensors& parameters) {
  return torch::optim::SGD(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
}
torch::optim::Adam make_adam(const Tensors& parameters) {
  return torch::optim::Adam(parameters, torch::optim::AdamOptions(0.01));
}
torch::optim::AdamW make_adamw(const Tensors& parameters) {
  return torch::optim::AdamW(parameters, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
}

/// 50 steps on each rank's rows, and 50 steps of one process on all rows.
template <class Make>
void check_training(Findings& findings,
                    const std::string& what,
                    Make make,
                    const std::function<DistributedOptions(const Net&)>& options) {
  const auto net = std::make_shared<Net>(), alone = std::make_shared<Net>();
  const DistributedOptions chosen = options(*net);
  DistributedOptimizer optimizer(make(net->parameters()), net->named_parameters(), chosen);
  auto reference = make(alone->parameters());
  const int passes = chosen.backward_passes_per_step;
  for (int step = 0; step < 50; ++step) {
    const Batch batch = batch_of(step, size());
    reference.zero_grad();
    backward(*alone, batch);
    reference.step();
    optimizer.zero_grad();
    const std::int64_t count = kRows / passes;
    for (int pass = 0; pass < passes; ++pass) {
      backward(*net, rows_of(batch, rank() * kRows + pass * count, count));
    }
    optimizer.step();
  }
  findings.expect_close(flat(*net), flat(*alone), 1e-5, what);
}

TEST(DistributedOptimizer, TrainsAsOneProcessWithTheWholeBatch) {
  for (const int ranks : {1, 2, 3}) {
    on_processes(ranks, [](Findings& findings) {
      const auto check_options = [&](const std::string& what, const auto& options) {
        check_training(findings, "SGD, " + what, make_sgd, options);
        check_training(findings, "Adam, " + what, make_adam, options);
        check_training(findings, "AdamW, " + what, make_adamw, options);
      };
      check_options("no options", [](const Net&) { return DistributedOptions(); });
      check_options("groups", [](const Net& net) {
        return DistributedOptions{
            .groups = {{net.first->weight, net.second->bias}, {net.first->bias}}};
      });
      check_options("num_groups", [](const Net&) { return DistributedOptions{.num_groups = 2}; });
      check_options("a factor", [](const Net&) {
        return DistributedOptions{.gradient_predivide_factor = 2.0};
      });
      check_options("a factor and groups", [](const Net&) {
        return DistributedOptions{.gradient_predivide_factor = 2.0, .num_groups = 2};
      });
      check_options("the mean of two passes", [](const Net&) {
        return DistributedOptions{.backward_passes_per_step = 2,
                                  .accumulation = DistributedOptions::Accumulation::kMean};
      });
    });
  }
}

/// w * x: the gradient of w is x.
struct Weight {
  explicit Weight(double value = 0) : w(torch::full({2}, value, torch::requires_grad())) {}
  void backward(double x) const { (w * x).sum().backward(); }
  DistributedOptimizer<torch::optim::SGD> optimizer(const DistributedOptions& options = {}) const {
    NamedTensors named;
    named.insert("w", w);
    return DistributedOptimizer(torch::optim::SGD({w}, 1.0), named, options);
  }
  Tensor w;
};

TEST(DistributedOptimizer, AddsThePassesOfAStepAndAveragesTheRanks) {
  on_processes(2, [](Findings& findings) {
    const Weight weight;
    auto optimizer = weight.optimizer({.backward_passes_per_step = 2});
    weight.backward(rank() + 1);
    weight.backward(rank() + 2);
    optimizer.step();
    findings.expect_equal(weight.w.detach(), torch::full({2}, -4.0), "(1 + 2 + 2 + 3) / 2");
    optimizer.zero_grad();
    optimizer.set_backward_passes_per_step(1);
    weight.backward(1);
    findings.expect_error(
        ErrorKind::kUsage,
        "Gradients were computed more than backward_passes_per_step times",
        [&] { weight.backward(1); },
        "a second pass");
    optimizer.step();  // a shutdown with a pending gradient would abort the other rank's step
  });
}

TEST(DistributedOptimizer, UsesOtherReductionsAndCompression) {
  on_processes(2, [](Findings& findings) {
    const auto weight_after = [](const DistributedOptions& options) {
      const Weight weight;
      auto optimizer = weight.optimizer(options);
      weight.backward(rank() + 1.5);
      optimizer.step();
      return weight.w.detach();
    };
    findings.expect_equal(weight_after({.op = Sum}), torch::full({2}, -4.0), "Sum");
    findings.expect_equal(weight_after({.op = Max}), torch::full({2}, -2.5), "Max");
    findings.expect_equal(
        weight_after({.compression = Compression::fp16()}), torch::full({2}, -2.0), "fp16");
  });
}

TEST(DistributedOptimizer, ReducesZerosForParametersThatBackwardHasNotReached) {
  on_processes(3, [](Findings& findings) {
    for (const int groups : {0, 1}) {
      Tensors weights;
      for (int i = 0; i < 3; ++i) weights.push_back(torch::zeros({2}, torch::requires_grad()));
      DistributedOptimizer optimizer(torch::optim::SGD(weights, 1.0),
                                     {.op = Sum, .num_groups = groups});
      Tensor sum = torch::zeros({1});
      for (int i = 0; i < 3; ++i) {
        if (i != rank()) sum = sum + weights[static_cast<std::size_t>(i)].sum() * (rank() + 1);
      }
      sum.sum().backward();
      optimizer.step();
      for (int i = 0; i < 3; ++i) {
        findings.expect_equal(weights[static_cast<std::size_t>(i)].detach(),
                              torch::full({2}, -(6.0 - (i + 1))),
                              "a parameter that a rank misses");
      }
    }
  });
}

TEST(DistributedOptimizer, LetsTheProgramChangeTheReducedGradients) {
  std::vector<std::string> warnings;  // of the rank
  on_processes(
      2,
      [&](Findings& findings) {
        const Weight weight;
        auto optimizer = weight.optimizer();
        weight.backward(rank() + 1);
        findings.expect_error(
            ErrorKind::kUsage,
            "optimizer.zero_grad() was called after loss.backward()",
            [&] { optimizer.zero_grad(); },
            "zero_grad");
        optimizer.synchronize();
        weight.w.mutable_grad().mul_(10);
        {
          const auto skip = optimizer.skip_synchronize();
          optimizer.step();
        }
        findings.expect_equal(weight.w.detach(), torch::full({2}, -15.0), "after the step");
        // A step that is left out.
        optimizer.zero_grad();
        weight.backward(1);
        optimizer.synchronize();
        optimizer.zero_grad();
        weight.backward(1);
        findings.expect(warnings.empty(), "a warning");
        optimizer.step();
        findings.expect_equal(weight.w.detach(), torch::full({2}, -16.0), "after a skipped step");
        // A second reduction.
        optimizer.zero_grad(/*set_to_none=*/false);
        weight.backward(1);
        optimizer.synchronize();
        warnings.clear();
        optimizer.step();
        findings.expect(
            warnings.size() == 1 && warnings[0].starts_with("optimizer.step() called without"),
            "no warning");
      },
      {.report = [&](std::string_view warning) { warnings.emplace_back(warning); }});
}

TEST(DistributedOptimizer, CallsAClosureBeforeItReducesTheGradients) {
  on_processes(2, [](Findings& findings) {
    const Weight weight;
    auto optimizer = weight.optimizer();
    const Tensor loss = optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor value = (weight.w * (rank() + 1)).sum() + 7;
      value.backward();
      return value;
    });
    findings.expect_equal(loss.detach(), torch::tensor(7.0), "the loss");
    findings.expect_equal(weight.w.detach(), torch::full({2}, -1.5), "the weight");
  });
}

TEST(DistributedOptimizer, KeepsTheStateOfTheOptimizerAndObeysSchedulers) {
  on_processes(2, [](Findings& findings) {
    const Weight weight, alone;
    torch::optim::SGD plain({weight.w}, torch::optim::SGDOptions(1.0).momentum(0.5));
    torch::optim::SGD reference({alone.w}, torch::optim::SGDOptions(1.0).momentum(0.5));
    const auto step = [](const Weight& of, auto& optimizer) {
      optimizer.zero_grad();
      of.backward(1);
      optimizer.step();
    };
    step(weight, plain);
    DistributedOptimizer optimizer(std::move(plain));
    torch::optim::StepLR scheduler(optimizer, 1, 0.1);
    scheduler.step();  // the first call changes nothing
    scheduler.step();
    step(weight, optimizer);
    step(alone, reference);
    static_cast<torch::optim::SGDOptions&>(reference.param_groups()[0].options()).lr(0.1);
    step(alone, reference);
    findings.expect_close(weight.w.detach(), alone.w.detach(), 1e-6, "the weight");
  });
}

TEST(DistributedOptimizer, ReducesSparseGradients) {
  on_processes(2, [](Findings& findings) {
    for (const auto form : {DistributedOptions::SparseGradients::kSparse,
                            DistributedOptions::SparseGradients::kAsDense}) {
      torch::nn::Embedding embedding(
          torch::nn::EmbeddingOptions(4, 2).sparse(true)._weight(torch::zeros({4, 2})));
      DistributedOptimizer optimizer(torch::optim::SGD(embedding->parameters(), 1.0),
                                     embedding->named_parameters(),
                                     {.op = Sum, .sparse_gradients = form});
      embedding(torch::tensor({0, rank() + 1})).sum().backward();
      optimizer.synchronize();
      findings.expect(embedding->weight.grad().is_sparse(), "the gradient is dense");
      findings.expect_equal(embedding->weight.grad().to_dense(),
                            torch::tensor({{2.0, 2.0}, {1.0, 1.0}, {1.0, 1.0}, {0.0, 0.0}}),
                            "the gradient");
    }
  });
}

TEST(DistributedOptimizer, WithAdasumCombinesTheStepsOfTheRanks) {
  on_processes(2, [](Findings& findings) {
    const Weight weight(5);
    auto optimizer = weight.optimizer({.op = Adasum});
    // Orthogonal steps are added.
    (weight.w * torch::tensor({rank() == 0 ? 1.0 : 0.0, rank() == 1 ? 2.0 : 0.0})).sum().backward();
    optimizer.synchronize();
    optimizer.step();
    findings.expect_equal(weight.w.detach(), torch::tensor({4.0, 3.0}), "orthogonal");
    // Equal steps are averaged.
    optimizer.zero_grad();
    weight.backward(1);
    optimizer.step();
    findings.expect_close(weight.w.detach(), torch::tensor({3.0, 2.0}), 1e-6, "equal");
    findings.expect_error(
        ErrorKind::kUsage,
        "Skipping synchronization is not supported",
        [&] { static_cast<void>(optimizer.skip_synchronize()); },
        "skip_synchronize");
  });
}

/// W * x, with a W of 36 KiB: large enough to be computed in its place.
struct Matrix {
  Matrix()
      : optimizer(torch::optim::SGD({w}, 1.0)), kept_input(torch::full({kWidth}, rank() + 1.0)) {}
  /// The gradient of W.
  Tensor step() {
    optimizer.zero_grad();
    torch::mv(w, kept_input).sum().backward();
    optimizer.step();
    return w.grad();
  }
  static constexpr std::int64_t kWidth = 96;
  Tensor w = torch::zeros({kWidth, kWidth}, torch::requires_grad());
  DistributedOptimizer<torch::optim::SGD> optimizer;
  Tensor kept_input;
};

TEST(DistributedOptimizer, ComputesAGradientInTheSameMemoryInEachStep) {
  on_processes(2, [](Findings& findings) {
    Matrix matrix;
    const void* const place = matrix.step().data_ptr();
    for (int i = 0; i < 3; ++i) {
      matrix.optimizer.zero_grad();
      const Tensor other = torch::empty_like(matrix.w);  // would get the memory of a freed gradient
      findings.expect(matrix.step().data_ptr() == place, "the gradient has moved");
    }
    findings.expect_equal(matrix.w.detach(), torch::full_like(matrix.w, -6.0), "the sum of steps");
  });
}

TEST(DistributedOptimizer, DoesNotOverwriteAGradientThatTheProgramKeeps) {
  on_processes(2, [](Findings& findings) {
    const auto check = [&](const std::string& what, const auto& keep) {
      Matrix matrix;
      const void* const place = matrix.step().data_ptr();
      {
        const Tensor kept = keep(matrix.w.grad());
        const Tensor copy = kept.clone();
        matrix.kept_input.mul_(3);
        findings.expect_equal(matrix.step(), torch::full_like(matrix.w, 4.5), what + ", then");
        findings.expect_equal(kept, copy, what);
      }
      findings.expect(matrix.step().data_ptr() == place, what + ": the place is lost");
    };
    check("the gradient", [](const Tensor& gradient) { return gradient; });
    check("a view", [](const Tensor& gradient) { return gradient.flatten(); });
    check("an alias", [](const Tensor& gradient) { return gradient.detach(); });
  });
}

TEST(DistributedOptimizer, RejectsWrongOptionsAndUnnamedParameters) {
  on_processes(2, [](Findings& findings) {
    const Weight weight;
    const auto expect_usage = [&](const std::string& part, const DistributedOptions& options) {
      findings.expect_error(
          ErrorKind::kUsage, part, [&] { weight.optimizer(options); }, part);
    };
    expect_usage("backward_passes_per_step must be > 0", {.backward_passes_per_step = 0});
    expect_usage("gradient_predivide_factor not supported with op != Average",
                 {.op = Sum, .gradient_predivide_factor = 2.0});
    expect_usage("A parameter can only appear once in groups.", {.groups = {{weight.w, weight.w}}});
    expect_usage("not a parameter of the optimizer", {.groups = {{torch::ones({1})}}});
    NamedTensors named;
    named.insert("other", torch::ones({1}));
    findings.expect_error(
        ErrorKind::kUsage,
        "one or more model parameters were not named",
        [&] { DistributedOptimizer(torch::optim::SGD({weight.w}, 1.0), named); },
        "names");
  });
}

}  // namespace
}  // namespace peal::hvd
