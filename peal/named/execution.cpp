#include "peal/named/execution.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/half.h"
#include "peal/base/reduce_op.h"
#include "peal/kernels/kernels.h"
#include "peal/named/adasum.h"

namespace peal::named {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

/// result * factor / divisor
struct Scale {
  double factor = 1.0;
  double divisor = 1.0;
};

/// How a reduction is carried out: the operator, and what happens to its result.
struct Plan {
  ReduceOp op;
  Scale postscale;
};

bool is_integer(DType dtype) { return !is_floating(dtype) && !is_complex(dtype); }

ReduceOp op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
      return ReduceOp::kAvg;
    case Reduction::kSum:
      return ReduceOp::kSum;
    case Reduction::kMin:
      return ReduceOp::kMin;
    case Reduction::kMax:
      return ReduceOp::kMax;
    case Reduction::kProduct:
      return ReduceOp::kProduct;
    case Reduction::kAdasum:
      break;
  }
  throw Error(ErrorKind::kBug, "Adasum has no ReduceOp");
}

/// An average of integers with a factor is rounded once: trunc(sum * postscale / n). Without a
/// factor the operator divides exactly.
Plan plan_of(const Request& request, int ranks) {
  if (request.reduction == Reduction::kAverage && request.postscale != 1.0 &&
      is_integer(request.dtype)) {
    return {ReduceOp::kSum, {request.postscale, static_cast<double>(ranks)}};
  }
  return {op_of(request.reduction), {request.postscale}};
}

/// Truncated toward zero. A value out of range becomes the nearest value of the type. NaN becomes
/// 0.
template <class T>
T truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) {
    return std::numeric_limits<T>::lowest();
  }
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

template <class T>
void scale_integers(void* data, std::size_t count, Scale by) {
  T* const values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = truncated<T>(static_cast<double>(values[i]) * by.factor / by.divisor);
  }
}

/// Integers are computed in f64 and truncated toward zero.
void scale(const Buffer& data, Scale by) {
  if (by.factor == by.divisor) return;
  const std::size_t count = index(data.count.value);
  auto* const bytes = static_cast<std::byte*>(data.data);
  switch (data.dtype) {
    case DType::kBool:
    case DType::kU8:
      return scale_integers<std::uint8_t>(bytes, count, by);
    case DType::kI8:
      return scale_integers<std::int8_t>(bytes, count, by);
    case DType::kI16:
      return scale_integers<std::int16_t>(bytes, count, by);
    case DType::kI32:
      return scale_integers<std::int32_t>(bytes, count, by);
    case DType::kI64:
      return scale_integers<std::int64_t>(bytes, count, by);
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
    case DType::kC64:
    case DType::kC128:
      return kernels::scale(bytes, bytes, data.count, data.dtype, by.factor / by.divisor);
  }
}

template <class T>
void fill(void* data, std::size_t count, T value) {
  std::fill_n(static_cast<T*>(data), count, value);
}

/// Fills with the value of which x op value = x.
template <class T>
void fill_neutral(void* data, std::size_t count, Reduction reduction) {
  constexpr bool is_signed_float = std::numeric_limits<T>::has_infinity;
  switch (reduction) {
    case Reduction::kMin:
      if constexpr (is_signed_float) return fill(data, count, std::numeric_limits<T>::infinity());
      return fill(data, count, std::numeric_limits<T>::max());
    case Reduction::kMax:
      if constexpr (is_signed_float) return fill(data, count, -std::numeric_limits<T>::infinity());
      return fill(data, count, std::numeric_limits<T>::lowest());
    case Reduction::kProduct:
      return fill(data, count, T(1));
    case Reduction::kAverage:
    case Reduction::kSum:
    case Reduction::kAdasum:
      return fill(data, count, T(0));
  }
}

template <class Half>
void fill_neutral_half(void* data, std::size_t count, Reduction reduction) {
  float value = 0;
  fill_neutral<float>(&value, 1, reduction);
  fill(data, count, Half(value));
}

template <class Complex>
void fill_neutral_complex(void* data, std::size_t count, Reduction reduction) {
  fill(data, count, reduction == Reduction::kProduct ? Complex(1) : Complex(0));
}

