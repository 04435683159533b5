#include "peal/train/horovod/operations.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "peal/train/horovod/testing/processes.h"
#include "peal/train/tensors/element_type.h"

namespace peal::hvd {
namespace {

using testing::Findings;
using testing::on_processes;

constexpr std::array kReductions = {Average, Sum, Min, Max, Product, Adasum};

bool has_a_meaning(Reduction op, torch::ScalarType type) {
  const bool is_complex = torch::isComplexType(type);
  const bool is_number = torch::isFloatingType(type) || is_complex;
  switch (op) {
    case Average:
      return type != torch::kBool;
    case Adasum:
      return is_number;
    case Min:
    case Max:
      return !is_complex;
    case Sum:
    case Product:
      break;
  }
  return true;
}

/// Small numbers, so that sums and products of four ranks fit every type.
Tensor values_of(Rank rank, torch::ScalarType type, at::IntArrayRef shape) {
  const std::int64_t count = c10::multiply_integers(shape);
  Tensor values = (torch::arange(count, torch::kInt64) + rank * 3) % 4;
  if (type == torch::kBool) return (values > 1).view(shape);
  values = torch::where(values == 0, torch::full_like(values, 2), values);
  const bool is_signed = type != torch::kUInt8;
  return (is_signed && rank % 2 == 1 ? -values : values).to(type).view(shape);
}

Tensors values_of_all(int ranks, torch::ScalarType type, at::IntArrayRef shape) {
  Tensors all;
  for (Rank r = 0; r < ranks; ++r) all.push_back(values_of(r, type, shape));
  return all;
}

Tensor adasum_of(const Tensor& a, const Tensor& b) {
  const auto dot = [](const Tensor& x, const Tensor& y) { return torch::real(x * y.conj()).sum(); };
  const Tensor together = dot(a, b);
  return (1 - together / (2 * dot(a, a))) * a + (1 - together / (2 * dot(b, b))) * b;
}

Tensor adasum_of(Tensors all) {
  std::size_t power = 1;
  while (power * 2 <= all.size()) power *= 2;
  for (std::size_t r = power; r < all.size(); ++r)
    all[r - power] = adasum_of(all[r - power], all[r]);
  all.resize(power);
  for (std::size_t step = 1; step < power; step *= 2) {
    for (std::size_t r = 0; r < power; r += 2 * step) all[r] = adasum_of(all[r], all[r + step]);
  }
  return all.front();
}

/// The formula, in the widest type.
Tensor reduced(const Tensors& all, Reduction op) {
  const torch::ScalarType type = all.front().scalar_type();
  const bool is_complex = torch::isComplexType(type);
  const bool is_integer = torch::isIntegralType(type, /*includeBool=*/true);
  const auto wide = is_complex   ? torch::kComplexDouble
                    : is_integer ? torch::kInt64
                                 : torch::kFloat64;
  Tensors widened;
  for (const Tensor& tensor : all) widened.push_back(tensor.to(wide));
  const Tensor stacked = torch::stack(widened);
  const auto count = static_cast<std::int64_t>(all.size());
  switch (op) {
    case Average:
      return is_integer ? torch::div(stacked.sum(0), count, "trunc").to(type)
                        : (stacked.sum(0) / count).to(type);
    case Sum:
      return stacked.sum(0).to(type);
    case Min:
      return std::get<0>(stacked.min(0)).to(type);
    case Max:
      return std::get<0>(stacked.max(0)).to(type);
    case Product:
      return stacked.prod(0).to(type);
    case Adasum:
      break;
  }
  return adasum_of(widened).to(type);
}

double tolerance_of(Reduction op, torch::ScalarType type) {
  const bool is_exact = op != Average && op != Adasum;
  if (is_exact || torch::isIntegralType(type, /*includeBool=*/true)) return 0;
  if (type == torch::kBFloat16) return 2e-2;
  return type == torch::kHalf ? 2e-3 : 1e-6;
}

enum class Layout { kRowMajor, kTransposed, kChannelsLast, kWithGaps };
constexpr std::array kLayouts = {
    Layout::kRowMajor, Layout::kTransposed, Layout::kChannelsLast, Layout::kWithGaps};

/// The same values, in memory of another order.
Tensor laid_out_as(Layout layout, const Tensor& values) {
  switch (layout) {
    case Layout::kRowMajor:
      break;
    case Layout::kTransposed:
      return values.transpose(0, 3).contiguous().transpose(0, 3);
    case Layout::kChannelsLast:
      return values.contiguous(torch::MemoryFormat::ChannelsLast);
    case Layout::kWithGaps:
      return torch::stack({values, values}, -1).select(-1, 0);
  }
  return values.clone();
}

std::string text_of(Reduction op, torch::ScalarType type, Layout layout) {
  return c10::str(named::name_of(op), " of ", type, " in layout ", static_cast<int>(layout));
}

constexpr std::array<std::int64_t, 4> kShape = {2, 3, 4, 2};

/// All forms of allreduce.
void check_allreduce(Findings& findings, Reduction op, torch::ScalarType type, Layout layout) {
  const Tensor mine = values_of(rank(), type, kShape);
  const Tensor wanted = reduced(values_of_all(size(), type, kShape), op);
  const double tolerance = tolerance_of(op, type);
  const std::string what = text_of(op, type, layout);
  const ReductionOptions options{.name = what, .op = op};
  const auto fresh = [&] { return laid_out_as(layout, mine); };
  const auto check = [&](const Tensor& result, const char* form) {
    findings.expect_close(result, wanted, tolerance, what + ", " + form);
    findings.expect(layout == Layout::kWithGaps || result.strides() == fresh().strides(),
                    what + ", " + form + ": other strides");
  };
  const Tensor input = fresh();
  check(allreduce(input, options), "blocking");
  findings.expect_equal(input, mine, what + ": the input");
  check(synchronize(allreduce_async(input, options)), "asynchronous");
  const auto check_in_place = [&](const char* form, auto run) {
    const Tensor data = fresh();
    const Tensor result = run(data);
    check(data, form);
    findings.expect(result.is_same(data), what + ", " + form + ": another tensor");
  };
  check_in_place("in place", [&](const Tensor& data) { return allreduce_(data, options); });
  check_in_place("asynchronous in place",
                 [&](const Tensor& data) { return synchronize(allreduce_async_(data, options)); });
  const Tensors pair = {fresh(), fresh()};
  for (const Tensor& result : grouped_allreduce(pair, options)) check(result, "grouped");
  for (const Tensor& result : synchronize(grouped_allreduce_async(pair, options))) {
    check(result, "grouped, asynchronous");
  }
  for (const Tensor& result : grouped_allreduce_({fresh(), fresh()}, options)) {
    check(result, "grouped in place");
  }
  for (const Tensor& result : synchronize(grouped_allreduce_async_({fresh(), fresh()}, options))) {
    check(result, "grouped, asynchronous in place");
  }
}

void check_reducescatter(Findings& findings, Reduction op, torch::ScalarType type) {
  for (const std::int64_t rows : {0, 1, 5}) {
    const std::vector<std::int64_t> shape = {rows, 2};
    const Tensor mine = values_of(rank(), type, shape);
    const std::int64_t more = rows % size(), each = rows / size();
    const std::int64_t first = rank() * each + std::min<std::int64_t>(rank(), more);
    const Tensor wanted = reduced(values_of_all(size(), type, shape), op)
                              .narrow(0, first, each + (rank() < more ? 1 : 0));
    const std::string what =
        c10::str("reducescatter of ", rows, " rows, ", named::name_of(op), " of ", type);
    const ReductionOptions options{.name = what, .op = op};
    const auto check = [&](const Tensor& result) {
      findings.expect_close(result, wanted, tolerance_of(op, type), what);
    };
    check(reducescatter(mine, options));
    check(synchronize(reducescatter_async(mine, options)));
    for (const Tensor& result : grouped_reducescatter({mine, mine}, options)) check(result);
    for (const Tensor& result : synchronize(grouped_reducescatter_async({mine, mine}, options))) {
      check(result);
    }
    findings.expect_equal(mine, values_of(rank(), type, shape), what + ": the input");
  }
}

void check_moves(Findings& findings, torch::ScalarType type) {
  const std::string name = c10::str(type);
  const auto block = [&](Rank r) { return values_of(r, type, {r % 3, 2}); };  // 0, 1 or 2 rows
  Tensors blocks;
  for (Rank r = 0; r < size(); ++r) blocks.push_back(block(r));
  const Tensor gathered = torch::cat(blocks);
  const Tensor mine = block(rank());
  findings.expect_equal(allgather(mine, {.name = name}), gathered, "allgather of " + name);
  findings.expect_equal(
      synchronize(allgather_async(mine, {.name = name})), gathered, "allgather_async of " + name);
  for (const Tensor& result : grouped_allgather({mine, mine}, {.name = name})) {
    findings.expect_equal(result, gathered, "grouped_allgather of " + name);
  }
  for (const Tensor& result : synchronize(grouped_allgather_async({mine, mine}, {.name = name}))) {
    findings.expect_equal(result, gathered, "grouped_allgather_async of " + name);
  }

  for (Rank root = 0; root < size(); ++root) {
    const Tensor data = values_of(rank(), type, {3, 2}), wanted = values_of(root, type, {3, 2});
    findings.expect_equal(broadcast(data, root, {.name = name}), wanted, "broadcast of " + name);
    findings.expect_equal(
        synchronize(broadcast_async(data, root, {.name = name})), wanted, "broadcast of " + name);
    findings.expect_equal(data, values_of(rank(), type, {3, 2}), "the input of broadcast");
    findings.expect_equal(broadcast_(data.clone(), root, {.name = name}), wanted, "broadcast_");
    findings.expect_equal(synchronize(broadcast_async_(data, root, {.name = name})), wanted, name);
    findings.expect_equal(data, wanted, "broadcast in place");
  }

  // Rank r sends rank s (r + s) % 3 rows of the value r * size + s.
  const auto rows = [](Rank from, Rank to) { return std::int64_t{(from + to) % 3}; };
  const auto sent = [&](Rank from, Rank to) {
    return torch::full({rows(from, to), 2}, from * size() + to, torch::kInt64).to(type);
  };
  Tensors out, in;
  std::vector<std::int64_t> splits, received;
  for (Rank r = 0; r < size(); ++r) {
    out.push_back(sent(rank(), r));
    in.push_back(sent(r, rank()));
    splits.push_back(rows(rank(), r));
    received.push_back(rows(r, rank()));
  }
  const Tensor received_splits = torch::tensor(received, torch::kInt64).to(torch::kInt32);
  for (const AllToAllResult& result :
       {alltoall(torch::cat(out), splits, {.name = name}),
        synchronize(alltoall_async(torch::cat(out), splits, {.name = name}))}) {
    findings.expect_equal(result.output, torch::cat(in), "alltoall of " + name);
    findings.expect_equal(result.received_splits, received_splits, "the splits of " + name);
  }
}

TEST(Operations, FollowTheirFormulasForEachTypeReductionLayoutAndForm) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    on_processes(ranks, [](Findings& findings) {
      for (const auto& [dtype, type] : train::kElementTypes) {
        for (const Reduction op : kReductions) {
          if (!has_a_meaning(op, type)) {
            findings.expect_error(
                ErrorKind::kUnsupported,
                "has no meaning",
                [&, type = type] { allreduce(values_of(0, type, {2}), {.op = op}); },
                text_of(op, type, Layout::kRowMajor));
            continue;
          }
          for (const Layout layout : kLayouts) check_allreduce(findings, op, type, layout);
          if (op != Adasum) check_reducescatter(findings, op, type);
        }
        check_moves(findings, type);
      }
    });
  }
}

