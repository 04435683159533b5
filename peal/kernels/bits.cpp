// Bitwise operators, on integers of any width and on truth values.

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

/// Any nonzero byte is true; in registers, 1.
template <std::size_t kSize = kWidest<std::uint8_t>>
struct Truth : Plain<std::uint8_t, kSize> {
  using Bytes = Plain<std::uint8_t, kSize>;
  using Narrower = Truth<kSize / 2>;
  static HWY_INLINE typename Bytes::Acc load(const std::byte* from) {
    return hn::Min(Bytes::load(from), hn::Set(typename Bytes::D(), 1));
  }
};

struct And {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::And(a, b);
  }
};

struct Or {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Or(a, b);
  }
};

struct Xor {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Xor(a, b);
  }
};

template <class Form>
Loop bitwise(ReduceOp::Kind op) {
  if (op == ReduceOp::Kind::kBand) return run<Form, And>;
  if (op == ReduceOp::Kind::kBor) return run<Form, Or>;
  return run<Form, Xor>;
}

Loop bits(ReduceOp::Kind op) { return bitwise<Plain<std::uint8_t>>(op); }
Loop bools(ReduceOp::Kind op) { return bitwise<Truth<>>(op); }

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(bits);
HWY_EXPORT(bools);

Loop bits_loop(ReduceOp::Kind op) { return HWY_DYNAMIC_DISPATCH(bits)(op); }
Loop bools_loop(ReduceOp::Kind op) { return HWY_DYNAMIC_DISPATCH(bools)(op); }

}  // namespace peal::kernels
#endif
