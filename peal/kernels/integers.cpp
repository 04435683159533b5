// Sum, product, minimum and maximum of integers. Sums and products wrap: they are computed as
// unsigned numbers, which gives the same bits. An average is a sum here; kernels.cpp divides it.

#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/integers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

/// Highway does not multiply bytes, so this takes the low half of 16-bit products, for even and odd
/// bytes.
struct ByteProduct {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Mul(a, b);
#else
    const hn::DFromV<V> d;
    const hn::Repartition<std::uint16_t, decltype(d)> d16;
    const auto a16 = hn::BitCast(d16, a);
    const auto b16 = hn::BitCast(d16, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0x00ff));
    const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16));
    return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
#endif
  }
};

template <class T>
Loop integers_of(ReduceOp::Kind op) {
  using Wrapping = Plain<hwy::MakeUnsigned<T>>;
  using Multiply = std::conditional_t<sizeof(T) == 1, ByteProduct, Product>;
  if (op == ReduceOp::Kind::kSum || op == ReduceOp::Kind::kAvg) return run<Wrapping, Sum>;
  if (op == ReduceOp::Kind::kProduct) return run<Wrapping, Multiply>;
  if (op == ReduceOp::Kind::kMin) return run<Plain<T>, Min>;
  return run<Plain<T>, Max>;
}

Loop integers(DType dtype, ReduceOp::Kind op) {
  if (dtype == DType::kU8) return integers_of<std::uint8_t>(op);
  if (dtype == DType::kI8) return integers_of<std::int8_t>(op);
  if (dtype == DType::kI16) return integers_of<std::int16_t>(op);
  if (dtype == DType::kI32) return integers_of<std::int32_t>(op);
  return integers_of<std::int64_t>(op);
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(integers);

Loop integers_loop(DType dtype, ReduceOp::Kind op) {
  return HWY_DYNAMIC_DISPATCH(integers)(dtype, op);
}

}  // namespace peal::kernels
#endif