TEST(Operations, RunWithNamesInAnotherOrderOnEachRank) {
  on_processes(3, [](Findings& findings) {
    constexpr int kNames = 1000;
    std::vector<int> order(kNames);
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < 2; ++round) {
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank() + round)));
      std::vector<std::optional<Handle<Tensor>>> handles(kNames);
      for (const int i : order) {
        const Tensor value = torch::full({i % 7 + 1}, i * (rank() + 1), torch::kFloat32);
        handles[static_cast<std::size_t>(i)] =
            allreduce_async(value, {.name = std::to_string(i), .op = Sum});
      }
      for (int i = 0; i < kNames; ++i) {
        findings.expect_equal(synchronize(*handles[static_cast<std::size_t>(i)]),
                              torch::full({i % 7 + 1}, i * 6, torch::kFloat32),
                              "name " + std::to_string(i));
      }
    }
  });
}

/// Large tensors of a batch travel alone, so that they need no copy; the rest as one.
TEST(Operations, OfLargeAndSmallTensorsTogether) {
  on_processes(2, [](Findings& findings) {
    constexpr std::int64_t kAlone = (256 << 10) / sizeof(float);  // from this size on
    Tensors tensors, sums;
    for (const std::int64_t count :
         {std::int64_t{3}, kAlone, kAlone - 1, kAlone + 1, std::int64_t{0}, 5 * kAlone}) {
      const Tensor values = torch::arange(count).fmod(100);
      tensors.push_back(values + rank());
      sums.push_back(2 * values + 1);
    }
    const Tensors results = grouped_allreduce(tensors, {.op = Sum});
    std::vector<Handle<Tensor>> copies;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string what = "tensor " + std::to_string(i);
      findings.expect_equal(results[i], sums[i], what);
      copies.push_back(broadcast_async(tensors[i], 1, {.name = what}));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      findings.expect_equal(synchronize(copies[i]), tensors[i] - rank() + 1, "broadcast");
    }
  });
}

