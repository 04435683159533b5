#include "peal/train/nn/convert_sync_batch_norm.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;
using torch::Tensor;

torch::nn::Sequential small_sequential() {
  return torch::nn::Sequential(torch::nn::Linear(4, 6),
                               torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(6).eps(0.01)),
                               torch::nn::ReLU(),
                               torch::nn::BatchNorm1d(6));
}

/// A Sequential in a Sequential needs a forward that is not a template.
struct BlockImpl : torch::nn::SequentialImpl {
  using SequentialImpl::SequentialImpl;
  Tensor forward(Tensor x) { return SequentialImpl::forward(x); }
};
TORCH_MODULE(Block);

struct MemberNet : torch::nn::Module {
  MemberNet() {
    register_module("first", first);
    register_module("second", second);
    register_module("rest", rest);
  }
  torch::nn::BatchNorm2d first{3};
  SyncBatchNorm second{3};
  torch::nn::Sequential rest = small_sequential();
};

class HalvingBatchNormImpl : public torch::nn::BatchNorm1dImpl {
 public:
  using BatchNorm1dImpl::BatchNorm1dImpl;
  Tensor forward(const Tensor& x) { return BatchNorm1dImpl::forward(x) / 2; }
};
TORCH_MODULE(HalvingBatchNorm);

TEST(ConvertSyncBatchNormTest, ReplacesTheElementsOfASequentialAndKeepsTheirTensors) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Sequential net = small_sequential();
    net->ptr(3)->eval();
    const std::vector<Tensor> before = net->parameters();
    const auto keys = net->named_parameters().keys();
    EXPECT_EQ(convert_sync_batch_norm(*net, group), 2u);

    const std::vector<Tensor> after = net->parameters();
    EXPECT_EQ(net->named_parameters().keys(), keys);
    EXPECT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].is_same(before[i])) << i;
    const auto norm = std::dynamic_pointer_cast<SyncBatchNormImpl>(net->ptr(1));
    EXPECT_TRUE(norm);
    EXPECT_EQ(norm->group(), group);
    EXPECT_EQ(norm->options.eps(), 0.01);
    EXPECT_TRUE(norm->is_training());
    EXPECT_FALSE(net->ptr(3)->is_training());
    EXPECT_EQ(net->named_children()["1"], net->ptr(1)) << "child and element are the same";
    EXPECT_EQ(convert_sync_batch_norm(*net, group), 2u) << "converting again";
    return 0;
  });
}

TEST(ConvertSyncBatchNormTest, AConvertedSequentialNormalizesByAllRanks) {
  torch::manual_seed(3);
  torch::nn::Sequential alone = small_sequential();
  const Tensor batch = torch::randn({6, 4});
  const Tensor expected = alone->forward(batch);
  const auto outputs = on_ranks(2, [&](const ProcessGroupPtr& group) {
    torch::nn::Sequential net = small_sequential();
    {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < net->parameters().size(); ++i) {
        net->parameters()[i].copy_(alone->parameters()[i]);
      }
    }
    convert_sync_batch_norm(*net, group);
    return net->forward(batch.slice(0, group->rank() * 3, group->rank() * 3 + 3)).detach();
  });
  EXPECT_TRUE(torch::cat(outputs).allclose(expected, 1e-5, 1e-5));
}

TEST(ConvertSyncBatchNormTest, ASharedElementStaysShared) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    const torch::nn::BatchNorm1d shared(4);
    torch::nn::Sequential net(shared, torch::nn::ReLU(), Block(shared, shared));
    EXPECT_EQ(convert_sync_batch_norm(*net, group), 1u);
    const auto& block = net->at<BlockImpl>(2);
    EXPECT_TRUE(std::dynamic_pointer_cast<SyncBatchNormImpl>(net->ptr(0)));
    EXPECT_EQ(block.ptr(0), net->ptr(0));
    EXPECT_EQ(block.ptr(1), net->ptr(0));
    EXPECT_EQ(block.named_children()["1"], net->ptr(0));
    return 0;
  });
}

TEST(ConvertSyncBatchNormTest, AMemberCannotBeReplacedAndThenNothingChanges) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    MemberNet net;
    net.rest->push_back("halving", HalvingBatchNorm(6));
    EXPECT_THAT(thrown_text([&] { convert_sync_batch_norm(net, group); }),
                HasSubstr("unsupported: batch normalizations that are not elements of a Sequential "
                          "cannot be replaced: first, rest.halving; declare them as"));
    EXPECT_EQ(net.second->group(), nullptr);
    EXPECT_TRUE(std::dynamic_pointer_cast<torch::nn::BatchNorm1dImpl>(net.rest->ptr(1)));
    return 0;
  });
}

TEST(ConvertSyncBatchNormTest, AMemberOfTypeSyncBatchNormGetsTheGroup) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    struct Net : torch::nn::Module {
      Net() { register_module("norm", norm); }
      SyncBatchNorm norm{3};
    } net;
    EXPECT_EQ(convert_sync_batch_norm(net, group), 1u);
    EXPECT_EQ(net.norm->group(), group);
    EXPECT_EQ(convert_sync_batch_norm(*net.norm, nullptr), 1u);
    EXPECT_EQ(net.norm->group(), nullptr);
    torch::nn::BatchNorm2d alone(3);
    EXPECT_THAT(thrown_text([&] { convert_sync_batch_norm(*alone, group); }),
                HasSubstr("the module itself"));
    return 0;
  });
}

}  // namespace
}  // namespace peal::train
