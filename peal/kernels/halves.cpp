// f16 and bf16: floats in registers, rounded to nearest even when they are stored, with the same
// bits as base/half.h gives.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/halves.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

/// One at a time, so that all is whole.
struct F16 {
  using D = hn::ScalableTag<float>;
  using Acc = hn::VFromD<D>;
  static constexpr std::size_t kBytes = sizeof(Float16);
  static constexpr bool kHasLast = true;
  template <class Amount>
  static HWY_INLINE Acc load(const std::byte* from, Amount) {
    Float16 half;
    std::memcpy(&half, from, sizeof(half));
    return hn::Set(D(), static_cast<float>(half));
  }
  template <class Amount>
  static HWY_INLINE void store(Acc acc, std::byte* to, Amount) {
    const Float16 half(hn::GetLane(acc));
    std::memcpy(to, &half, sizeof(half));
  }
  static HWY_INLINE Acc set(double value) { return hn::Set(D(), static_cast<float>(value)); }
};

#else

/// By the CPU's own conversion, which rounds to nearest even on all targets that are left.
struct F16 {
  using D = hn::ScalableTag<float>;
  using Half = hn::Rebind<hwy::float16_t, D>;
  using Acc = hn::VFromD<D>;
  static constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(Float16);
  static constexpr bool kHasLast = true;
  template <class Amount>
  static HWY_INLINE Acc load(const std::byte* from, Amount amount) {
    return hn::PromoteTo(D(), load_vector(Half(), from, amount));
  }
  template <class Amount>
  static HWY_INLINE void store(Acc acc, std::byte* to, Amount amount) {
    store_vector(Half(), hn::DemoteTo(Half(), acc), to, amount);
  }
  static HWY_INLINE Acc set(double value) { return hn::Set(D(), static_cast<float>(value)); }
};

#endif

/// A bfloat16 is the upper half of a float, so a vector of words holds two per lane: `first` the
/// one in the lower half, `second` the one in the upper. That takes no shuffle.
struct BF16 {
  using D = hn::ScalableTag<float>;
  using Word = hn::RebindToUnsigned<D>;
  using Acc = Pair<hn::VFromD<D>>;
  static constexpr std::size_t kBytes = hn::MaxLanes(D()) * sizeof(float);
  static constexpr bool kHasLast = true;

  template <class Amount>
  static HWY_INLINE Acc load(const std::byte* from, Amount amount) {
    const auto words = load_vector(Word(), from, amount);
    return {hn::BitCast(D(), hn::ShiftLeft<16>(words)),
            hn::BitCast(D(), hn::And(words, hn::Set(Word(), 0xffff'0000u)))};
  }
  template <class Amount>
  static HWY_INLINE void store(Acc acc, std::byte* to, Amount amount) {
    const auto upper = hn::And(rounded(acc.second), hn::Set(Word(), 0xffff'0000u));
    store_vector(Word(), hn::Or(upper, hn::ShiftRight<16>(rounded(acc.first))), to, amount);
  }
  static HWY_INLINE Acc set(double value) {
    const auto v = hn::Set(D(), static_cast<float>(value));
    return {v, v};
  }

 private:
  /// The nearest bfloat16 in the upper half of each word, ties to even; the lower half is noise.
  static HWY_INLINE hn::VFromD<Word> rounded(hn::VFromD<D> v) {
    const auto bits = hn::BitCast(Word(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Word(), 1u));
    const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(Word(), 0x7fffu)));
    const auto quiet = hn::Or(bits, hn::Set(Word(), 0x0040'0000u));
    return hn::IfThenElse(hn::RebindMask(Word(), hn::IsNaN(v)), quiet, nearest);
  }
};

Loop halves(DType dtype, ReduceOp::Kind op) {
  if (dtype == DType::kF16) return fractions<F16>(op);
  return fractions<BF16>(op);
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(halves);

Loop halves_loop(DType dtype, ReduceOp::Kind op) { return HWY_DYNAMIC_DISPATCH(halves)(dtype, op); }

}  // namespace peal::kernels
#endif
