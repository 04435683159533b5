// Sum, product, minimum and maximum of f32 and f64.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peal/kernels/floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "peal/kernels/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace peal::kernels::HWY_NAMESPACE {

void floats(const Fold& fold, DType dtype, ReduceOp::Kind op) {
  if (dtype == DType::kF32) return run_floats<Plain<float>>(fold, op);
  return run_floats<Plain<double>>(fold, op);
}

}  // namespace peal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace peal::kernels {

HWY_EXPORT(floats);

void fold_floats(const Fold& fold, DType dtype, ReduceOp::Kind op) {
  HWY_DYNAMIC_DISPATCH(floats)(fold, dtype, op);
}

}  // namespace peal::kernels
#endif
