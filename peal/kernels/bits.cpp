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
struct Truth {
  using D = hn::ScalableTag<std::uint8_t>;
  using Acc = hn::VFromD<D>;
  static constexpr std::size_t kBytes = hn::MaxLanes(D());
  static constexpr bool kHasLast = false;
  template <class Amount>
  static HWY_INLINE Acc load(const std::byte* from, Amount amount) {
    return hn::Min(load_vector(D(), from, amount), hn::Set(D(), 1));
  }
  template <class Amount>
  static HWY_INLINE void store(Acc acc, std::byte* to, Amount amount) {
    store_vector(D(), acc, to, amount);
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
Loop bools(ReduceOp::Kind op) { return bitwise<Truth>(op); }

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
