#include "peal/group/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal {
namespace {

using ::testing::HasSubstr;

Capabilities everything() {
  Capabilities capabilities;
  capabilities.name = "test";
  capabilities.operations.assign(kAllCollectives.begin(), kAllCollectives.end());
  capabilities.operations.push_back(Operation::kSend);
  capabilities.operations.push_back(Operation::kRecv);
  capabilities.dtypes.assign(kAllDTypes.begin(), kAllDTypes.end());
  return capabilities;
}

class CallTest : public ::testing::Test {
 protected:
  /// Rank 1 of 3 refuses the call for a reason that contains `why`.
  template <class Make>
  void expect_refused(ErrorKind kind, const std::string& why, Make make) {
    Call call(1, 3, capabilities_);
    try {
      make(call);
      FAIL() << "accepted, where \"" << why << "\" was due";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }

  Capabilities capabilities_ = everything();
  std::vector<float> three_ = std::vector<float>(3);
  std::vector<float> nine_ = std::vector<float>(9);
};

TEST_F(CallTest, TheOwnBlockOfTheLargeBufferIsInPlace) {
  Call call(1, 3, capabilities_);
  call.all_gather(Buffer(std::span(nine_).subspan(3, 3)), nine_, {});
  EXPECT_TRUE(call.request().in_place);
  EXPECT_EQ(call.request().count, Elements(3));

  Call apart(1, 3, capabilities_);
  apart.all_gather(three_, nine_, {});
  EXPECT_FALSE(apart.request().in_place);
}

TEST_F(CallTest, CountsThatAreAllAlikeAreTakenForNone) {
  Call call(1, 3, capabilities_);
  const std::vector<Elements> alike(3, Elements(3));
  call.reduce_scatter(nine_, three_, ReduceOp::kSum, alike);
  EXPECT_TRUE(call.request().counts.empty());

  Call uneven(1, 3, capabilities_);
  const std::vector<Elements> counts = {Elements(4), Elements(3), Elements(2)};
  uneven.reduce_scatter(nine_, three_, ReduceOp::kSum, counts);
  EXPECT_EQ(uneven.request().counts.size(), 3U);
}

TEST_F(CallTest, OverlapInAnyOtherWayIsRefused) {
  expect_refused(ErrorKind::kUsage, "overlap", [&](Call& call) {
    call.all_gather(Buffer(std::span(nine_).subspan(2, 3)), nine_, {});
  });
  expect_refused(ErrorKind::kUsage, "overlap", [&](Call& call) {
    call.all_to_all(Buffer(nine_), nine_, {}, {});
  });
}

TEST_F(CallTest, SizesThatDoNotFitSayWhatIsDue) {
  expect_refused(ErrorKind::kUsage, "holds 9 elements where 27 are due", [&](Call& call) {
    call.all_gather(nine_, nine_, {});
  });
  expect_refused(ErrorKind::kUsage, "equal blocks", [&](Call& call) {
    std::vector<float> four(4);
    std::vector<float> other(4);
    call.all_to_all(four, other, {}, {});
  });
  expect_refused(ErrorKind::kUsage, "2 counts for 3 ranks", [&](Call& call) {
    const std::vector<Elements> counts(2, Elements(3));
    call.gather(three_, nine_, 0, counts);
  });
  expect_refused(ErrorKind::kUsage, "buffers for 3 ranks", [&](Call& call) {
    const std::vector<Buffer> out = {three_};
    call.all_gather_list(three_, out);
  });
  expect_refused(ErrorKind::kUsage, "both directions", [&](Call& call) {
    const std::vector<Elements> counts(3, Elements(3));
    std::vector<float> other(9);
    call.all_to_all(nine_, other, counts, {});
  });
  expect_refused(ErrorKind::kUsage, "null pointer", [&](Call& call) {
    call.recv(Buffer(nullptr, Elements(3), DType::kF32), 0, {});
  });
  expect_refused(ErrorKind::kUsage, "a count of -1", [&](Call& call) {
    call.recv(Buffer(three_.data(), Elements(-1), DType::kF32), 0, {});
  });
}

TEST_F(CallTest, TypesMustAgreeAndBeKnown) {
  std::vector<double> doubles(9);
  expect_refused(ErrorKind::kUsage, "different types, f32 and f64", [&](Call& call) {
    call.all_gather(three_, doubles, {});
  });
  capabilities_.dtypes = {DType::kF64};
  expect_refused(ErrorKind::kUnsupported, "does not know the type f32", [&](Call& call) {
    call.send(three_, 0, {});
  });
}

TEST_F(CallTest, AnOperatorWithoutAMeaningForTheTypeIsNamedWithIt) {
  const Buffer data = three_;
  expect_refused(ErrorKind::kUnsupported, "bxor has no meaning for f32", [&](Call& call) {
    call.all_reduce({&data, 1}, ReduceOp::kBxor);
  });
}

TEST_F(CallTest, RanksAndTagsOutsideTheirRangeAreRefused) {
  expect_refused(
      ErrorKind::kUsage, "ranks are 0 to 2", [&](Call& call) { call.send(three_, 3, {}); });
  expect_refused(
      ErrorKind::kUsage, "ranks are 0 to 2", [&](Call& call) { call.recv(three_, -2, {}); });
  expect_refused(ErrorKind::kUsage, "negative", [&](Call& call) { call.send(three_, 0, Tag{-1}); });
  const Buffer data = three_;
  expect_refused(ErrorKind::kUsage, "rank 7", [&](Call& call) { call.broadcast({&data, 1}, 7); });
}

TEST_F(CallTest, WhatTheBackendCannotDoIsUnsupported) {
  capabilities_.operations = {Operation::kBarrier};
  expect_refused(ErrorKind::kUnsupported, "the test backend cannot do it", [&](Call& call) {
    call.send(three_, 0, {});
  });
}

}  // namespace
}  // namespace peal
