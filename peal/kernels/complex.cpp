// The product of complex numbers: (ac - bd) + (ad + bc)i, without special handling of infinities.
// (The sum of complex numbers is the sum of their parts.)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/complex.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

template <class V>
struct Parts {
  V re;
  V im;
};

/// One number at a time.
template <class T>
struct Complex {
  using Real = Plain<T>;
  using Acc = Parts<typename Real::Acc>;
  static constexpr std::size_t kBytes = 2 * sizeof(T);
  static constexpr std::size_t kElement = kBytes;
  static constexpr bool kHasLast = false;
  static HWY_INLINE Acc load(const std::byte* from) {
    return {Real::load(from), Real::load(from + sizeof(T))};
  }
  template <class How>
  static HWY_INLINE void store(Acc acc, std::byte* to, How how) {
    Real::store(with_canonical_nan(acc.re), to, how);
    Real::store(with_canonical_nan(acc.im), to + sizeof(T), how);
  }
};

struct ComplexProduct {
  template <class V>
  static HWY_INLINE Parts<V> apply(Parts<V> a, Parts<V> b) {
    return {hn::Sub(hn::Mul(a.re, b.re), hn::Mul(a.im, b.im)),
            hn::Add(hn::Mul(a.re, b.im), hn::Mul(a.im, b.re))};
  }
};

#else

/// Real parts in the even lanes, imaginary parts in the odd lanes.
template <class T, std::size_t kSize = kWidest<T> >
struct Complex : Plain<T, kSize> {
  using Narrower = Complex<T, kSize / 2>;
  static constexpr std::size_t kElement = 2 * sizeof(T);
  static constexpr bool kHasLast = false;
  template <class How>
  static HWY_INLINE void store(typename Plain<T, kSize>::Acc acc, std::byte* to, How how) {
    Plain<T, kSize>::store(with_canonical_nan(acc), to, how);
  }
};

struct ComplexProduct {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    const hn::DFromV<V> d;
    const V by_real = hn::Mul(a, hn::DupEven(b));                       // ac, bc
    const V by_imaginary = hn::Mul(hn::Reverse2(d, a), hn::DupOdd(b));  // bd, ad
    return hn::OddEven(hn::Add(by_real, by_imaginary), hn::Sub(by_real, by_imaginary));
  }
};

#endif

Loop complex_product(DType dtype) {
  if (dtype == DType::kC64) return run<Complex<float>, ComplexProduct>;
  return run<Complex<double>, ComplexProduct>;
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(complex_product);

Loop complex_product_loop(DType dtype) { return HWY_DYNAMIC_DISPATCH(complex_product)(dtype); }

}  // namespace peal::kernels
#endif
