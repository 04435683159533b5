// f16 and bf16. Values are floats in registers, and are rounded to nearest even when they are
// stored. The bits equal those of base/half.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/f16_bf16.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

/// One number at a time.
template <class Half>
struct Single {
  using D = hn::ScalableTag<float>;
  using Acc = hn::VFromD<D>;
  static constexpr std::size_t kBytes = sizeof(Half);
  static constexpr std::size_t kElement = kBytes;
  static constexpr bool kHasLast = true;
  static HWY_INLINE Acc load(const std::byte* from) {
    Half half;
    std::memcpy(&half, from, sizeof(half));
    return hn::Set(D(), static_cast<float>(half));
  }
  template <class How>
  static HWY_INLINE void store(Acc acc, std::byte* to, How) {
    const Half half(hn::GetLane(acc));
    std::memcpy(to, &half, sizeof(half));
  }
  static HWY_INLINE Acc set(double value) { return hn::Set(D(), static_cast<float>(value)); }
};

using F16 = Single<Float16>;
using BF16 = Single<BFloat16>;

#else

/// Uses the CPU's conversion, which rounds to nearest even on all instruction sets that are
/// enabled. Within the cache, this conversion limits the speed of the loops.
template <std::size_t kSize>
struct Float16s {
  using D = hn::CappedTag<float, kSize / sizeof(Float16)>;
  using Half = hn::Rebind<hwy::float16_t, D>;
  using Acc = hn::VFromD<D>;
  using Narrower = Float16s<kSize / 2>;
  static constexpr std::size_t kBytes = kSize;
  static constexpr std::size_t kElement = sizeof(Float16);
  static constexpr bool kHasLast = true;
  static HWY_INLINE Acc load(const std::byte* from) {
    return hn::PromoteTo(D(), load_vector<kBytes>(Half(), from));
  }
  template <class How>
  static HWY_INLINE void store(Acc acc, std::byte* to, How how) {
    store_vector<kBytes>(Half(), hn::DemoteTo(Half(), acc), to, how);
  }
  static HWY_INLINE Acc set(double value) { return hn::Set(D(), static_cast<float>(value)); }
};

/// A bfloat16 is the upper half of a float, so a vector of words holds two in each lane: `first` is
/// the lower half, `second` the upper half. That needs no shuffle.
template <std::size_t kSize>
struct BFloat16s {
  using D = Lanes<float, kSize>;
  using Word = hn::RebindToUnsigned<D>;
  using Half = hn::Repartition<std::uint16_t, D>;
  using Acc = Pair<hn::VFromD<D> >;
  using Narrower = BFloat16s<kSize / 2>;
  static constexpr std::size_t kBytes = kSize;
  static constexpr std::size_t kElement = sizeof(BFloat16);
  static constexpr bool kHasLast = true;

  static HWY_INLINE Acc load(const std::byte* from) {
    const auto words = load_vector<kBytes>(Word(), from);
    return {hn::BitCast(D(), hn::ShiftLeft<16>(words)),
            hn::BitCast(D(), hn::And(words, hn::Set(Word(), 0xffff'0000u)))};
  }

  /// Rounds both vectors at once to the nearest bfloat16, ties to even. The dropped lower half,
  /// plus 0x7fff, plus 1 if the upper half is odd, carries into the upper half when rounding up.
  /// NaNs need no special handling: every NaN is the canonical NaN, whose lower half is zero and
  /// does not carry.
  template <class How>
  static HWY_INLINE void store(Acc acc, std::byte* to, How how) {
    const auto first = hn::BitCast(Word(), acc.first);
    const auto second = hn::BitCast(Word(), acc.second);
    const auto rest =
        hn::OddEven(hn::BitCast(Half(), second), hn::BitCast(Half(), hn::ShiftRight<16>(first)));
    const auto cut =
        hn::OddEven(hn::BitCast(Half(), hn::ShiftLeft<16>(second)), hn::BitCast(Half(), first));
    const auto one_if_odd = hn::And(rest, hn::Set(Half(), 1));
    const auto half_of_sum = hn::AverageRound(cut, hn::Or(one_if_odd, hn::Set(Half(), 0x7ffe)));
    const auto carry = hn::ShiftRight<15>(half_of_sum);
    store_vector<kBytes>(Word(), hn::BitCast(Word(), hn::Add(rest, carry)), to, how);
  }

  static HWY_INLINE Acc set(double value) {
    const auto v = hn::Set(D(), static_cast<float>(value));
    return {v, v};
  }
};

using F16 = Float16s<kWidest<float> / 2>;
using BF16 = BFloat16s<kWidest<float> >;

#endif

Loop f16_bf16(DType dtype, ReduceOp::Kind op) {
  if (dtype == DType::kF16) return fractions<F16>(op);
  return fractions<BF16>(op);
}

Loop weighted_f16_bf16(DType dtype) {
  if (dtype == DType::kF16) return run<F16, Sum, Weighing::kEach>;
  return run<BF16, Sum, Weighing::kEach>;
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(f16_bf16);
HWY_EXPORT(weighted_f16_bf16);

Loop f16_bf16_loop(DType dtype, ReduceOp::Kind op) {
  return HWY_DYNAMIC_DISPATCH(f16_bf16)(dtype, op);
}

Loop weighted_f16_bf16_loop(DType dtype) { return HWY_DYNAMIC_DISPATCH(weighted_f16_bf16)(dtype); }

}  // namespace peal::kernels
#endif