TEST(Operations, ScaleBeforeAndAfterTheReduction) {
  on_processes(2, [](Findings& findings) {
    const Tensor mine = torch::tensor({3.0, 5.0}) * (rank() + 1);
    findings.expect_equal(
        allreduce(mine, {.op = Sum, .prescale_factor = 0.5, .postscale_factor = 4}),
        torch::tensor({3.0, 5.0}) * 6,
        "floats");
    const Tensor whole = torch::tensor({3, 7}, torch::kInt32);
    findings.expect_equal(allreduce(whole, {.op = Sum, .prescale_factor = 0.5}),
                          torch::tensor({2, 6}, torch::kInt32),
                          "integers are truncated before the sum");
    const Tensor rows = torch::tensor({{1.0, 2.0}, {3.0, 4.0}});
    const Tensor kept = rows.clone();
    findings.expect_equal(reducescatter(rows, {.op = Sum, .prescale_factor = 0.5}),
                          rows.narrow(0, rank(), 1),
                          "reducescatter");
    findings.expect_equal(rows, kept, "the input of reducescatter");
  });
}

TEST(Operations, OfIntegersDivideExactlyAndTruncateTowardZero) {
  on_processes(3, [](Findings& findings) {
    const Tensor mine = torch::tensor({-1, 1, 49, 7}, torch::kInt64) * (rank() == 0 ? 1 : 0);
    findings.expect_equal(
        allreduce(mine), torch::tensor({0, 0, 16, 2}, torch::kInt64), "the average");
  });
}

