#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/bench/probe_loops.cpp"
#include "peal/bench/probe_loops.h"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace peal::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// kCount pointers; the constant keeps them in registers. kCount is 0 for a number that is known
/// only at run time.
template <class Byte, std::size_t kCount>
struct Pointers {
  explicit Pointers(std::span<Byte* const> all) {
    for (std::size_t i = 0; i < kCount; ++i) at[i] = all[i];
  }
  static constexpr std::size_t size() { return kCount; }
  Byte* operator[](std::size_t i) const { return at[i]; }
  Byte* at[kCount];
};
template <class Byte>
struct Pointers<Byte, 0> {
  explicit Pointers(std::span<Byte* const> all) : at(all) {}
  std::size_t size() const { return at.size(); }
  Byte* operator[](std::size_t i) const { return at[i]; }
  std::span<Byte* const> at;
};

template <class T, Stores kStores, std::size_t kVectors, class Inputs, class Outputs>
HWY_INLINE void combine_at(std::size_t i, const Inputs& in, const Outputs& out) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kVectors];
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kVectors; ++j) {
    sums[j] = hn::LoadU(d, reinterpret_cast<const T*>(in[0]) + i + j * lanes);
  }
  for (std::size_t r = 1; r < in.size(); ++r) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kVectors; ++j) {
      const auto next = hn::LoadU(d, reinterpret_cast<const T*>(in[r]) + i + j * lanes);
      sums[j] = hn::Add(sums[j], next);
    }
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kVectors; ++j) {
      T* const to = reinterpret_cast<T*>(out[r]) + i + j * lanes;
      if constexpr (kStores == Stores::kStreaming) {
        hn::Stream(sums[j], d, to);
      } else {
        hn::StoreU(sums[j], d, to);
      }
    }
  }
}

template <class T, Stores kStores, class Inputs, class Outputs>
void combine_all(const Inputs in, const Outputs out, std::size_t count) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) combine_at<T, kStores, 4>(i, in, out);
  for (; i + lanes <= count; i += lanes) combine_at<T, kStores, 1>(i, in, out);
  for (; i < count; ++i) {
    T sum = reinterpret_cast<const T*>(in[0])[i];
    for (std::size_t r = 1; r < in.size(); ++r) {
      sum = static_cast<T>(sum + reinterpret_cast<const T*>(in[r])[i]);
    }
    for (std::size_t r = 0; r < out.size(); ++r) reinterpret_cast<T*>(out[r])[i] = sum;
  }
  if constexpr (kStores == Stores::kStreaming) hwy::FlushStream();
}

template <class T, Stores kStores>
void combine_few(std::span<const std::byte* const> in,
                 std::span<std::byte* const> out,
                 std::size_t count) {
  const auto run = [&]<std::size_t kIn, std::size_t kOut>() {
    combine_all<T, kStores>(
        Pointers<const std::byte, kIn>(in), Pointers<std::byte, kOut>(out), count);
  };
  if (in.size() == 1 && out.size() == 1) return run.template operator()<1, 1>();
  if (in.size() == 2 && out.size() == 1) return run.template operator()<2, 1>();
  if (in.size() == 2 && out.size() == 2) return run.template operator()<2, 2>();
  if (in.size() == 4 && out.size() == 4) return run.template operator()<4, 4>();
  run.template operator()<0, 0>();
}

template <Stores kStores>
void combine_as(std::span<const std::byte* const> in,
                std::span<std::byte* const> out,
                Bytes size,
                DType dtype) {
  const std::size_t count = static_cast<std::size_t>(size / size_of(dtype));
  switch (dtype) {
    case DType::kF32:
      return combine_few<float, kStores>(in, out, count);
    case DType::kF64:
      return combine_few<double, kStores>(in, out, count);
    case DType::kI64:
      return combine_few<std::int64_t, kStores>(in, out, count);
    case DType::kI32:
      return combine_few<std::int32_t, kStores>(in, out, count);
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16:
      return combine_few<std::int16_t, kStores>(in, out, count);
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kC64:
    case DType::kC128:
      return combine_few<std::uint8_t, kStores>(in, out, static_cast<std::size_t>(size.value));
  }
}

void combine_on_target(std::span<const std::byte* const> in,
                       std::span<std::byte* const> out,
                       Bytes size,
                       DType dtype,
                       Stores stores) {
  if (stores == Stores::kStreaming) return combine_as<Stores::kStreaming>(in, out, size, dtype);
  combine_as<Stores::kPlain>(in, out, size, dtype);
}

}  // namespace peal::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace peal::bench {

HWY_EXPORT(combine_on_target);

void combine(std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs,
             Bytes size,
             DType dtype,
             Stores stores) {
  const bool aligned = std::ranges::all_of(outputs, [](const std::byte* out) {
    return reinterpret_cast<std::uintptr_t>(out) % 64 == 0;
  });
  const Stores used = aligned ? stores : Stores::kPlain;
  HWY_DYNAMIC_DISPATCH(combine_on_target)(inputs, outputs, size, dtype, used);
}

}  // namespace peal::bench
#endif
