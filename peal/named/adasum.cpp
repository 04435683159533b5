#include "peal/named/adasum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/half.h"

namespace peal::named {
namespace {

constexpr Tag kTag(1);

template <class T>
auto wide(T value) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return std::complex<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}
template <>
auto wide(double value) {
  return value;
}

double product(double a, double b) { return a * b; }
double product(std::complex<double> a, std::complex<double> b) {
  return a.real() * b.real() + a.imag() * b.imag();
}

template <class T, class Wide>
T narrow(Wide value) {
  if constexpr (std::is_same_v<Wide, double>) {
    return static_cast<T>(
        static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
  } else {
    return T(static_cast<typename T::value_type>(value.real()),
             static_cast<typename T::value_type>(value.imag()));
  }
}

/// The factor of a vector with this square of its norm.
double factor(double dot, double norm) {
  const double smallest = std::sqrt(std::numeric_limits<double>::min());
  return norm < smallest ? 1.0 : 1.0 - dot / (2.0 * norm);
}

/// into[i] = adasum(a, b)[i]; `into` may be a or b.
template <class T>
void combine(const T* a, const T* b, T* into, std::size_t count) {
  double dot = 0, norm_a = 0, norm_b = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = wide(a[i]);
    const auto y = wide(b[i]);
    dot += product(x, y);
    norm_a += product(x, x);
    norm_b += product(y, y);
  }
  const double of_a = factor(dot, norm_a);
  const double of_b = factor(dot, norm_b);
  for (std::size_t i = 0; i < count; ++i) {
    into[i] = narrow<T>(wide(a[i]) * of_a + wide(b[i]) * of_b);
  }
}

using Combine = void (*)(const std::byte* a,
                         const std::byte* b,
                         std::byte* into,
                         std::size_t count);

template <class T>
void combine_bytes(const std::byte* a, const std::byte* b, std::byte* into, std::size_t count) {
  combine(reinterpret_cast<const T*>(a),
          reinterpret_cast<const T*>(b),
          reinterpret_cast<T*>(into),
          count);
}

Combine combine_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return combine_bytes<Float16>;
    case DType::kBF16:
      return combine_bytes<BFloat16>;
    case DType::kF32:
      return combine_bytes<float>;
    case DType::kF64:
      return combine_bytes<double>;
    case DType::kC64:
      return combine_bytes<std::complex<float>>;
    case DType::kC128:
      return combine_bytes<std::complex<double>>;
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      break;
  }
  throw Error(ErrorKind::kUnsupported, "Adasum is for floating and complex types");
}

}  // namespace

void adasum(ProcessGroup& group, const Buffer& data, Timeout timeout) {
  const Combine combine = combine_of(data.dtype);
  const Rank rank = group.rank();
  const int ranks = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size())));
  const auto count = static_cast<std::size_t>(data.count.value);
  auto* const mine = static_cast<std::byte*>(data.data);
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes_of(data.count, data.dtype).value));
  const Buffer theirs(memory.data(), data.count, data.dtype);
  const MessageOptions options{.tag = kTag, .timeout = timeout};

  if (rank >= ranks) {
    group.send(data, rank - ranks, options);
    group.recv(data, rank - ranks, options);
    return;
  }
  const bool has_extra = rank + ranks < group.size();
  if (has_extra) {
    group.recv(theirs, rank + ranks, options);
    combine(mine, memory.data(), mine, count);
  }
  for (int distance = 1; distance < ranks; distance *= 2) {
    const Rank peer = rank ^ distance;
    const std::array batch = {
        PointToPoint{PointToPoint::Kind::kSend, data, peer, kTag},
        PointToPoint{PointToPoint::Kind::kRecv, theirs, peer, kTag},
    };
    group.batch_isend_irecv(batch, {.timeout = timeout})->wait();
    if (rank < peer) {
      combine(mine, memory.data(), mine, count);
    } else {
      combine(memory.data(), mine, mine, count);
    }
  }
  if (has_extra) group.send(data, rank + ranks, options);
}

}  // namespace peal::named