TEST(Operations, OfCompressedTensorsReturnTheTypeOfTheTensor) {
  on_processes(2, [](Findings& findings) {
    const Tensor mine = torch::tensor({1.0, 2.5}) + rank();
    for (const CompressorPtr& compression : {Compression::fp16(), Compression::bf16()}) {
      const ReductionOptions options{.compression = compression};
      findings.expect_equal(allreduce(mine, options), torch::tensor({1.5, 3.0}), "allreduce");
      findings.expect_equal(
          synchronize(allreduce_async(mine, options)), torch::tensor({1.5, 3.0}), "asynchronous");
      const Tensor data = mine.clone();
      allreduce_(data, options);
      findings.expect_equal(data, torch::tensor({1.5, 3.0}), "in place");
      const Tensor whole = torch::tensor({rank()}, torch::kInt32);
      findings.expect_equal(allreduce(whole, {.op = Sum, .compression = compression}),
                            torch::tensor({1}, torch::kInt32),
                            "integers are sent as they are");
    }
  });
}

TEST(SparseAllreduce, AddsTheEntriesOfAllRanks) {
  on_processes(3, [](Findings& findings) {
    // Rank r has r entries: the rows 0 .. r - 1.
    const std::int64_t entries = rank();
    const Tensor mine = torch::sparse_coo_tensor(
        torch::arange(entries).view({1, entries}), torch::ones({entries, 2}), {4, 2});
    const Tensor wanted = torch::tensor({{2.0, 2.0}, {1.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}});
    const Tensor sum = sparse_allreduce(mine, {.op = Sum});
    findings.expect(sum.is_coalesced(), "the sum is not coalesced");
    findings.expect_equal(sum.to_dense(), wanted, "the sum");
    findings.expect_close(synchronize(sparse_allreduce_async(mine, {.name = "s"})).to_dense(),
                          wanted / 3,
                          1e-6,
                          "the average");
  });
}

