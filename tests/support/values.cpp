#include "tests/support/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace peal::testing {
namespace {

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Bytes [begin, begin + count) of an endless row that depends on the seed.
std::vector<std::byte> row_of_bytes(std::uint64_t seed, std::int64_t begin, std::int64_t count) {
  constexpr std::int64_t kWord = sizeof(std::uint64_t);
  const std::int64_t first = begin / kWord;
  std::vector<std::uint64_t> words(static_cast<std::size_t>(count / kWord + 2));
  auto place = static_cast<std::uint64_t>(first);
  for (std::uint64_t& word : words) {
    word = (seed + 1) * 0x9e37'79b9'7f4a'7c15u + place++;
    word = (word ^ (word >> 31)) * 0xbf58'476d'1ce4'e5b9u;
    word = (word ^ (word >> 29)) * 0x94d0'49bb'1331'11ebu;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  if (count > 0) {
    std::memcpy(bytes.data(),
                reinterpret_cast<const std::byte*>(words.data()) + (begin - first * kWord),
                bytes.size());
  }
  return bytes;
}

/// Operands repeat after this many elements: few enough to compute them once for a buffer, and
/// never the size of a block or piece.
constexpr std::int64_t kPeriod = 97;

/// The allowed error of a result: one rounding of the division of an average.
double tolerance(DType dtype, ReduceOp::Kind op) {
  if (op != ReduceOp::Kind::kAvg) return 0;
  switch (dtype) {
    case DType::kF16:
      return 1.0 / 1024;
    case DType::kBF16:
      return 1.0 / 128;
    case DType::kF32:
    case DType::kC64:
      return 1e-6;
    case DType::kF64:
    case DType::kC128:
      return 1e-14;
    case DType::kBool:  // whole numbers are exact
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return 0;
  }
  return 0;
}

}  // namespace

Values::Values(DType dtype, std::int64_t count)
    : dtype_(dtype),
      count_(count),
      owned_(static_cast<std::size_t>(bytes_of(Elements(count), dtype).value)),
      data_(owned_.data()) {}

Values::Values(std::byte* data, DType dtype, std::int64_t count)
    : dtype_(dtype), count_(count), data_(data) {}

Buffer Values::buffer(std::int64_t offset, std::int64_t count) {
  return Buffer(element(offset), Elements(count < 0 ? count_ - offset : count), dtype_);
}

std::byte* Values::element(std::int64_t index) const {
  return data_ + bytes_of(Elements(index), dtype_).value;
}

void Values::set(std::int64_t index, std::complex<double> value) {
  std::byte* to = element(index);
  const double real = value.real();
  switch (dtype_) {
    case DType::kBool:
      store(to, static_cast<std::uint8_t>(real != 0));
      break;
    case DType::kU8:
      store(to, static_cast<std::uint8_t>(real));
      break;
    case DType::kI8:
      store(to, static_cast<std::int8_t>(real));
      break;
    case DType::kI16:
      store(to, static_cast<std::int16_t>(real));
      break;
    case DType::kI32:
      store(to, static_cast<std::int32_t>(real));
      break;
    case DType::kI64:
      store(to, static_cast<std::int64_t>(real));
      break;
    case DType::kF16:
      store(to, Float16(static_cast<float>(real)));
      break;
    case DType::kBF16:
      store(to, BFloat16(static_cast<float>(real)));
      break;
    case DType::kF32:
      store(to, static_cast<float>(real));
      break;
    case DType::kF64:
      store(to, real);
      break;
    case DType::kC64:
      store(to, std::complex<float>(value));
      break;
    case DType::kC128:
      store(to, value);
      break;
  }
}

