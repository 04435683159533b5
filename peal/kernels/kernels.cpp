#include "peal/kernels/kernels.h"

#include <cstring>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/kernels/fold.h"

namespace peal::kernels {
namespace {

using Kind = ReduceOp::Kind;

bool adds(Kind op) { return op == Kind::kSum || op == Kind::kAvg || op == Kind::kPremulSum; }

bool has_fraction(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

void check(const Fold& fold, Elements count, DType dtype, Kind op) {
  if (!has_meaning(op, dtype)) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} has no meaning for {}", name_of(op), name_of(dtype)));
  }
  if (fold.last.kind == Last::Kind::kDivide && !(adds(op) && has_fraction(dtype))) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} of {} cannot be divided", name_of(op), name_of(dtype)));
  }
  if (fold.input_count == 0 || fold.output_count == 0 || count.value < 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a reduction of {} inputs of {} elements to {} outputs",
                            fold.input_count,
                            count.value,
                            fold.output_count));
  }
}

/// What the operators mean for truth values.
Kind bitwise(Kind op) {
  if (op == Kind::kSum || op == Kind::kMax) return Kind::kBor;
  if (op == Kind::kProduct || op == Kind::kMin) return Kind::kBand;
  return op;
}

/// Hands `fold` to the loops for its type.
void run(const Fold& fold, DType dtype, Kind op) {
  switch (dtype) {
    case DType::kBool:
      return fold_bools(fold, bitwise(op));
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      if (op == Kind::kBand || op == Kind::kBor || op == Kind::kBxor) return fold_bits(fold, op);
      return fold_integers(fold, dtype, op);
    case DType::kF16:
    case DType::kBF16:
      return fold_halves(fold, dtype, op);
    case DType::kF32:
    case DType::kF64:
      return fold_floats(fold, dtype, op);
    case DType::kC64:
    case DType::kC128:
      if (op == Kind::kProduct) return fold_complex_product(fold, dtype);
      return fold_floats(fold, dtype == DType::kC64 ? DType::kF32 : DType::kF64, op);
  }
}

}  // namespace

void reduce(std::span<const std::byte* const> inputs,
            std::span<std::byte* const> outputs,
            Elements count,
            DType dtype,
            ReduceOp::Kind op,
            Finish finish) {
  Fold fold{.inputs = inputs.data(),
            .input_count = inputs.size(),
            .outputs = outputs.data(),
            .output_count = outputs.size(),
            .bytes = static_cast<std::size_t>(bytes_of(count, dtype).value),
            .last = {}};
  if (finish.divisor != 1.0) fold.last = {Last::Kind::kDivide, finish.divisor};
  check(fold, count, dtype, op);
  if (fold.bytes > 0) run(fold, dtype, op);
}

void scale(const std::byte* from, std::byte* to, Elements count, DType dtype, double factor) {
  const Fold fold{.inputs = &from,
                  .input_count = 1,
                  .outputs = &to,
                  .output_count = 1,
                  .bytes = static_cast<std::size_t>(bytes_of(count, dtype).value),
                  .last = {Last::Kind::kMultiply, factor}};
  check(fold, count, dtype, Kind::kPremulSum);
  if (fold.bytes > 0) run(fold, dtype, Kind::kPremulSum);
}

void copy(const std::byte* from, std::byte* to, Bytes size) {
  if (size.value > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(size.value));
}

}  // namespace peal::kernels