TEST(Operations, PassGradientsToTheTensorsOfAllRanks) {
  on_processes(2, [](Findings& findings) {
    const auto gradient = [](const Tensor& input, const auto& function) {
      Tensor leaf = input.detach().clone().requires_grad_();
      const Tensor output = function(leaf);
      // Each element of the output has another weight on each rank.
      const Tensor weights = torch::arange(output.numel()).view(output.sizes()) + 10 * rank() + 1.0;
      (output * weights).sum().backward();
      return leaf.grad();
    };
    const Tensor mine = torch::ones({2, 2});
    const Tensor numbers = torch::arange(4).view({2, 2}).to(torch::kFloat32);
    findings.expect_equal(gradient(mine, [](const Tensor& x) { return allreduce(x, {.op = Sum}); }),
                          2 * numbers + 12,
                          "allreduce");
    findings.expect_equal(
        gradient(mine, [](const Tensor& x) { return allreduce(x, {.name = "x"}); }),
        numbers + 6,
        "average");
    findings.expect_equal(gradient(mine,
                                   [](const Tensor& x) {
                                     return grouped_allreduce({x, x}, {.op = Sum})[1];
                                   }),
                          2 * numbers + 12,
                          "grouped allreduce");
    findings.expect_equal(gradient(mine, [](const Tensor& x) { return allgather(x); }),
                          numbers + 4.0 * rank() + 6,
                          "allgather");
    findings.expect_equal(gradient(mine, [](const Tensor& x) { return broadcast(x, 1); }),
                          rank() == 1 ? numbers + 6 : torch::zeros({2, 2}),
                          "broadcast");
    findings.expect_equal(gradient(mine, [](const Tensor& x) { return alltoall(x).output; }),
                          torch::tensor({{1.0, 2.0}, {11.0, 12.0}}) + 2.0 * rank(),
                          "alltoall");
    findings.expect_equal(
        gradient(mine, [](const Tensor& x) { return reducescatter(x, {.op = Sum}); }),
        2 * torch::tensor({{1.0, 2.0}, {11.0, 12.0}}),
        "reducescatter");
    findings.expect_equal(gradient(mine,
                                   [](const Tensor& x) {
                                     return allreduce(
                                         x, {.op = Sum, .compression = Compression::fp16()});
                                   }),
                          2 * numbers + 12,
                          "compressed allreduce");
  });
}

TEST(Join, ReturnsTheRankThatJoinedLastAndContributesNeutralValues) {
  on_processes(3, [](Findings& findings) {
    const auto joined_of = [](Reduction op) {
      return allreduce(torch::full({2}, rank() + 2.0), {.name = "joined", .op = op});
    };
    if (rank() > 0) {
      findings.expect_close(joined_of(Sum), torch::full({2}, 7.0), 0, "the sum");
      findings.expect_close(joined_of(Average), torch::full({2}, 7.0 / 3), 1e-6, "the average");
      findings.expect_close(joined_of(Min), torch::full({2}, 3.0), 0, "the minimum");
      findings.expect_close(joined_of(Product), torch::full({2}, 12.0), 0, "the product");
      findings.expect_error<HorovodInternalError>(
          ErrorKind::kMismatch,
          "is not supported with Join at this time.",
          [] { allgather(torch::ones({1}), {.name = "g"}); },
          "allgather");
    }
    const Rank last = join();
    findings.expect(last > 0, "the first rank was the last");
    findings.expect_equal(
        allreduce(torch::tensor({last}), {.op = Max}), torch::tensor({last}), "the last rank");
    findings.expect_close(joined_of(Sum), torch::full({2}, 9.0), 0, "the sum after join");
  });
}

TEST(Barrier, DoesNotWaitForEarlierOperations) {
  on_processes(2, [](Findings& findings) {
    std::optional<Handle<Tensor>> early;
    if (rank() == 0) early = allreduce_async(torch::ones({1}), {.name = "early", .op = Sum});
    barrier();
    if (rank() == 1) early = allreduce_async(torch::ones({1}), {.name = "early", .op = Sum});
    findings.expect_equal(synchronize(*early), torch::full({1}, 2.0), "the early operation");
  });
}

}  // namespace
}  // namespace peal::hvd
