// The values that are written before each operation, here and in the worker for MPI.
#include "peal/bench/values.h"

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/half.h"
#include "peal/bench/subprocess.h"
#include "peal/bench/worker_file.h"
#include "peal/system/private_folder.h"
#include "peal/system/text_file.h"

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

/// A program for the end of the MPI worker's source: prints for each type of the worker whether the
/// rewriting writes whole elements of ones.
constexpr const char* kCheckFill = R"(
#undef main
int main(void) {
  make_types();
  for (int t = 0; t < TYPES; ++t) {
    fill(&types[t], NULL, 0);
    for (int64_t count = 0; count < 20; ++count) {
      static char data[256] __attribute__((aligned(64)));
      memset(data, 0, sizeof data);
      fill(&types[t], data, count);
      int wrong = get(&types[t], data, count) != 0;
      for (int64_t i = 0; i < count; ++i) wrong += get(&types[t], data, i) != 1;
      printf("%s %lld %s\n", types[t].name, (long long)count, wrong ? "wrong" : "right");
    }
  }
  return 0;
}
)";

TEST(ValuesTest, TheWorkerForMpiWritesTheSameOnes) {
  const auto compiler = find_program("mpicc");
  if (!compiler) GTEST_SKIP() << "mpicc is not in PATH";
  const PrivateFolder folder("peal-test.");
  const std::string source = folder.write(
      "fill.c",
      "#define main worker_main\n" + read_text_file(worker_file("mpi_worker.c")) + kCheckFill);
  const std::string program = folder.path() / "fill";
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const Finished built = run_program(
      {*compiler, "-O3", "-fsanitize=undefined", "-fno-sanitize-recover", "-o", program, source},
      deadline);
  ASSERT_EQ(built.status, 0) << built.output;
  std::istringstream lines(run_program({program}, deadline).output);
  std::string type, count, verdict;
  int checked = 0;
  while (lines >> type >> count >> verdict) {
    ++checked;
    EXPECT_EQ(verdict, "right") << type << ", " << count << " elements";
  }
  EXPECT_EQ(checked, 8 * 20);
}

}  // namespace
}  // namespace peal::bench
