#include "peal/kernels/kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <hwy/cache_control.h>

#include "peal/base/error.h"
#include "peal/kernels/fold.h"

namespace peal::kernels {
namespace {

using Kind = ReduceOp::Kind;

/// Enough to hide what a piece costs, and little of the first cache.
constexpr std::size_t kPiece = 2048;

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

/// Calls `use(at, bytes)` for consecutive pieces of `size` bytes that stay in the first cache from
/// one use to the next. They end where lines of `to` end, as far as elements of any size allow.
template <class Use>
void in_pieces(std::size_t size, const std::byte* to, const Use& use) {
  constexpr std::size_t kLargestElement = 16;
  const std::size_t before = reinterpret_cast<std::uintptr_t>(to) % kLine;
  std::size_t end = kPiece - before / kLargestElement * kLargestElement;
  for (std::size_t at = 0; at < size; at = end, end += kPiece) {
    end = std::min(end, size);
    use(at, end - at);
  }
}

/// Each piece is reduced in the cache and copied from there to the outputs, however they are
/// aligned.
void run_streaming(Loop loop, const Fold& fold) {
  alignas(kLine) std::byte block[kPiece];
  std::byte* const to = block;
  const Copy stream = streaming_copy();
  in_pieces(fold.bytes, fold.outputs[0], [&](std::size_t at, std::size_t bytes) {
    loop({.inputs = fold.inputs,
          .input_count = fold.input_count,
          .outputs = &to,
          .output_count = 1,
          .offset = at,
          .bytes = bytes,
          .last = fold.last});
    for (std::size_t k = 0; k < fold.output_count; ++k) stream(block, fold.outputs[k] + at, bytes);
  });
  hwy::FlushStream();
}

void copy_cached(const std::byte* from, std::byte* to, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

}  // namespace

Reducer::Reducer(DType dtype, ReduceOp::Kind op, Finish finish)
    : element_(size_of(dtype)), divisor_(finish.divisor) {
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
  Fold fold{.inputs = inputs.data(),
            .input_count = inputs.size(),
            .outputs = outputs.data(),
            .output_count = outputs.size(),
            .offset = 0,
            .bytes = static_cast<std::size_t>((element_ * count.value).value),
            .last = {}};
  if (divisor_ != 1.0) fold.last = {Last::Kind::kDivide, divisor_};
  if (stores == Stores::kStreaming) return run_streaming(loop_, fold);
  loop_(fold);
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
                              .offset = 0,
                              .bytes = static_cast<std::size_t>(bytes_of(count, dtype).value),
                              .last = {Last::Kind::kMultiply, factor}});
}

void copy(const std::byte* from, std::byte* to, Bytes size, Stores stores) {
  copy(from, std::span<std::byte* const>(&to, 1), size, stores);
}

void copy(const std::byte* from, std::span<std::byte* const> targets, Bytes size, Stores stores) {
  if (size.value <= 0 || targets.empty()) return;
  const auto bytes = static_cast<std::size_t>(size.value);
  const auto copy_piece = stores == Stores::kStreaming ? streaming_copy() : copy_cached;
  const auto to_all = [&](std::size_t at, std::size_t count) {
    for (std::byte* target : targets) {
      if (target != from) copy_piece(from + at, target + at, count);
    }
  };
  if (targets.size() == 1) {
    to_all(0, bytes);
  } else {
    in_pieces(bytes, targets[0], to_all);
  }
  if (stores == Stores::kStreaming) hwy::FlushStream();
}

}  // namespace peal::kernels
