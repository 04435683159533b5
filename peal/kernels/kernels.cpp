#include "peal/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <hwy/cache_control.h>

#include "peal/base/error.h"
#include "peal/kernels/fold.h"

namespace peal::kernels {
namespace {

using Kind = ReduceOp::Kind;

/// How much is copied to one target after another. A piece stays in the L2 cache meanwhile, and is
/// long enough for memcpy to write the targets without reading them.
constexpr std::size_t kPiece = 32768;

bool adds(Kind op) { return op == Kind::kSum || op == Kind::kAvg || op == Kind::kPremulSum; }

bool has_fraction(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

/// A double holds every whole number up to here.
constexpr double kMostExact = 0x1p53;

bool divides_integers(double divisor) {
  return divisor >= 1.0 && divisor <= kMostExact && divisor == std::trunc(divisor);
}

void check(DType dtype, Kind op, Finish finish) {
  if (!has_meaning(op, dtype)) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} has no meaning for {}", name_of(op), name_of(dtype)));
  }
  const bool divides = op == Kind::kAvg || (adds(op) && has_fraction(dtype));
  if (finish.divisor != 1.0 && !divides) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} of {} cannot be divided", name_of(op), name_of(dtype)));
  }
  if (!has_fraction(dtype) && !divides_integers(finish.divisor)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} of {} needs a whole number from 1 to 2^53 as divisor, not {}",
                            name_of(op),
                            name_of(dtype),
                            finish.divisor));
  }
}

[[noreturn]] void refuse(std::size_t inputs, std::size_t outputs, Elements count) {
  throw Error(ErrorKind::kUsage,
              fmt::format("a reduction of {} inputs of {} elements to {} outputs: at least one "
                          "input and one output are needed",
                          inputs,
                          count.value,
                          outputs));
}

void check_weights(std::size_t weights, std::size_t inputs, Loop weighted) {
  if (weighted == nullptr) {
    throw Error(ErrorKind::kUnsupported, "only sums of floating or complex types have weights");
  }
  if (weights != inputs) {
    throw Error(ErrorKind::kUsage, fmt::format("{} weights for {} inputs", weights, inputs));
  }
}

/// The bitwise operator that an operator means for truth values.
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
      return f16_bf16_loop(dtype, op);
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

/// Null if weights have no meaning.
Loop weighted_loop_for(DType dtype, Kind op) {
  if (!adds(op) || !has_fraction(dtype)) return nullptr;
  if (dtype == DType::kF16 || dtype == DType::kBF16) return weighted_f16_bf16_loop(dtype);
  const bool is_single = dtype == DType::kF32 || dtype == DType::kC64;
  return weighted_floats_loop(is_single ? DType::kF32 : DType::kF64);
}

// ---- the last step of a reduction

/// Divides integers of up to 32 bits as doubles, because the truncated quotient is exact.
template <class T>
void divide_each(std::byte* values, std::size_t bytes, std::int64_t divisor) {
  using Number = std::conditional_t<sizeof(T) == 8, std::int64_t, double>;
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, values + at, sizeof(T));
    value = static_cast<T>(static_cast<Number>(value) / static_cast<Number>(divisor));
    std::memcpy(values + at, &value, sizeof(T));
  }
}

using Divide = void (*)(std::byte* values, std::size_t bytes, std::int64_t divisor);

/// Null for types that are not integers.
Divide divide_for(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return divide_each<std::uint8_t>;
    case DType::kI8:
      return divide_each<std::int8_t>;
    case DType::kI16:
      return divide_each<std::int16_t>;
    case DType::kI32:
      return divide_each<std::int32_t>;
    case DType::kI64:
      return divide_each<std::int64_t>;
    case DType::kBool:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kC64:
    case DType::kC128:
      return nullptr;
  }
  return nullptr;
}

/// Replaces every NaN by the positive quiet NaN, which rounding to bf16 does not change.
double canonical_nan(double operand) {
  return std::isnan(operand) ? std::numeric_limits<double>::quiet_NaN() : operand;
}

/// Replaces division by a power of two by multiplication: the same bits, and faster.
Last last_of(Finish finish) {
  const double divisor = finish.divisor;
  int exponent = 0;
  const bool is_power = std::frexp(divisor, &exponent) == 0.5 && exponent < 64;
  if (divisor == 1.0) return {};
  if (is_power && divisor > 1.0) return {Last::Kind::kMultiply, 1.0 / divisor};
  return {Last::Kind::kDivide, canonical_nan(divisor)};
}

/// Whether all outputs have the same offset in a cache line, a multiple of the element's size.
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
  weighted_ = weighted_loop_for(dtype, op);
  if (finish.divisor == 1.0 || has_fraction(dtype)) return;
  divide_ = divide_for(dtype);
  divisor_ = static_cast<std::int64_t>(finish.divisor);
}

void Reducer::operator()(std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs,
                         Elements count,
                         Stores stores,
                         Weights weights) const {
  if (inputs.empty() || outputs.empty() || count.value < 0) {
    refuse(inputs.size(), outputs.size(), count);
  }
  if (!weights.empty()) check_weights(weights.size(), inputs.size(), weighted_);
  if (count.value == 0) return;
  if (divide_ != nullptr) return reduce_and_divide(inputs, outputs, count);
  const bool streams =
      stores == Stores::kStreaming && lie_alike(outputs, static_cast<std::size_t>(element_.value));
  const Loop loop = weights.empty() ? loop_ : weighted_;
  loop({.inputs = inputs.data(),
        .input_count = inputs.size(),
        .outputs = outputs.data(),
        .output_count = outputs.size(),
        .bytes = static_cast<std::size_t>(element_.value * count.value),
        .last = last_,
        .stores = streams ? Stores::kStreaming : Stores::kCached,
        .weights = weights.data()});
  if (streams) hwy::FlushStream();
}

/// Writes the sum to the first output and divides it there, piece by piece.
void Reducer::reduce_and_divide(std::span<const std::byte* const> inputs,
                                std::span<std::byte* const> outputs,
                                Elements count) const {
  const auto bytes = static_cast<std::size_t>(element_.value * count.value);
  std::byte* const sum = outputs[0];
  loop_({.inputs = inputs.data(),
         .input_count = inputs.size(),
         .outputs = outputs.data(),
         .output_count = 1,
         .bytes = bytes,
         .last = {},
         .stores = Stores::kCached,
         .weights = nullptr});
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t piece = std::min(kPiece, bytes - at);
    divide_(sum + at, piece, divisor_);
    for (std::byte* other : outputs.subspan(1)) std::memcpy(other + at, sum + at, piece);
  }
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
                              .last = {Last::Kind::kMultiply, canonical_nan(factor)},
                              .stores = Stores::kCached,
                              .weights = nullptr});
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
