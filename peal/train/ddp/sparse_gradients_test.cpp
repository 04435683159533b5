#include "peal/train/ddp/sparse_gradients.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::on_ranks;
using torch::Tensor;

/// An embedding with sparse gradients, and a dense layer.
struct Words : torch::nn::Module {
  explicit Words(bool sparse = true)
      : embedding(torch::nn::EmbeddingOptions(6, 2).sparse(sparse)), out(2, 1) {
    register_module("embedding", embedding);
    register_module("out", out);
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) {
      parameter.copy_(torch::arange(parameter.numel()).view(parameter.sizes()) * 0.1);
    }
  }
  Tensor forward(const Tensor& words) { return out(embedding(words)); }
  torch::nn::Embedding embedding;
  torch::nn::Linear out;
};

/// Words of each rank; they overlap, and one rank repeats a word.
Tensor words(Rank rank) { return torch::tensor({rank, rank + 1, rank + 1}); }

class SparseGradients : public ::testing::TestWithParam<Average> {};

TEST_P(SparseGradients, AreAveragedLikeDenseGradients) {
  for (const int ranks : {1, 2, 3}) {
    const auto run = [&](bool sparse) {
      return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
        DistributedDataParallel model(
            std::make_shared<Words>(sparse), group, {.average = GetParam()});
        std::vector<Tensor> seen;
        for (int step = 0; step < 5; ++step) {
          if (step != 2) model->zero_grad();  // step 2 adds to the gradient of step 1
          const bool all_use_it = step != 3;  // in step 3 only rank 0 uses the embedding
          Tensor loss = all_use_it || group->rank() == 0 ? model.forward(words(group->rank())).sum()
                                                         : model->out(torch::ones({1, 2})).sum();
          loss.backward();
          const Tensor gradient = model->embedding->weight.grad();
          seen.push_back(gradient.is_sparse() ? gradient.to_dense() : gradient.clone());
          seen.push_back(model->out->weight.grad().clone());
        }
        return seen;
      });
    };
    const auto sparse = run(true), dense = run(false);
    for (std::size_t rank = 0; rank < sparse.size(); ++rank) {
      for (std::size_t i = 0; i < sparse[rank].size(); ++i) {
        EXPECT_TRUE(sparse[rank][i].equal(sparse[0][i])) << "ranks differ in " << i;
        EXPECT_TRUE(sparse[rank][i].allclose(dense[rank][i], 1e-5, 1e-6)) << ranks << ' ' << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Averages,
                         SparseGradients,
                         ::testing::Values(Average::kMean, Average::kSum, Average::kBySamples));

TEST(SparseGradientsTest, TheGradientStaysSparseAndCoalesced) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(std::make_shared<Words>(), group);
    std::vector<bool> right;
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      model.forward(words(group->rank())).sum().backward();
      const Tensor& gradient = model->embedding->weight.grad();
      right.push_back(gradient.is_sparse() && gradient.is_coalesced() && gradient._nnz() == 3);
    }
    return right;
  });
  EXPECT_THAT(results, Each(Each(true)));
}

/// Three embeddings, of which the first is registered last, and so has the first bucket.
struct Many : torch::nn::Module {
  explicit Many(bool sparse) {
    for (int i = 0; i < 3; ++i) {
      tables.push_back(
          register_module("table" + std::to_string(i),
                          torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 2).sparse(sparse))));
    }
    register_module("out", out);
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : parameters()) parameter.fill_(0.5);
  }
  Tensor forward(const Tensor& rows) {
    Tensor sum = tables[0](rows);
    for (std::size_t i = 1; i < 3; ++i) sum = sum + tables[i](rows) * static_cast<double>(i + 1);
    return out(sum);
  }
  std::vector<torch::nn::Embedding> tables;
  torch::nn::Linear out{2, 1};
};

TEST(SparseGradientsTest, SeveralSparseParametersAreAveragedAlsoWithoutZeroing) {
  for (const bool zeroes : {true, false}) {
    const auto run = [&](bool sparse) {
      return on_ranks(2, [&](const ProcessGroupPtr& group) {
        DistributedDataParallel model(
            std::make_shared<Many>(sparse), group, {.bucket_cap = 1_B, .first_bucket_cap = 1_B});
        std::vector<Tensor> seen;
        for (int step = 0; step < 4; ++step) {
          if (zeroes) model->zero_grad();
          model.forward(torch::tensor({group->rank(), group->rank() + 1})).sum().backward();
          for (const Tensor& parameter : model->parameters()) {
            const Tensor gradient = parameter.grad();
            seen.push_back(gradient.is_sparse() ? gradient.to_dense() : gradient.clone());
          }
        }
        return seen;
      });
    };
    const auto sparse = run(true), dense = run(false);
    for (std::size_t i = 0; i < dense[0].size(); ++i) {
      EXPECT_TRUE(sparse[0][i].equal(sparse[1][i])) << i;
      EXPECT_TRUE(sparse[0][i].allclose(dense[0][i])) << i;
    }
  }
}

TEST(SparseGradientsTest, AGradientThatBecomesDenseIsAveraged) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(std::make_shared<Words>(), group);
    for (int step = 0; step < 2; ++step) {
      model->zero_grad();
      model.forward(words(group->rank())).sum().backward();
    }
    model->embedding->options.sparse(false);
    model->zero_grad();
    (model->embedding->weight * (group->rank() + 1.0)).sum().backward();
    return model->embedding->weight.grad().equal(torch::full({6, 2}, 1.5));
  });
  EXPECT_THAT(results, Each(true));
}

}  // namespace
}  // namespace peal::train