std::complex<double> Values::get(std::int64_t index) const {
  const std::byte* from = element(index);
  switch (dtype_) {
    case DType::kBool:
    case DType::kU8:
      return load<std::uint8_t>(from);
    case DType::kI8:
      return load<std::int8_t>(from);
    case DType::kI16:
      return load<std::int16_t>(from);
    case DType::kI32:
      return load<std::int32_t>(from);
    case DType::kI64:
      return static_cast<double>(load<std::int64_t>(from));
    case DType::kF16:
      return static_cast<double>(static_cast<float>(load<Float16>(from)));
    case DType::kBF16:
      return static_cast<double>(static_cast<float>(load<BFloat16>(from)));
    case DType::kF32:
      return static_cast<double>(load<float>(from));
    case DType::kF64:
      return load<double>(from);
    case DType::kC64:
      return std::complex<double>(load<std::complex<float>>(from));
    case DType::kC128:
      return load<std::complex<double>>(from);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void Values::copy(const Values& from, std::int64_t to, std::int64_t count) {
  std::copy_n(from.data_, bytes_of(Elements(count), dtype_).value, element(to));
}

void Values::fill_bytes(std::uint64_t seed) {
  const auto row = row_of_bytes(seed, 0, bytes_of(Elements(count_), dtype_).value);
  std::copy(row.begin(), row.end(), data_);
}

std::string Values::compare_bytes(std::uint64_t seed,
                                  std::int64_t from,
                                  std::int64_t offset,
                                  std::int64_t count) const {
  const std::int64_t size = size_of(dtype_).value;
  const auto due = row_of_bytes(seed, from * size, count * size);
  const std::byte* const actual = data_ + offset * size;
  if (due.empty() || std::memcmp(due.data(), actual, due.size()) == 0) return "";
  const auto wrong = std::mismatch(due.begin(), due.end(), actual).first - due.begin();
  return fmt::format("byte {} of element {} differs", wrong % size, offset + wrong / size);
}

std::complex<double> operand(ReduceOp::Kind op, DType dtype, Rank rank, std::int64_t index) {
  index %= kPeriod;
  const auto mixed = [&](std::int64_t a, std::int64_t b, std::int64_t modulus) {
    return static_cast<double>((rank * a + index * b) % modulus);
  };
  double real = 0;
  switch (op) {
    case ReduceOp::Kind::kSum:
    case ReduceOp::Kind::kAvg:
      real = mixed(7, 3, 5) + 1;
      break;
    case ReduceOp::Kind::kPremulSum:
      real = 2 * mixed(7, 3, 5) + 2;
      break;
    case ReduceOp::Kind::kProduct:
      real = mixed(3, 1, 5) == 0 ? 2 : 1;
      break;
    case ReduceOp::Kind::kMin:
    case ReduceOp::Kind::kMax:
      real = mixed(31, 17, 100);
      break;
    case ReduceOp::Kind::kBand:
    case ReduceOp::Kind::kBor:
    case ReduceOp::Kind::kBxor:
      real = mixed(37, 11, 128);
      break;
  }
  if (dtype == DType::kBool) return mixed(5, 2, 3) == 0 ? 0 : 1;
  if (!is_complex(dtype) || op == ReduceOp::Kind::kProduct) return real;
  return {real, 2 * mixed(1, 2, 3)};
}

std::complex<double> reduced(ReduceOp::Kind op, DType dtype, int ranks, std::int64_t index) {
  std::complex<double> total = operand(op, dtype, 0, index);
  for (Rank rank = 1; rank < ranks; ++rank) {
    const std::complex<double> next = operand(op, dtype, rank, index);
    const auto a = static_cast<std::int64_t>(total.real());
    const auto b = static_cast<std::int64_t>(next.real());
    switch (op) {
      case ReduceOp::Kind::kSum:
      case ReduceOp::Kind::kAvg:
      case ReduceOp::Kind::kPremulSum:
        total += next;
        break;
      case ReduceOp::Kind::kProduct:
        total *= next;
        break;
      case ReduceOp::Kind::kMin:
        total = std::fmin(total.real(), next.real());
        break;
      case ReduceOp::Kind::kMax:
        total = std::fmax(total.real(), next.real());
        break;
      case ReduceOp::Kind::kBand:
        total = static_cast<double>(a & b);
        break;
      case ReduceOp::Kind::kBor:
        total = static_cast<double>(a | b);
        break;
      case ReduceOp::Kind::kBxor:
        total = static_cast<double>(a ^ b);
        break;
    }
  }
  if (op == ReduceOp::Kind::kAvg) {
    total /= ranks;
    if (!is_floating(dtype) && !is_complex(dtype)) total = std::trunc(total.real());
  }
  if (op == ReduceOp::Kind::kPremulSum) total *= 0.5;
  if (dtype == DType::kBool) total = total.real() != 0 ? 1 : 0;
  return total;
}

void fill_operands(Values& values, ReduceOp::Kind op, Rank rank, std::int64_t from) {
  Values period(values.dtype(), std::min(values.count(), kPeriod));
  for (std::int64_t i = 0; i < period.count(); ++i) {
    period.set(i, operand(op, values.dtype(), rank, from + i));
  }
  for (std::int64_t i = 0; i < values.count(); i += kPeriod) {
    values.copy(period, i, std::min(values.count() - i, kPeriod));
  }
}

std::string compare_reduced(const Values& values,
                            ReduceOp::Kind op,
                            int ranks,
                            std::int64_t from,
                            std::int64_t offset,
                            std::int64_t count) {
  std::vector<std::complex<double>> period;
  for (std::int64_t i = 0; i < std::min(count, kPeriod); ++i) {
    period.push_back(reduced(op, values.dtype(), ranks, from + i));
  }
  const double relative = tolerance(values.dtype(), op);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::complex<double> expected = period[static_cast<std::size_t>(i % kPeriod)];
    const std::complex<double> actual = values.get(offset + i);
    if (actual == expected) continue;
    if (!(std::abs(actual - expected) <= relative * std::abs(expected))) {
      return fmt::format("element {} is {}+{}i instead of {}+{}i",
                         offset + i,
                         actual.real(),
                         actual.imag(),
                         expected.real(),
                         expected.imag());
    }
  }
  return "";
}

}  // namespace peal::testing
