#include "peal/group/call.h"

#include <array>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/group/testing/idle_backend.h"

namespace peal {
namespace {

using ::testing::HasSubstr;

using testing::everything;

/// Divides the values into neighbouring buffers of `each` elements.
std::vector<Buffer> cut(std::vector<float>& values, std::size_t each) {
  std::vector<Buffer> blocks;
  for (std::size_t begin = 0; begin < values.size(); begin += each) {
    blocks.emplace_back(std::span(values).subspan(begin, each));
  }
  return blocks;
}

class CallTest : public ::testing::Test {
 protected:
  /// Rank 1 of 3 rejects the call with a reason that contains `why`.
  template <class Make>
  void expect_refused(ErrorKind kind, const std::string& why, Make make) {
    Call call(1, 3, capabilities_);
    try {
      make(call);
      FAIL() << "accepted, expected \"" << why << "\"";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }

  Capabilities capabilities_ = everything();
  std::vector<float> three_ = std::vector<float>(3);
  std::vector<float> nine_ = std::vector<float>(9);
};

TEST_F(CallTest, ARanksBlockOfTheLargeBufferIsInPlace) {
  Call call(1, 3, capabilities_);
  call.all_gather(Buffer(std::span(nine_).subspan(3, 3)), nine_);
  EXPECT_TRUE(call.request().in_place);
  EXPECT_EQ(call.request().count, Elements(3));

  Call apart(1, 3, capabilities_);
  apart.all_gather(three_, nine_);
  EXPECT_FALSE(apart.request().in_place);
}

TEST_F(CallTest, EqualCountsMeanTheSameAsNoCounts) {
  Call call(1, 3, capabilities_);
  const std::vector<Elements> alike(3, Elements(3));
  call.reduce_scatter(nine_, three_, ReduceOp::kSum, alike);
  EXPECT_TRUE(call.request().counts.empty());

  Call uneven(1, 3, capabilities_);
  const std::vector<Elements> counts = {Elements(4), Elements(3), Elements(2)};
  uneven.reduce_scatter(nine_, three_, ReduceOp::kSum, counts);
  EXPECT_EQ(uneven.request().counts.size(), 3U);
}

TEST_F(CallTest, RejectsAnyOtherOverlap) {
  expect_refused(ErrorKind::kUsage, "overlap", [&](Call& call) {
    call.all_gather(Buffer(std::span(nine_).subspan(2, 3)), nine_);
  });
  expect_refused(
      ErrorKind::kUsage, "overlap", [&](Call& call) { call.all_to_all(Buffer(nine_), nine_); });
}

TEST_F(CallTest, AListMayHaveThisRanksBlockInPlace) {
  const std::vector<Buffer> blocks = cut(nine_, 3);
  const std::vector<ConstBuffer> inputs(blocks.begin(), blocks.end());
  const std::vector<std::function<void(Call&)>> calls = {
      [&](Call& call) { call.scatter(inputs, blocks[1], 1); },
      [&](Call& call) { call.gather(inputs[1], blocks, 1); },
      [&](Call& call) { call.all_gather(inputs[1], blocks); },
      [&](Call& call) { call.reduce_scatter(inputs, blocks[1], ReduceOp::kSum); }};
  for (const auto& make : calls) {
    Call call(1, 3, capabilities_);
    make(call);
    EXPECT_TRUE(call.request().in_place) << name_of(call.request().operation);
  }
}

TEST_F(CallTest, InAListAllBuffersAreInPlaceOrNone) {
  std::vector<float> other(9);
  const std::vector<Buffer> large = {nine_, other};
  const std::vector<ConstBuffer> inputs(large.begin(), large.end());
  const std::vector<Buffer> own = {cut(nine_, 3)[1], cut(other, 3)[1]};
  const std::vector<ConstBuffer> own_inputs(own.begin(), own.end());
  Call gather(1, 3, capabilities_);
  gather.all_gather(own_inputs, large);
  EXPECT_TRUE(gather.request().in_place);
  Call scatter(1, 3, capabilities_);
  scatter.reduce_scatter(inputs, own, ReduceOp::kSum);
  EXPECT_TRUE(scatter.request().in_place);

  expect_refused(ErrorKind::kUsage, "overlaps", [&](Call& call) {
    call.all_gather({own[0], three_}, large);
  });
  expect_refused(ErrorKind::kUsage, "overlaps", [&](Call& call) {
    call.reduce_scatter(inputs, {three_, own[1]}, ReduceOp::kSum);
  });
}

TEST_F(CallTest, RejectsAnyOtherOverlapInAList) {
  const std::vector<Buffer> blocks = cut(nine_, 3);
  const std::vector<ConstBuffer> inputs(blocks.begin(), blocks.end());
  std::vector<float> others(9);
  const std::vector<Buffer> apart = cut(others, 3);
  const Buffer shifted = std::span(nine_).subspan(2, 3);  // of blocks 0 and 1
  const std::vector<std::function<void(Call&)>> calls = {
      [&](Call& call) { call.scatter(inputs, blocks[2], 1); },
      [&](Call& call) { call.scatter(inputs, shifted, 1); },
      [&](Call& call) { call.gather(inputs[0], blocks, 1); },
      [&](Call& call) { call.gather(shifted, blocks, 1); },
      [&](Call& call) { call.all_gather(inputs[2], blocks); },
      [&](Call& call) { call.all_gather(shifted, blocks); },
      [&](Call& call) { call.reduce_scatter(inputs, blocks[0], ReduceOp::kSum); },
      [&](Call& call) { call.reduce_scatter(inputs, shifted, ReduceOp::kSum); },
      [&](Call& call) { call.all_to_all(inputs, blocks); },
      [&](Call& call) {
        call.all_to_all(inputs, std::vector<Buffer>{apart[0], apart[1], shifted});
      },
      [&](Call& call) {
        call.all_gather({three_, three_}, {nine_, nine_});
      },
      [&](Call& call) {
        call.reduce_scatter({nine_, others}, {three_, shifted}, ReduceOp::kSum);
      }};
  for (const auto& make : calls) expect_refused(ErrorKind::kUsage, "overlaps", make);
}

TEST_F(CallTest, RejectsOutputsOfAListThatOverlap) {
  const std::vector<Buffer> twice = {three_, cut(nine_, 3)[0], three_};
  std::vector<float> others(9);
  const std::vector<Buffer> apart = cut(others, 3);
  const std::vector<ConstBuffer> inputs(apart.begin(), apart.end());
  const std::vector<std::function<void(Call&)>> calls = {
      [&](Call& call) { call.gather(inputs[1], twice, 1); },
      [&](Call& call) { call.all_gather(inputs[1], twice); },
      [&](Call& call) { call.all_to_all(inputs, twice); },
      [&](Call& call) { call.all_reduce(twice, ReduceOp::kSum); },
      [&](Call& call) { call.reduce(twice, 0, ReduceOp::kSum); }};
  for (const auto& make : calls) expect_refused(ErrorKind::kUsage, "overlaps", make);
}

TEST_F(CallTest, BuffersOfABroadcastMayOverlap) {
  Call call(1, 3, capabilities_);
  call.broadcast(std::vector<Buffer>{three_, nine_, three_}, 0);
  EXPECT_EQ(call.request().output.size(), 3U);
}

TEST_F(CallTest, InputsMayOverlapAndEmptyBuffersMayLieAnywhere) {
  std::vector<float> others(9);
  const std::vector<Buffer> apart = cut(others, 3);
  Call same_input(1, 3, capabilities_);
  same_input.all_to_all(std::vector<ConstBuffer>(3, three_), apart);
  EXPECT_FALSE(same_input.request().in_place);

  const Buffer empty = std::span(others).subspan(4, 0);
  Call nothing(1, 3, capabilities_);
  nothing.all_to_all(std::vector<ConstBuffer>{three_, empty, three_},
                     std::vector<Buffer>{apart[0], empty, apart[1]},
                     {},
                     {});
  EXPECT_FALSE(nothing.request().in_place);
}

TEST_F(CallTest, ErrorsOfWrongSizesSayWhatIsExpected) {
  expect_refused(ErrorKind::kUsage, "holds 9 elements, expected 27", [&](Call& call) {
    call.all_gather(nine_, nine_);
  });
  expect_refused(ErrorKind::kUsage, "equal blocks", [&](Call& call) {
    std::vector<float> four(4);
    std::vector<float> other(4);
    call.all_to_all(four, other);
  });
  expect_refused(ErrorKind::kUsage, "2 counts for 3 ranks", [&](Call& call) {
    const std::vector<Elements> counts(2, Elements(3));
    call.gather(three_, nine_, 0, counts);
  });
  expect_refused(ErrorKind::kUsage, "buffers for 3 ranks", [&](Call& call) {
    const std::vector<Buffer> out = {three_};
    call.all_gather(three_, out);
  });
  expect_refused(ErrorKind::kUsage, "both directions", [&](Call& call) {
    const std::vector<Elements> counts(3, Elements(3));
    std::vector<float> other(9);
    call.all_to_all(nine_, other, counts);
  });
  expect_refused(ErrorKind::kUsage, "null pointer", [&](Call& call) {
    call.recv(Buffer(nullptr, Elements(3), DType::kF32), 0);
  });
  expect_refused(ErrorKind::kUsage, "a count of -1", [&](Call& call) {
    call.recv(Buffer(three_.data(), Elements(-1), DType::kF32), 0);
  });
}

TEST_F(CallTest, RejectsFormsThatDoNotMatch) {
  const std::vector<Buffer> blocks = cut(nine_, 3);
  const std::vector<Elements> counts(3, Elements(3));
  expect_refused(ErrorKind::kUsage, "the output must be a list too", [&](Call& call) {
    call.all_gather({three_}, nine_);
  });
  expect_refused(ErrorKind::kUsage, "the input must be a list too", [&](Call& call) {
    call.reduce_scatter(nine_, {three_}, ReduceOp::kSum);
  });
  expect_refused(
      ErrorKind::kUsage, "both be lists", [&](Call& call) { call.all_to_all(nine_, blocks); });
  expect_refused(ErrorKind::kUsage, "the buffers of a list are the blocks", [&](Call& call) {
    call.gather(three_, blocks, 1, counts);
  });
}

TEST_F(CallTest, RejectsDifferentAndUnknownTypes) {
  std::vector<double> doubles(9);
  expect_refused(ErrorKind::kUsage, "different types, f32 and f64", [&](Call& call) {
    call.all_gather(three_, doubles);
  });
  capabilities_.dtypes = EnumSet<DType>::of(std::array{DType::kF64});
  expect_refused(ErrorKind::kUnsupported, "does not know the type f32", [&](Call& call) {
    call.send(three_, 0);
  });
}

TEST_F(CallTest, UnsupportedErrorsNameOperatorAndType) {
  const Buffer data = three_;
  expect_refused(ErrorKind::kUnsupported, "bxor has no meaning for f32", [&](Call& call) {
    call.all_reduce({&data, 1}, ReduceOp::kBxor);
  });
}

TEST_F(CallTest, RejectsRanksAndTagsOutsideTheirRange) {
  expect_refused(ErrorKind::kUsage, "ranks are 0 to 2", [&](Call& call) { call.send(three_, 3); });
  expect_refused(ErrorKind::kUsage, "ranks are 0 to 2", [&](Call& call) { call.recv(three_, -2); });
  expect_refused(ErrorKind::kUsage, "negative", [&](Call& call) { call.send(three_, 0, Tag{-1}); });
  const Buffer data = three_;
  expect_refused(ErrorKind::kUsage, "rank 7", [&](Call& call) { call.broadcast({&data, 1}, 7); });
}

TEST_F(CallTest, AnOperationThatTheBackendLacksIsUnsupported) {
  capabilities_.operations = EnumSet<Operation>::of(std::array{Operation::kBarrier});
  expect_refused(ErrorKind::kUnsupported, "the test backend cannot do it", [&](Call& call) {
    call.send(three_, 0);
  });
}

}  // namespace
}  // namespace peal
