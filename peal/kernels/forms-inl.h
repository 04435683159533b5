// How elements lie in memory and in registers, and the operators on registers. The loops include
// this file once for every instruction set.
//
// A Form is a struct with
//   Acc                         the registers that hold elements while they are reduced
//   kBytes                      the bytes of memory for one Acc
//   Acc load(p)                 from any address
//   void store(acc, p, how)     `how` is Cached, to any address, or Streamed, to an aligned one
//   kElement                    the bytes of one element; if kBytes is more, there is also
//   Narrower                    the same form for half as many elements, for the end of the memory
//   kHasLast                    whether Last and weights apply (fold.h); if so, there is also
//   Acc set(value)              every lane has this value
// An operator is a struct with `apply(a, b)` on vectors.

// Highway toggles this guard, so that the file is compiled once for each instruction set.
#if defined(PEAL_KERNELS_FORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PEAL_KERNELS_FORMS_INL_H_
#undef PEAL_KERNELS_FORMS_INL_H_
#else
#define PEAL_KERNELS_FORMS_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ---- Memory

template <class D>
inline constexpr std::size_t kVectorBytes = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>);

/// The bytes in a full register of T.
template <class T>
inline constexpr std::size_t kWidest = kVectorBytes<hn::ScalableTag<T>>;

/// Vectors for `kBytes` of memory, but not smaller than the smallest vector that a CPU handles.
template <class T, std::size_t kBytes>
using Lanes = hn::CappedTag<T, HWY_MAX(kBytes, HWY_MAX(sizeof(T), 4)) / sizeof(T)>;

/// How a vector is stored: with ordinary stores, or past the caches.
struct Cached {};
struct Streamed {};

/// Small vectors pass through an integer, because Highway loads some of them through a pointer that
/// must be aligned.
template <class D>
inline constexpr bool kIsSmall = kVectorBytes<D> <= sizeof(std::uint64_t);

/// Loads the first kBytes. The lanes after them, if any, are zero.
template <std::size_t kBytes, class D>
HWY_INLINE hn::VFromD<D> load_vector(D d, const std::byte* from) {
  if constexpr (kIsSmall<D>) {
    using Integer = hwy::UnsignedFromSize<kVectorBytes<D>>;
    Integer value = 0;
    std::memcpy(&value, from, kBytes);
    return hn::BitCast(d, hn::Set(hn::Repartition<Integer, D>(), value));
  } else {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
  }
}

template <std::size_t kBytes, class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, std::byte* to, Cached) {
  if constexpr (kIsSmall<D>) {
    using Integer = hwy::UnsignedFromSize<kVectorBytes<D>>;
    const Integer value = hn::GetLane(hn::BitCast(hn::Repartition<Integer, D>(), v));
    std::memcpy(to, &value, kBytes);
  } else {
    hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(to));
  }
}

template <std::size_t kBytes, class D>
HWY_INLINE void store_vector(D d, hn::VFromD<D> v, std::byte* to, Streamed) {
  static_assert(kBytes == kVectorBytes<D>);
  hn::Stream(v, d, reinterpret_cast<hn::TFromD<D>*>(to));
}

// ---- Forms

/// Elements that are reduced in the form that they have in memory.
template <class T, std::size_t kSize = kWidest<T>>
struct Plain {
  using D = Lanes<T, kSize>;
  using Acc = hn::VFromD<D>;
  using Narrower = Plain<T, kSize / 2>;
  static constexpr std::size_t kBytes = kSize;
  static constexpr std::size_t kElement = sizeof(T);
  static constexpr bool kHasLast = hwy::IsFloat<T>();
  static HWY_INLINE Acc load(const std::byte* from) { return load_vector<kBytes>(D(), from); }
  template <class How>
  static HWY_INLINE void store(Acc acc, std::byte* to, How how) {
    store_vector<kBytes>(D(), acc, to, how);
  }
  static HWY_INLINE Acc set(double value) { return hn::Set(D(), static_cast<T>(value)); }
};

/// Elements that take two vectors. The form decides which lane is in which vector.
template <class V>
struct Pair {
  V first;
  V second;
};

// ---- NaN

/// Replaces every NaN by the canonical NaN: positive, quiet, without payload. Otherwise the result
/// would depend on which of two NaNs an instruction keeps.
template <class V>
HWY_INLINE V with_canonical_nan(V v) {
  using T = hn::TFromV<V>;
  if constexpr (hwy::IsFloat<T>()) {
    const auto canonical_nan = hn::Set(hn::DFromV<V>(), std::numeric_limits<T>::quiet_NaN());
    return hn::IfThenElse(hn::IsNaN(v), canonical_nan, v);
  } else {
    return v;
  }
}
template <class V>
HWY_INLINE Pair<V> with_canonical_nan(Pair<V> pair) {
  return {with_canonical_nan(pair.first), with_canonical_nan(pair.second)};
}

/// A vector with a NaN if one of the registers has a NaN. It may also have a NaN if none of them
/// has.
template <class V>
HWY_INLINE V mixed(V a, V b) {
  return hn::Add(a, b);
}
template <class V>
HWY_INLINE Pair<V> mixed(Pair<V> a, Pair<V> b) {
  return {hn::Add(a.first, b.first), hn::Add(a.second, b.second)};
}
template <class V>
HWY_INLINE bool has_nan(V v) {
  return !hn::AllFalse(hn::DFromV<V>(), hn::IsNaN(v));
}
template <class V>
HWY_INLINE bool has_nan(Pair<V> pair) {
  return has_nan(hn::Add(pair.first, pair.second));
}

// ---- Operators

struct Sum {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Mul(a, b);
  }
};

struct Quotient {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Div(a, b);
  }
};

/// For floats: NaN if either value is NaN; the first of two equal values, so that the sign of zero
/// does not depend on the CPU's minimum instruction.
struct Min {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
};

/// acc + weight * value, rounded once, also on CPUs without a fused instruction.
template <class V>
HWY_INLINE V weighted_sum(V acc, V value, V weight) {
#if HWY_TARGET == HWY_SCALAR
  using D = hn::DFromV<V>;
  return hn::Set(D(), std::fma(hn::GetLane(weight), hn::GetLane(value), hn::GetLane(acc)));
#else
  return hn::MulAdd(weight, value, acc);
#endif
}
template <class V>
HWY_INLINE Pair<V> weighted_sum(Pair<V> acc, Pair<V> value, Pair<V> weight) {
  return {weighted_sum(acc.first, value.first, weight.first),
          weighted_sum(acc.second, value.second, weight.second)};
}

template <class Op, class V>
HWY_INLINE V combine(V a, V b) {
  return Op::apply(a, b);
}
template <class Op, class V>
HWY_INLINE Pair<V> combine(Pair<V> a, Pair<V> b) {
  return {Op::apply(a.first, b.first), Op::apply(a.second, b.second)};
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
