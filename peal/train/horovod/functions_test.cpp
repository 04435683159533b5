#include "peal/train/horovod/functions.h"

#include "peal/train/horovod/sync_batch_norm.h"
#include "peal/train/horovod/testing/processes.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::hvd {
namespace {

using testing::Findings;
using testing::on_processes;

TEST(BroadcastParameters, GivesAllRanksTheParametersAndBuffersOfTheRoot) {
  on_processes(3, [](Findings& findings) {
    torch::nn::BatchNorm1d norm(2);
    const torch::NoGradGuard no_grad;
    norm->weight.fill_(rank());
    norm->running_mean.fill_(rank() + 10);
    broadcast_parameters(*norm, 2);
    findings.expect_equal(norm->weight, torch::full({2}, 2.0), "the weight");
    findings.expect_equal(norm->running_mean, torch::full({2}, 12.0), "the running mean");
  });
}

template <class Optimizer>
void check_state(Findings& findings, const char* what, Optimizer make(const Tensors&, double lr)) {
  const auto parameters = [] {
    return Tensors{torch::ones({2, 3}, torch::requires_grad()),
                   torch::ones({4}, torch::requires_grad())};
  };
  const auto train = [](const Tensors& of, torch::optim::Optimizer& optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer.zero_grad();
      (of[0].square().sum() + of[1].sum()).backward();
      optimizer.step();
    }
  };
  // Every rank knows what the root has.
  const Tensors of_root = parameters();
  Optimizer root = make(of_root, 0.5);
  train(of_root, root, 3);

  const Tensors mine = parameters();
  Optimizer optimizer = make(mine, rank() == 1 ? 0.5 : 0.25);
  train(mine, optimizer, rank() == 1 ? 3 : rank());  // rank 0 has no state
  Tensors before;
  for (const Tensor& tensor : mine) before.push_back(tensor.detach().clone());
  for (const Tensor& tensor : mine) tensor.mutable_grad() = Tensor();

  broadcast_optimizer_state(optimizer, 1);

  const auto state_of = [](const Tensors& of, const torch::optim::Optimizer& from) {
    train::NamedParameters named;
    for (std::size_t i = 0; i < of.size(); ++i) named.insert(std::to_string(i), of[i]);
    return train::read_optimizer_state(from, named);
  };
  const train::OptimizerState actual = state_of(mine, optimizer), wanted = state_of(of_root, root);
  findings.expect(actual.groups[0].options == wanted.groups[0].options, "the options");
  findings.expect(actual.parameters.size() == 2, "parameters without a state");
  for (const auto& [name, fields] : wanted.parameters) {
    for (const auto& [field, tensor] : fields) {
      findings.expect_equal(actual.parameters.at(name).at(field), tensor, what + (" " + field));
    }
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
    findings.expect_equal(mine[i].detach(), before[i], "a parameter has changed");
    findings.expect_equal(mine[i].grad(), torch::zeros_like(mine[i]), "the gradient");
  }
}

TEST(BroadcastOptimizerState, MovesTheStateWithoutAStep) {
  on_processes(2, [](Findings& findings) {
    check_state<torch::optim::SGD>(findings, "SGD", [](const Tensors& of, double lr) {
      return torch::optim::SGD(of, torch::optim::SGDOptions(lr).momentum(0.9).weight_decay(0.1));
    });
    check_state<torch::optim::Adam>(findings, "Adam", [](const Tensors& of, double lr) {
      return torch::optim::Adam(of, torch::optim::AdamOptions(lr).weight_decay(0.1));
    });
    check_state<torch::optim::Adagrad>(findings, "Adagrad", [](const Tensors& of, double lr) {
      return torch::optim::Adagrad(of, torch::optim::AdagradOptions(lr));
    });
    check_state<torch::optim::RMSprop>(findings, "RMSprop", [](const Tensors& of, double lr) {
      return torch::optim::RMSprop(of, torch::optim::RMSpropOptions(lr).centered(true));
    });
    torch::optim::LBFGS lbfgs({torch::ones({1}, torch::requires_grad())});
    findings.expect_error(
        ErrorKind::kUnsupported, "LBFGS", [&] { broadcast_optimizer_state(lbfgs, 0); }, "LBFGS");
  });
}

TEST(BroadcastValue, GivesAllRanksTheValueOfTheRoot) {
  on_processes(3, [](Findings& findings) {
    struct Point {
      int x;
      double y;
    };
    const Point point = broadcast_value(Point{rank(), rank() / 2.0}, 1);
    findings.expect(point.x == 1 && point.y == 0.5, "the point");
    const std::string text(static_cast<std::size_t>(rank()), 'a');
    findings.expect(broadcast_bytes(text, 2, {.name = "text"}) == "aa", "the text");
    findings.expect(broadcast_bytes(text, 0).empty(), "the empty text");
    findings.expect(allgather_bytes(text) == std::vector<std::string>{"", "a", "aa"}, "all texts");
  });
}

TEST(SyncBatchNorm, NormalizesByTheBatchesOfAllRanks) {
  on_processes(2, [](Findings& findings) {
    torch::manual_seed(1);
    const Tensor all = torch::randn({5, 3});
    const Tensor mine = (rank() == 0 ? all.narrow(0, 0, 2) : all.narrow(0, 2, 3)).clone();
    auto norm = SyncBatchNorm(torch::nn::BatchNormOptions(3));
    torch::nn::BatchNorm1d alone(3);
    const Tensor wanted = alone(all.clone());
    findings.expect_close(norm->forward(mine),
                          rank() == 0 ? wanted.narrow(0, 0, 2) : wanted.narrow(0, 2, 3),
                          1e-5,
                          "the output");
    findings.expect_close(norm->running_var, alone->running_var, 1e-5, "the running variance");
  });
}

}  // namespace
}  // namespace peal::hvd
