#include "peal/train/tensors/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;

constexpr int kRanks = 3;

/// Memory layouts of a tensor, which must not change results.
enum class Layout { kContiguous, kTransposed, kWithGaps, kConjugated };
constexpr std::array kLayouts = {
    Layout::kContiguous, Layout::kTransposed, Layout::kWithGaps, Layout::kConjugated};

/// The same values in another layout.
Tensor laid_out(const Tensor& values, Layout layout) {
  switch (layout) {
    case Layout::kContiguous:
      return values.clone();
    case Layout::kTransposed:
      return values.t().contiguous().t();
    case Layout::kWithGaps:
      return torch::zeros({values.size(0), values.size(1) * 2}, values.options())
          .slice(1, 0, values.size(1) * 2, 2)
          .copy_(values);
    case Layout::kConjugated:
      return values.is_complex() ? values.conj().resolve_conj().conj() : values.clone();
  }
  return {};
}

/// Values that differ between ranks and between elements.
Tensor values_of(Rank rank, DType dtype = DType::kF32) {
  const Tensor values = torch::arange(6).view({2, 3}) + 10 * rank + 1;
  return values.to(scalar_type(dtype));
}

/// Runs body(group, layout) for every layout on all ranks; body returns whether all was right.
template <class Body>
void expect_right(Body&& body) {
  for (const Layout layout : kLayouts) {
    EXPECT_THAT(
        on_ranks(kRanks, [&](const ProcessGroupPtr& group) { return body(*group, layout); }),
        Each(true))
        << "layout " << static_cast<int>(layout);
  }
}

TEST(TensorsTest, BroadcastSendsTheRootsValuesOfEveryType) {
  for (const DType dtype : kAllDTypes) {
    const auto right = on_ranks(kRanks, [&](const ProcessGroupPtr& group) {
      bool all = true;
      for (const Layout layout : kLayouts) {
        const Tensor data = laid_out(values_of(group->rank(), dtype), layout);
        broadcast(*group, data, 1);
        all = all && data.equal(values_of(1, dtype));
      }
      return all;
    });
    EXPECT_THAT(right, Each(true)) << name_of(dtype);
  }
}

TEST(TensorsTest, AllReduceSumsInPlace) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const Tensor data = laid_out(values_of(group.rank()), layout);
    all_reduce(group, data);
    const WorkPtr work = all_reduce_async(group, data, {.op = ReduceOp::kAvg});
    work->wait();
    work->wait();  // a second wait is allowed
    return data.equal(values_of(0) + values_of(1) + values_of(2)) && work->is_completed() &&
           work->exception() == nullptr;
  });
}

TEST(TensorsTest, AListIsReducedAndBroadcastAsOne) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const Tensors list = {laid_out(values_of(group.rank()), layout), torch::ones({5})};
    all_reduce(group, list, {.op = ReduceOp::kMax});
    const bool reduced = list[0].equal(values_of(2)) && list[1].equal(torch::ones({5}));
    list[1].fill_(group.rank());
    broadcast_async(group, list, 2)->wait();
    const bool broadcast = list[1].equal(torch::full({5}, 2.0f));
    reduce(group, {list[0], list[1]}, 1);
    const float sum = group.rank() == 1 ? 2.0f * kRanks : 2.0f;
    return reduced && broadcast && list[1].equal(torch::full({5}, sum));
  });
}

TEST(TensorsTest, ReduceChangesTheRootOnly) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const Tensor data = laid_out(values_of(group.rank()), layout);
    reduce(group, data, 1);
    reduce_async(group, data, 0)->wait();
    const Tensor sum = values_of(0) + values_of(1) + values_of(2);
    if (group.rank() == 0) return data.equal(values_of(0) + sum + values_of(2));
    return data.equal(group.rank() == 1 ? sum : values_of(2));
  });
}

TEST(TensorsTest, AllGatherFillsAListOrOneTensor) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const Tensor in = laid_out(values_of(group.rank()), layout);
    const Tensor whole = laid_out(torch::zeros({2 * kRanks, 3}), layout);
    Tensors list;
    for (int r = 0; r < kRanks; ++r) list.push_back(laid_out(torch::zeros({2, 3}), layout));
    all_gather(group, in, list);
    all_gather_async(group, in, whole)->wait();
    const Tensor expected = torch::cat({values_of(0), values_of(1), values_of(2)});
    return torch::cat(list).equal(expected) && whole.equal(expected);
  });
}

TEST(TensorsTest, GatherInvertsScatter) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const bool root = group.rank() == 1;
    const Tensor mine = laid_out(torch::zeros({2, 3}), layout);
    Tensors from, to;
    for (int r = 0; root && r < kRanks; ++r) {
      from.push_back(laid_out(values_of(r), layout));
      to.push_back(laid_out(torch::zeros({2, 3}), layout));
    }
    scatter(group, from, mine, 1);
    gather(group, mine, to, 1);
    bool right =
        mine.equal(values_of(group.rank())) && (!root || torch::cat(to).equal(torch::cat(from)));
    mine.zero_();
    scatter_async(group, from, mine, 1)->wait();
    gather_async(group, mine, to, 1)->wait();
    return right && mine.equal(values_of(group.rank()));
  });
}

TEST(TensorsTest, GatherChangesTheRootOnly) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const Tensor before = torch::full({2 * kRanks, 3}, 7.0f);
    const Tensor out = laid_out(before, layout);
    gather(group, values_of(group.rank()), out, 1);
    gather_async(group, values_of(group.rank()), out, 1)->wait();
    const Tensor all = torch::cat({values_of(0), values_of(1), values_of(2)});
    return out.equal(group.rank() == 1 ? all : before);
  });
}

