// How fast the kernels are: bytes read and written a second. Run by hand:
//   cmake -B build -DPEAL_BENCH=ON && cmake --build build --target kernels_bench
//   build/bin/kernels_bench --benchmark_filter=f32
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/kernels/kernels.h"

namespace peal::kernels {
namespace {

struct Case {
  DType dtype;
  ReduceOp::Kind op;
  std::size_t inputs;
  std::size_t outputs;
  Bytes size;  // of each input and output
};

/// In place: the first outputs are the first inputs, as in an all_reduce.
void reduce_in_place(benchmark::State& state, const Case& c) {
  std::vector<std::vector<std::byte>> memory(std::max(c.inputs, c.outputs));
  for (auto& buffer : memory) buffer.resize(static_cast<std::size_t>(c.size.value));
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (std::size_t k = 0; k < c.inputs; ++k) inputs.push_back(memory[k].data());
  for (std::size_t k = 0; k < c.outputs; ++k) outputs.push_back(memory[k].data());
  const auto count = Elements(c.size / size_of(c.dtype));
  for (auto _ : state) {
    reduce(inputs, outputs, count, c.dtype, c.op);
    benchmark::ClobberMemory();
  }
  const auto streams = static_cast<std::int64_t>(c.inputs + c.outputs);
  state.SetBytesProcessed(state.iterations() * streams * c.size.value);
}

void add(const Case& c) {
  const std::string name = fmt::format("reduce/{}/{}/{}_to_{}/{}B",
                                       name_of(c.dtype),
                                       name_of(c.op),
                                       c.inputs,
                                       c.outputs,
                                       c.size.value);
  benchmark::RegisterBenchmark(name.c_str(), reduce_in_place, c);
}

}  // namespace

/// Every size for the commonest case; every type and operator inside the cache; many ranks.
static void add_all() {
  using Kind = ReduceOp::Kind;
  for (const Bytes size : {4_B, 60_B, 256_B, 4_KiB, 64_KiB, 1_MiB, 16_MiB, 64_MiB}) {
    add({DType::kF32, Kind::kSum, 2, 1, size});
  }
  for (const DType dtype : kAllDTypes) {
    for (const Kind op : {Kind::kSum, Kind::kProduct, Kind::kMax}) {
      if (has_meaning(op, dtype)) add({dtype, op, 2, 1, 16_KiB});
    }
  }
  for (const std::size_t ranks : {2, 4, 8, 16, 32, 64}) {
    for (const Bytes size : {4_KiB, 1_MiB}) {
      add({DType::kF32, Kind::kSum, ranks, ranks, size});
      add({DType::kBF16, Kind::kSum, ranks, 1, size});
    }
  }
}

}  // namespace peal::kernels

int main(int argc, char** argv) {
  peal::kernels::add_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
