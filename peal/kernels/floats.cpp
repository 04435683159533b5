// Sum, weighted sum, product, minimum and maximum of f32 and f64.

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

Loop weighted_floats(DType dtype) {
  if (dtype == DType::kF32) return run<Plain<float>, Sum, Weighing::kEach>;
  return run<Plain<double>, Sum, Weighing::kEach>;
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(floats);
HWY_EXPORT(weighted_floats);

Loop floats_loop(DType dtype, ReduceOp::Kind op) { return HWY_DYNAMIC_DISPATCH(floats)(dtype, op); }

Loop weighted_floats_loop(DType dtype) { return HWY_DYNAMIC_DISPATCH(weighted_floats)(dtype); }

}  // namespace peal::kernels
#endif