void fill_neutral(const Buffer& data, Reduction reduction) {
  const std::size_t count = index(data.count.value);
  switch (data.dtype) {
    case DType::kBool: {
      const bool is_and = reduction == Reduction::kMin || reduction == Reduction::kProduct;
      return fill<std::uint8_t>(data.data, count, is_and ? 1 : 0);
    }
    case DType::kU8:
      return fill_neutral<std::uint8_t>(data.data, count, reduction);
    case DType::kI8:
      return fill_neutral<std::int8_t>(data.data, count, reduction);
    case DType::kI16:
      return fill_neutral<std::int16_t>(data.data, count, reduction);
    case DType::kI32:
      return fill_neutral<std::int32_t>(data.data, count, reduction);
    case DType::kI64:
      return fill_neutral<std::int64_t>(data.data, count, reduction);
    case DType::kF16:
      return fill_neutral_half<Float16>(data.data, count, reduction);
    case DType::kBF16:
      return fill_neutral_half<BFloat16>(data.data, count, reduction);
    case DType::kF32:
      return fill_neutral<float>(data.data, count, reduction);
    case DType::kF64:
      return fill_neutral<double>(data.data, count, reduction);
    case DType::kC64:
      return fill_neutral_complex<std::complex<float>>(data.data, count, reduction);
    case DType::kC128:
      return fill_neutral_complex<std::complex<double>>(data.data, count, reduction);
  }
}

/// Memory for members that this rank has not submitted.
class Scratch {
 public:
  Buffer buffer(Elements count, DType dtype) {
    memory_.emplace_back(index(bytes_of(count, dtype).value));
    return {memory_.back().data(), count, dtype};
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
};

/// The buffers in order, as one buffer if each begins where the one before it ends.
class Contiguous {
 public:
  explicit Contiguous(std::vector<Buffer> buffers) : buffers_(std::move(buffers)) {
    for (std::size_t i = 0; i + 1 < buffers_.size(); ++i) {
      const Buffer& one = buffers_[i];
      if (static_cast<std::byte*>(one.data) + bytes_of(one.count, one.dtype).value !=
          buffers_[i + 1].data) {
        return;
      }
    }
    whole_ = buffers_.front();
    for (std::size_t i = 1; i < buffers_.size(); ++i) whole_.count += buffers_[i].count;
    is_whole_ = true;
  }

  Buffers get() const { return is_whole_ ? Buffers(whole_) : Buffers(buffers_); }

 private:
  std::vector<Buffer> buffers_;
  Buffer whole_;
  bool is_whole_ = false;
};

/// From this size on, an operation is about as fast alone as with others, and needs no copy if the
/// memory is registered. A list of buffers is always copied.
constexpr Bytes kLarge = 256_KiB;

/// Calls `call` for each large buffer, and once for all other buffers. The sizes are the same on
/// all ranks.
template <class Call>
void for_large_and_others(std::span<const Buffer> buffers, Call&& call) {
  std::vector<Buffer> others;
  for (const Buffer& one : buffers) {
    if (bytes_of(one.count, one.dtype) >= kLarge) {
      call(Buffers(one));
    } else {
      others.push_back(one);
    }
  }
  if (!others.empty()) call(Contiguous(std::move(others)).get());
}

/// Returns how to scale the result.
Scale all_reduce(ProcessGroup& group, const Request& first, std::span<const Buffer> buffers) {
  if (first.reduction == Reduction::kAdasum) {
    for (const Buffer& one : buffers) adasum(group, one);
    return {first.postscale};
  }
  const Plan plan = plan_of(first, group.size());
  for_large_and_others(buffers,
                       [&](const Buffers& data) { group.all_reduce(data, {.op = plan.op}); });
  return plan.postscale;
}

void run_all_reduce(ProcessGroup& group, std::span<const Member> members) {
  const Request& first = *members.front().request;
  Scratch scratch;
  std::vector<Buffer> buffers;
  buffers.reserve(members.size());
  for (const Member& member : members) {
    if (member.operation != nullptr) {
      buffers.push_back(member.operation->memory().output);
      scale(buffers.back(), {first.prescale});
    } else {
      buffers.push_back(scratch.buffer(elements_of(*member.request), first.dtype));
      fill_neutral(buffers.back(), first.reduction);
    }
  }
  const Scale postscale = all_reduce(group, first, buffers);
  for (const Buffer& buffer : buffers) scale(buffer, postscale);
}

void run_broadcast(ProcessGroup& group, std::span<const Member> members) {
  const Request& first = *members.front().request;
  Scratch scratch;
  std::vector<Buffer> buffers;
  buffers.reserve(members.size());
  for (const Member& member : members) {
    buffers.push_back(member.operation != nullptr
                          ? member.operation->memory().output
                          : scratch.buffer(elements_of(*member.request), first.dtype));
  }
  for_large_and_others(buffers, [&](const Buffers& data) { group.broadcast(data, first.root); });
}

/// The rows of all ranks, by member and rank.
std::vector<std::vector<std::int64_t>> exchange_rows(ProcessGroup& group,
                                                     std::span<const Member> members) {
  std::vector<std::int64_t> mine;
  mine.reserve(members.size());
  for (const Member& member : members) {
    mine.push_back(member.operation != nullptr ? rows_of(member.operation->request()) : 0);
  }
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> all(members.size() * ranks);
  group.all_gather(mine, all);
  std::vector<std::vector<std::int64_t>> rows(members.size());
  for (std::size_t member = 0; member < members.size(); ++member) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      rows[member].push_back(all[rank * members.size() + member]);
    }
  }
  return rows;
}