TEST(TensorsTest, ReduceScatterGivesEachRankItsBlockOfTheSum) {
  expect_right([](ProcessGroup& group, Layout layout) {
    Tensors list;
    for (int r = 0; r < kRanks; ++r) list.push_back(laid_out(values_of(r) * group.rank(), layout));
    const Tensor whole = laid_out(torch::cat(list), layout);
    const Tensor first = laid_out(torch::zeros({2, 3}), layout);
    const Tensor second = laid_out(torch::zeros({2, 3}), layout);
    reduce_scatter(group, list, first);
    reduce_scatter(group, whole, second);
    const Tensor expected = values_of(group.rank()) * (0 + 1 + 2);
    const bool right = first.equal(expected) && second.equal(expected);
    reduce_scatter_async(group, list, first, {.op = ReduceOp::kMax})->wait();
    reduce_scatter_async(group, whole, second, {.op = ReduceOp::kMax})->wait();
    return right && first.equal(values_of(group.rank()) * 2) && second.equal(first);
  });
}

TEST(TensorsTest, AllToAllTransposesBlocks) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const auto block = [](Rank from, Rank to) { return values_of(from) + 1000 * to; };
    Tensors in, out, expected;
    for (Rank r = 0; r < kRanks; ++r) {
      in.push_back(laid_out(block(group.rank(), r), layout));
      out.push_back(laid_out(torch::zeros({2, 3}), layout));
      expected.push_back(block(r, group.rank()));
    }
    all_to_all(group, in, out);
    bool right = torch::cat(out).equal(torch::cat(expected));
    const Tensor whole = laid_out(torch::zeros({2 * kRanks, 3}), layout);
    all_to_all(group, laid_out(torch::cat(in), layout), whole);
    right = right && whole.equal(torch::cat(expected));
    whole.zero_();
    all_to_all_async(group, torch::cat(in), whole)->wait();
    all_to_all_async(group, in, out)->wait();
    return right && whole.equal(torch::cat(expected)) && torch::cat(out).equal(whole);
  });
}

TEST(TensorsTest, SendAndReceiveInARing) {
  expect_right([](ProcessGroup& group, Layout layout) {
    const Rank next = (group.rank() + 1) % kRanks, previous = (group.rank() + 2) % kRanks;
    const Tensor out = laid_out(values_of(group.rank()), layout);
    const Tensor in = laid_out(torch::zeros({2, 3}), layout);
    const WorkPtr sent = isend(group, out, next, {.tag = Tag{3}});
    const WorkPtr received = irecv(group, in, previous, {.tag = Tag{3}});
    received->wait();
    sent->wait();
    bool right = in.equal(values_of(previous)) && received->source() == previous;
    in.zero_();
    if (group.rank() == 0) {
      for (int i = 1; i < kRanks; ++i) {
        const Rank from = recv(group, in, kAnySource, {.tag = Tag{4}});
        right = right && in.equal(values_of(from));
      }
    } else {
      send(group, out, 0, {.tag = Tag{4}});
    }
    return right;
  });
}

TEST(TensorsTest, TheReleaseOfAWorkWaitsForItsOperation) {
  const auto right = on_ranks(2, [](const ProcessGroupPtr& group) {
    const Tensor data = torch::full({100'000}, group->rank() + 1.0);
    all_reduce_async(*group, data);
    return data.equal(torch::full({100'000}, 3.0f));
  });
  EXPECT_THAT(right, Each(true));
}

TEST(TensorsTest, AutogradNoticesThatATensorWasWritten) {
  const auto errors = on_ranks(1, [](const ProcessGroupPtr& group) {
    const Tensor x = torch::ones({3}, torch::requires_grad());
    const Tensor y = x.exp();  // its backward needs y
    broadcast(*group, y.detach(), 0);
    return thrown_text([&] { y.sum().backward(); });
  });
  EXPECT_THAT(errors[0], HasSubstr("modified by an inplace operation"));
}

TEST(TensorsTest, BufferOfRejectsTensorsThatAreNotContiguous) {
  const Tensor data = torch::ones({2, 3});
  EXPECT_EQ(buffer_of(data).data, data.data_ptr());
  EXPECT_EQ(buffer_of(data).count, Elements(6));
  EXPECT_EQ(buffer_of(torch::empty({0})).count, Elements(0));
  EXPECT_THAT(thrown_text([&] { buffer_of(data.t()); }),
              AllOf(HasSubstr("usage"), HasSubstr(".contiguous()")));
}

TEST(TensorsTest, ErrorsOfRejectedTensorsSayWhatToDo) {
  EXPECT_THAT(thrown_text([] { buffer_of(Tensor()); }),
              AllOf(HasSubstr("usage"), HasSubstr("undefined")));
  EXPECT_THAT(thrown_text([] { buffer_of(torch::ones({2}, torch::kMeta)); }),
              AllOf(HasSubstr("usage"), HasSubstr("on the device meta")));
  EXPECT_THAT(thrown_text([] {
                buffer_of(torch::ones({2, 2}).to_sparse());
              }),
              AllOf(HasSubstr("unsupported"), HasSubstr(".to_dense()")));
  EXPECT_THAT(thrown_text([] { buffer_of(torch::zeros({2}, torch::kUInt16)); }),
              AllOf(HasSubstr("unsupported"), HasSubstr("UInt16")));
}

TEST(TensorsTest, TypesTranslateBothWays) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(element_type(scalar_type(dtype)), dtype);
    EXPECT_EQ(static_cast<std::int64_t>(torch::elementSize(scalar_type(dtype))),
              size_of(dtype).value);
  }
}

}  // namespace
}  // namespace peal::train
