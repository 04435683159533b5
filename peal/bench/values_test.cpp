// What is written before each operation, here and in the worker for MPI.
#include "peal/bench/values.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/half.h"
#include "peal/base/testing/sanitized.h"
#include "peal/bench/embedded.h"
#include "peal/bench/folder.h"
#include "peal/bench/subprocess.h"

namespace peal::bench {
namespace {

template <class T>
void expect_ones(std::size_t elements) {
  constexpr std::byte kOther{0x5a};
  std::vector<std::byte> bytes((elements + 1) * sizeof(T) - 1, kOther);
  rewrite(bytes, dtype_of<T>);
  for (std::size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    EXPECT_EQ(static_cast<float>(value), 1) << i << " of " << elements;
  }
  for (std::size_t i = elements * sizeof(T); i < bytes.size(); ++i) EXPECT_EQ(bytes[i], kOther);
}

TEST(ValuesTest, RewritingMakesOnesOfAllWholeElements) {
  for (const std::size_t elements : {0, 1, 2, 3, 7, 8, 9, 100}) {
    expect_ones<float>(elements);
    expect_ones<double>(elements);
    expect_ones<BFloat16>(elements);
    expect_ones<Float16>(elements);
    expect_ones<std::int64_t>(elements);
    expect_ones<std::int32_t>(elements);
    expect_ones<std::int16_t>(elements);
    expect_ones<std::int8_t>(elements);
    expect_ones<std::uint8_t>(elements);
  }
}

constexpr Bytes kRewritten = 4_KiB;

/// What the worker for MPI takes to rewrite kRewritten of each type, in nanoseconds, as the worker
/// is built; "wrong" where it does not make ones. After the worker's source.
constexpr const char* kTimeFill = R"(
#undef main
int main(void) {
  make_types();
  for (int t = 0; t < TYPES; ++t) {
    static char data[4096] __attribute__((aligned(64)));
    const int64_t count = sizeof data / types[t].size;
    int64_t best = INT64_MAX;
    for (int k = 0; k < 2000; ++k) {
      const int64_t begin = time_now();
      for (int i = 0; i < 8; ++i) fill(&types[t], data, count);
      const int64_t took = time_now() - begin;
      if (took < best) best = took;
    }
    int wrong = 0;
    for (int64_t i = 0; i < count; ++i) wrong += get(&types[t], data, i) != 1;
    memset(data, 0, 64);
    fill(&types[t], data, 3);
    wrong += get(&types[t], data, 2) != 1 || get(&types[t], data, 3) != 0;
    printf("%s %s %lld\n", types[t].name, wrong ? "wrong" : "right", (long long)best / 8);
  }
  return 0;
}
)";

double nanoseconds_of_rewrite(DType dtype) {
  alignas(64) std::array<std::byte, static_cast<std::size_t>(kRewritten.value)> data{};
  double best = 1e9;
  for (int k = 0; k < 2000; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 8; ++i) {
      rewrite(data, dtype);
      __asm__ volatile("" : : "r"(data.data()) : "memory");
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / 8);
  }
  return best;
}

TEST(ValuesTest, RewritingCostsMpiNoMoreThanItCostsHere) {
  if (kSanitized) GTEST_SKIP() << "times are of a build without sanitizers";
  const auto compiler = find_program("mpicc");
  if (!compiler) GTEST_SKIP() << "there is no mpicc";
  const Folder folder;
  const std::string source =
      folder.write("fill.c", "#define main worker_main\n" + std::string(kMpiWorker) + kTimeFill);
  const std::string program = folder.path() / "fill";
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const Finished built = run_program({*compiler, "-O3", "-o", program, source}, deadline);
  ASSERT_EQ(built.status, 0) << built.output;
  std::istringstream lines(run_program({program}, deadline).output);
  std::string name, verdict;
  double theirs = 0;
  int types = 0;
  while (lines >> name >> verdict >> theirs) {
    ++types;
    const auto* const dtype =
        std::ranges::find(kAllDTypes, name, [](DType d) { return name_of(d); });
    ASSERT_NE(dtype, kAllDTypes.end()) << name;
    const double ours = nanoseconds_of_rewrite(*dtype);
    EXPECT_EQ(verdict, "right") << name;
    // A switch for each element took 40 times as long.
    EXPECT_LT(theirs, 8 * ours + 100) << name;
  }
  EXPECT_EQ(types, 8);
}

}  // namespace
}  // namespace peal::bench