std::vector<Elements> times(std::span<const std::int64_t> rows, Elements row) {
  std::vector<Elements> counts;
  counts.reserve(rows.size());
  for (const std::int64_t one : rows) counts.push_back(row * one);
  return counts;
}

std::int64_t sum_of(std::span<const std::int64_t> rows) {
  std::int64_t sum = 0;
  for (const std::int64_t one : rows) sum += one;
  return sum;
}

Buffer output_of(const Member& member, std::span<const std::int64_t> rows, Scratch& scratch) {
  if (member.operation != nullptr) return member.operation->memory().allocate(rows);
  return scratch.buffer(row_elements_of(*member.request) * sum_of(rows), member.request->dtype);
}

ConstBuffer input_of(const Member& member) {
  if (member.operation != nullptr) return member.operation->memory().input;
  return {nullptr, Elements(0), member.request->dtype};
}

void run_all_gather(ProcessGroup& group, std::span<const Member> members) {
  const std::vector<std::vector<std::int64_t>> rows = exchange_rows(group, members);
  Scratch scratch;
  std::vector<ConstBuffer> equal_in;
  std::vector<Buffer> equal_out;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Buffer out = output_of(members[i], rows[i], scratch);
    const ConstBuffer in = input_of(members[i]);
    if (std::ranges::all_of(rows[i], [&](std::int64_t one) { return one == rows[i].front(); })) {
      equal_in.push_back(in);
      equal_out.push_back(out);
    } else {
      const auto counts = times(rows[i], row_elements_of(*members[i].request));
      group.all_gather(in, out, {.counts = counts});
    }
  }
  if (equal_in.size() == 1) group.all_gather(equal_in.front(), equal_out.front());
  if (equal_in.size() > 1) group.all_gather(equal_in, equal_out);
}

void run_all_to_all(ProcessGroup& group, const Member& member) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> to(ranks);
  if (member.operation != nullptr) to = member.operation->memory().splits;
  std::vector<std::int64_t> from(ranks);
  group.all_to_all(to, from);
  Scratch scratch;
  const Buffer out = output_of(member, from, scratch);
  const Elements row = row_elements_of(*member.request);
  group.all_to_all(input_of(member), out, {.to = times(to, row), .from = times(from, row)});
}

void run_reduce_scatter(ProcessGroup& group, const Member& member) {
  const Request& request = *member.request;
  const std::vector<std::int64_t> rows = divided_rows(rows_of(request), group.size());
  const auto counts = times(rows, row_elements_of(request));
  Scratch scratch;
  Buffer in, out;
  if (member.operation != nullptr) {
    in = member.operation->memory().input;
    out = member.operation->memory().output;
    scale(in, {request.prescale});
  } else {
    in = scratch.buffer(elements_of(request), request.dtype);
    out = scratch.buffer(counts[static_cast<std::size_t>(group.rank())], request.dtype);
    fill_neutral(in, request.reduction);
  }
  const Plan plan = plan_of(request, group.size());
  group.reduce_scatter(in, out, {.op = plan.op, .counts = counts});
  scale(out, plan.postscale);
}

void run(ProcessGroup& group, std::span<const Member> members) {
  switch (members.front().request->kind) {
    case Kind::kAllReduce:
      return run_all_reduce(group, members);
    case Kind::kAllGather:
      return run_all_gather(group, members);
    case Kind::kBroadcast:
      return run_broadcast(group, members);
    case Kind::kAllToAll:
      return run_all_to_all(group, members.front());
    case Kind::kReduceScatter:
      return run_reduce_scatter(group, members.front());
    case Kind::kBarrier:
    case Kind::kAgreement:
      return;  // the agreement itself was the operation
  }
}

}  // namespace

std::vector<std::int64_t> divided_rows(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> result;
  for (int rank = 0; rank < ranks; ++rank) {
    result.push_back(rows / ranks + (rank < rows % ranks ? 1 : 0));
  }
  return result;
}

bool has_meaning(Reduction reduction, DType dtype) {
  if (reduction == Reduction::kAdasum) return is_floating(dtype) || is_complex(dtype);
  return peal::has_meaning(op_of(reduction).kind, dtype);
}

void execute(ProcessGroup& group, std::span<const Member> members, TimelineSwitch& timeline) {
  timeline.with([&](Timeline& line) {
    for (const Member& member : members) {
      line.began(*member.request);
      line.activity_began(*member.request,
                          fmt::format("PEAL_{}", capitals_of(member.request->kind)));
    }
  });
  run(group, members);
  timeline.with([&](Timeline& line) {
    for (const Member& member : members) {
      line.activity_ended(*member.request);
      line.ended(*member.request);
    }
  });
}

}  // namespace peal::named
