// Measures the speed of the kernels: bytes read and written for each second. Run by hand, on an
// idle machine:
//   cmake -B build -DPEAL_BENCH=ON && cmake --build build --target kernels_bench
//   build/bin/kernels_bench --benchmark_filter=^tiny
//   build/bin/kernels_bench --target=AVX2 --benchmark_filter=^halves --benchmark_repetitions=9
// The names begin with the subject:
//   sizes      the most common reduction at every size
//   types      every type and operator, in the level 1 cache
//   counts     several inputs to several outputs
//   halves     bf16 and f16 compared with f32, for the same number of bytes
//   stores     cached and streaming stores for data larger than the caches
//   copies     the same for copies, to one and to two targets
//   tiny       the cost of a call
// --target=NAME disables the instruction sets that are better than NAME: SCALAR, AVX2, AVX3, ...
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <hwy/highway.h>

#include "peal/kernels/kernels.h"

namespace peal::kernels {
namespace {

using Kind = ReduceOp::Kind;

/// Whole pages of zeros, like the memory that ranks share.
class Pages {
 public:
  explicit Pages(Bytes size) : bytes_(static_cast<std::byte*>(::operator new(to(size), kPage))) {
    std::fill_n(bytes_.get(), to(size), std::byte{0});
  }
  std::byte* data() const { return bytes_.get(); }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kPage); }
  };
  static std::size_t to(Bytes size) { return static_cast<std::size_t>(size.value); }
  std::unique_ptr<std::byte, Delete> bytes_;
};

/// The memory of the outputs: that of the first inputs, as in an all_reduce in place, or separate.
enum class Placement { kInPlace, kApart };

struct Case {
  DType dtype = DType::kF32;
  Kind op = Kind::kSum;
  std::size_t inputs = 2;
  std::size_t outputs = 1;
  Bytes size;  // of each input and output
  Stores stores = Stores::kCached;
  Placement place = Placement::kInPlace;
};

void count_bytes(benchmark::State& state, std::size_t streams, Bytes size) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(streams) * size.value);
}

void reduce_case(benchmark::State& state, const Case& c) {
  const std::size_t first_output = c.place == Placement::kInPlace ? 0 : c.inputs;
  std::vector<Pages> memory;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  const std::size_t buffers = std::max(c.inputs, first_output + c.outputs);
  for (std::size_t k = 0; k < buffers; ++k) memory.emplace_back(c.size);
  for (std::size_t k = 0; k < c.inputs; ++k) inputs.push_back(memory[k].data());
  for (std::size_t k = 0; k < c.outputs; ++k) outputs.push_back(memory[first_output + k].data());
  const Reducer reducer(c.dtype, c.op);
  const auto count = Elements(c.size / size_of(c.dtype));
  for (auto _ : state) {
    reducer(inputs, outputs, count, c.stores);
    benchmark::ClobberMemory();
  }
  count_bytes(state, c.inputs + c.outputs, c.size);
}

void copy_case(benchmark::State& state, std::size_t targets, Bytes size, Stores stores) {
  const Pages from(size);
  std::vector<Pages> memory;
  std::vector<std::byte*> to;
  for (std::size_t k = 0; k < targets; ++k) to.push_back(memory.emplace_back(size).data());
  for (auto _ : state) {
    copy(from.data(), to, size, stores);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 1 + targets, size);
}

std::string_view name_of_stores(Stores stores) {
  return stores == Stores::kStreaming ? "streaming" : "cached";
}

void add(std::string_view group, const Case& c) {
  const std::string name = fmt::format("{}/{}/{}/{}_to_{}/{}/{}/{}B",
                                       group,
                                       name_of(c.dtype),
                                       name_of(c.op),
                                       c.inputs,
                                       c.outputs,
                                       c.place == Placement::kInPlace ? "in_place" : "apart",
                                       name_of_stores(c.stores),
                                       c.size.value);
  benchmark::RegisterBenchmark(name.c_str(), reduce_case, c);
}

void add_types() {
  for (const DType dtype : kAllDTypes) {
    for (const Kind op : kAllReduceOpKinds) {
      if (has_meaning(op, dtype)) add("types", {.dtype = dtype, .op = op, .size = 8_KiB});
    }
  }
}

void add_counts() {
  for (const std::size_t ranks : {2, 4, 8, 16, 32, 64}) {
    for (const Bytes size : {4_KiB, 64_KiB, 1_MiB}) {
      add("counts", {.inputs = ranks, .outputs = ranks, .size = size});
      if (ranks > 2) add("counts", {.inputs = ranks, .outputs = 1, .size = size});
    }
  }
}

void add_halves() {
  for (const std::size_t outputs : {1, 2}) {
    for (const Bytes size : {16_KiB, 64_KiB, 1_MiB, 16_MiB, 64_MiB}) {
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
        add("halves", {.dtype = dtype, .outputs = outputs, .size = size});
      }
    }
  }
}

void add_stores() {
  for (const Placement place : {Placement::kInPlace, Placement::kApart}) {
    for (const std::size_t outputs : {1, 2}) {
      for (const Bytes size : {1_MiB, 4_MiB, 16_MiB, 64_MiB}) {
        for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
          add("stores", {.outputs = outputs, .size = size, .stores = stores, .place = place});
        }
      }
    }
  }
}

void add_copies() {
  for (const std::size_t targets : {1, 2}) {
    for (const Bytes size : {64_KiB, 1_MiB, 16_MiB, 64_MiB}) {
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        const std::string name =
            fmt::format("copies/1_to_{}/{}/{}B", targets, name_of_stores(stores), size.value);
        benchmark::RegisterBenchmark(name.c_str(), copy_case, targets, size, stores);
      }
    }
  }
}

void add_tiny() {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kU8}) {
    for (const std::size_t outputs : {1, 2}) {
      for (const Bytes size : {8_B, 24_B, 56_B, 64_B, 256_B}) {
        add("tiny", {.dtype = dtype, .outputs = outputs, .size = size});
      }
    }
  }
}

/// Removes "--target=NAME" from the arguments, and disables every better instruction set. Returns
/// whether this CPU and build have the target.
bool choose_target(int& argc, char** argv) {
  constexpr std::string_view kFlag = "--target=";
  bool found = true;
  const auto end = std::remove_if(argv + 1, argv + argc, [&](std::string_view argument) {
    if (!argument.starts_with(kFlag)) return false;
    found = false;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      if (hwy::TargetName(target) != argument.substr(kFlag.size())) continue;
      hwy::SetSupportedTargetsForTest(target);
      found = true;
    }
    return true;
  });
  argc = static_cast<int>(end - argv);
  return found;
}

}  // namespace
}  // namespace peal::kernels

int main(int argc, char** argv) {
  using namespace peal;
  using namespace peal::kernels;
  if (!choose_target(argc, argv)) {
    std::fputs("this CPU or this build lacks the instruction set of --target\n", stderr);
    return 2;
  }
  for (const Bytes size : {4_B, 64_B, 1_KiB, 4_KiB, 64_KiB, 1_MiB, 16_MiB, 64_MiB}) {
    add("sizes", {.size = size});
  }
  add_types();
  add_counts();
  add_halves();
  add_stores();
  add_copies();
  add_tiny();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
