#include "peal/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <hwy/cache_control.h>

#include "peal/base/error.h"
#include "peal/kernels/fold.h"

namespace peal::kernels {
namespace {

using Kind = ReduceOp::Kind;

/// What is copied to one target after the other: it stays in the second cache meanwhile, and is
/// long enough for memcpy to move it without reading the targets.
constexpr std::size_t kPiece = 32768;

bool adds(Kind op) { return op == Kind::kSum || op == Kind::kAvg || op == Kind::kPremulSum; }

bool has_fraction(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

void check(DType dtype, Kind op, Finish finish) {
  if (!has_meaning(op, dtype)) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} has no meaning for {}", name_of(op), name_of(dtype)));
  }
  if (finish.divisor != 1.0 && !(adds(op) && has_fraction(dtype))) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} of {} cannot be divided", name_of(op), name_of(dtype)));
  }
}

[[noreturn]] void refuse(std::size_t inputs, std::size_t outputs, Elements count) {
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "a reduction of {} inputs of {} elements to {} outputs", inputs, count.value, outputs));
}

/// What the operators mean for truth values.
Kind bitwise(Kind op) {
  if (op == Kind::kSum || op == Kind::kMax) return Kind::kBor;
  if (op == Kind::kProduct || op == Kind::kMin) return Kind::kBand;
  return op;
}

Loop loop_for(DType dtype, Kind op) {
  switch (dtype) {
    case DType::kBool:
      return bools_loop(bitwise(op));
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      if (op == Kind::kBand || op == Kind::kBor || op == Kind::kBxor) return bits_loop(op);
      return integers_loop(dtype, op);
    case DType::kF16:
    case DType::kBF16:
      return halves_loop(dtype, op);
    case DType::kF32:
    case DType::kF64:
      return floats_loop(dtype, op);
    case DType::kC64:
    case DType::kC128:
      if (op == Kind::kProduct) return complex_product_loop(dtype);
      return floats_loop(dtype == DType::kC64 ? DType::kF32 : DType::kF64, op);
  }
  return nullptr;
}

/// Every NaN is the usual one, which rounding to bf16 leaves alone.
double usual(double operand) {
  return std::isnan(operand) ? std::numeric_limits<double>::quiet_NaN() : operand;
}

/// Division by a power of two is multiplication by another, with the same bits and sooner.
Last last_of(Finish finish) {
  const double divisor = finish.divisor;
  int exponent = 0;
  const bool is_power = std::frexp(divisor, &exponent) == 0.5 && exponent < 64;
  if (divisor == 1.0) return {};
  if (is_power && divisor > 1.0) return {Last::Kind::kMultiply, 1.0 / divisor};
  return {Last::Kind::kDivide, usual(divisor)};
}

/// Whether every output begins at the same distance from a line, in whole elements.
bool lie_alike(std::span<std::byte* const> outputs, std::size_t element) {
  const auto in_line = [](const std::byte* p) {
    return reinterpret_cast<std::uintptr_t>(p) % kLine;
  };
  const std::size_t first = in_line(outputs[0]);
  return first % element == 0 &&
         std::all_of(outputs.begin(), outputs.end(), [&](std::byte* output) {
           return in_line(output) == first;
         });
}

void copy_cached(const std::byte* from, std::byte* to, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace

Reducer::Reducer(DType dtype, ReduceOp::Kind op, Finish finish)
    : element_(size_of(dtype)), last_(last_of(finish)) {
  check(dtype, op, finish);
  loop_ = loop_for(dtype, op);
}

void Reducer::operator()(std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs,
                         Elements count,
                         Stores stores) const {
  if (inputs.empty() || outputs.empty() || count.value < 0) {
    refuse(inputs.size(), outputs.size(), count);
  }
  if (count.value == 0) return;
  const bool streams =
      stores == Stores::kStreaming && lie_alike(outputs, static_cast<std::size_t>(element_.value));
  loop_({.inputs = inputs.data(),
         .input_count = inputs.size(),
         .outputs = outputs.data(),
         .output_count = outputs.size(),
         .bytes = static_cast<std::size_t>(element_.value * count.value),
         .last = last_,
         .stores = streams ? Stores::kStreaming : Stores::kCached});
  if (streams) hwy::FlushStream();
}

void reduce(std::span<const std::byte* const> inputs,
            std::span<std::byte* const> outputs,
            Elements count,
            DType dtype,
            ReduceOp::Kind op,
            Finish finish,
            Stores stores) {
  Reducer(dtype, op, finish)(inputs, outputs, count, stores);
}

void scale(const std::byte* from, std::byte* to, Elements count, DType dtype, double factor) {
  check(dtype, Kind::kPremulSum, {});
  if (count.value < 0) refuse(1, 1, count);
  if (count.value == 0) return;
  loop_for(dtype,
           Kind::kPremulSum)({.inputs = &from,
                              .input_count = 1,
                              .outputs = &to,
                              .output_count = 1,
                              .bytes = static_cast<std::size_t>(bytes_of(count, dtype).value),
                              .last = {Last::Kind::kMultiply, usual(factor)},
                              .stores = Stores::kCached});
}

void copy(const std::byte* from, std::byte* to, Bytes size, Stores stores) {
  if (stores == Stores::kCached) {
    if (size.value > 0 && from != to) std::memcpy(to, from, static_cast<std::size_t>(size.value));
    return;
  }
  copy(from, std::span<std::byte* const>(&to, 1), size, stores);
}

void copy(const std::byte* from, std::span<std::byte* const> targets, Bytes size, Stores stores) {
  const auto bytes = static_cast<std::size_t>(std::max(size, 0_B).value);
  const auto copy_piece = stores == Stores::kStreaming ? streaming_copy() : copy_cached;
  const std::size_t piece = targets.size() > 1 ? kPiece : bytes;
  for (std::size_t at = 0; at < bytes; at += piece) {
    for (std::byte* target : targets) {
      if (target != from) copy_piece(from + at, target + at, std::min(piece, bytes - at));
    }
  }
  if (stores == Stores::kStreaming) hwy::FlushStream();
}

}  // namespace peal::kernels
