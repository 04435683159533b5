// Sum, product, minimum and maximum of integers. Sums and products wrap: they are those of the
// unsigned types, which have the same bits.

#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/integers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

/// Highway multiplies no bytes, so the low half of 16-bit products is taken, for even and odd
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
void run_integers(const Fold& fold, ReduceOp::Kind op) {
  using Wrapping = Plain<hwy::MakeUnsigned<T>>;
  using Multiply = std::conditional_t<sizeof(T) == 1, ByteProduct, Product>;
  if (op == ReduceOp::Kind::kSum) return run<Wrapping, Sum>(fold);
  if (op == ReduceOp::Kind::kProduct) return run<Wrapping, Multiply>(fold);
  if (op == ReduceOp::Kind::kMin) return run<Plain<T>, Min>(fold);
  return run<Plain<T>, Max>(fold);
}

void integers(const Fold& fold, DType dtype, ReduceOp::Kind op) {
  if (dtype == DType::kU8) return run_integers<std::uint8_t>(fold, op);
  if (dtype == DType::kI8) return run_integers<std::int8_t>(fold, op);
  if (dtype == DType::kI16) return run_integers<std::int16_t>(fold, op);
  if (dtype == DType::kI32) return run_integers<std::int32_t>(fold, op);
  return run_integers<std::int64_t>(fold, op);
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(integers);

void fold_integers(const Fold& fold, DType dtype, ReduceOp::Kind op) {
  HWY_DYNAMIC_DISPATCH(integers)(fold, dtype, op);
}

}  // namespace peal::kernels
#endif
