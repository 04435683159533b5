// Sum, product, minimum and maximum of f32 and f64.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

Loop floats(DType dtype, ReduceOp::Kind op) {
  if (dtype == DType::kF32) return fractions<Plain<float>>(op);
  return fractions<Plain<double>>(op);
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(floats);

Loop floats_loop(DType dtype, ReduceOp::Kind op) { return HWY_DYNAMIC_DISPATCH(floats)(dtype, op); }

}  // namespace peal::kernels
#endif
