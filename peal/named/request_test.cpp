#include "peal/named/request.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::named {
namespace {

using ::testing::HasSubstr;

Request sum_of(std::string name, std::initializer_list<std::int64_t> shape) {
  Request request;
  request.name = std::move(name);
  request.shape = shape;
  return request;
}

constexpr std::array<Rank, 3> kRanks = {4, 5, 7};

TEST(Request, SurvivesTheWire) {
  Request request = sum_of("allreduce.x", {2, 3});
  request.kind = Kind::kReduceScatter;
  request.dtype = DType::kBF16;
  request.reduction = Reduction::kMax;
  request.root = 2;
  request.prescale = 0.5;
  request.postscale = 3;
  request.group = "g";
  request.group_size = 2;
  request.detail = "ranks [0, 2]";
  request.remembered = false;
  ByteWriter out;
  write(request, out);
  ByteReader in(out.view(), "request");
  EXPECT_EQ(read_request(in), request);
  in.finish();
}

TEST(Request, EveryShorterMessageIsRefused) {
  ByteWriter out;
  write(sum_of("allreduce.x", {2, 3}), out);
  for (std::size_t size = 0; size < out.view().size(); ++size) {
    ByteReader in(out.view().substr(0, size), "request");
    EXPECT_THROW(read_request(in), Error) << size;
  }
}

TEST(Difference, NamesBothSidesAndTheirRanks) {
  const Request a = sum_of("allreduce.x", {2});
  Request b = a;
  b.dtype = DType::kF64;
  EXPECT_EQ(difference(std::array<const Request*, 3>{&a, &b, &a}, kRanks),
            "Mismatched data types of allreduce.x: ranks 4 and 7 have f32, but rank 5 has f64");
}

TEST(Difference, NamesThreeSides) {
  const Request a = sum_of("allreduce.x", {2}), b = sum_of("allreduce.x", {3}),
                c = sum_of("allreduce.x", {4});
  EXPECT_EQ(difference(std::array<const Request*, 3>{&a, &b, &c}, kRanks),
            "Mismatched shapes of allreduce.x: rank 4 has [2], rank 5 has [3], and rank 7 has [4]");
}

TEST(Request, IsDescribedByItsKindAndName) {
  EXPECT_EQ(describe(sum_of("allreduce.layer.0", {})), "allreduce \"layer.0\"");
  EXPECT_EQ(describe(sum_of("grouped_allreduce.x_1of2", {})), "grouped_allreduce \"x_1of2\"");
  EXPECT_EQ(describe(sum_of("layer.0", {})), "allreduce \"layer.0\"");
  EXPECT_EQ(describe(sum_of("x", {})), "allreduce \"x\"");
}

TEST(Difference, FindsEachProperty) {
  const Request base = sum_of("x", {2, 3});
  const auto text = [&](auto change) {
    Request other = base;
    change(other);
    EXPECT_FALSE(agree(base, other));
    return difference(std::array{&base, &base, const_cast<const Request*>(&other)}, kRanks);
  };
  EXPECT_THAT(text([](Request& r) { r.kind = Kind::kBroadcast; }), HasSubstr("operations"));
  EXPECT_THAT(text([](Request& r) { r.shape = {3, 2}; }), HasSubstr("shapes"));
  EXPECT_THAT(text([](Request& r) { r.reduction = Reduction::kMin; }), HasSubstr("reduction"));
  EXPECT_THAT(text([](Request& r) { r.root = 1; }), HasSubstr("root ranks"));
  EXPECT_THAT(text([](Request& r) { r.prescale = 2; }), HasSubstr("prescale"));
  EXPECT_THAT(text([](Request& r) { r.postscale = 2; }), HasSubstr("postscale"));
  EXPECT_THAT(text([](Request& r) { r.group = "g"; }), HasSubstr("groups"));
  EXPECT_THAT(text([](Request& r) { r.group_size = 2; }), HasSubstr("groups"));
  EXPECT_THAT(text([](Request& r) { r.detail = "d"; }), HasSubstr("arguments"));
}

TEST(Difference, IgnoresTheFirstDimensionOfAllGather) {
  Request a = sum_of("x", {2, 3});
  Request b = sum_of("x", {0, 3});
  a.kind = b.kind = Kind::kAllGather;
  EXPECT_EQ(difference(std::array<const Request*, 3>{&a, &b, nullptr}, kRanks), "");
  b.shape = {2, 4};
  EXPECT_THAT(difference(std::array<const Request*, 3>{&a, &b, nullptr}, kRanks),
              HasSubstr("rank 5 has [2, 4]"));
}

}  // namespace
}  // namespace peal::named
