// The operators of the reducing collectives, and the types that each operator supports.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "peal/base/dtype.h"

namespace peal {

/// How values of several ranks become one, element by element. x_r is rank r's value, n the ranks.
///
/// Integers: sums and products wrap. An average is the wrapped sum divided by n, truncated toward
/// zero, as in NCCL. Example: the average of 200 and 100 as u8 is (300 - 256) / 2 = 22.
///
/// Fractions, and each part of a complex number. Three numbers bound the error:
///   u    half the distance from 1 to the type's next number:
///        f16 2^-11, bf16 2^-8, f32 2^-24, f64 2^-53
///   s    the type's smallest positive number: f16 2^-24, bf16 2^-133, f32 2^-149, f64 2^-1074
///   e    (1 + u)^(n + 1) - 1, about (n + 1) * u
/// The operators:
///   sum  differs from the exact sum by at most e * (|x_0| + |x_1| + ...), where no partial sum
///        overflows. Partial sums of f16 and bf16 are rounded to the type where they are stored or
///        sent, so f16 overflows to infinity beyond 65504.
///   avg  differs from the exact one by at most e * (|x_0| + |x_1| + ...) / n + (n + 1) * s. The
///        average of finite numbers is finite, even if their sum overflows: contributions are
///        multiplied by the largest power of two up to 1/n before they are added.
/// A NaN in a result has the same bits on all ranks: it is the positive quiet NaN without payload
/// (f16 0x7e00, bf16 0x7fc0, f32 0x7fc00000). Only a group of one rank keeps its NaNs as they are.
struct ReduceOp {
  /// The numbers are part of the wire format: append, never reorder.
  enum class Kind : std::uint8_t {
    kSum = 0,  // x_0 + x_1 + ...          bool: or
    kProduct,  // x_0 * x_1 * ...          bool: and
    kMin,      // NaN if any is NaN        bool: and
    kMax,      // NaN if any is NaN        bool: or
    kAvg,      // (x_0 + x_1 + ...) / n    integers: truncated toward zero; not bool
    kBand,     // x_0 & x_1 & ...          integers and bool
    kBor,
    kBxor,
    kPremulSum,  // factor_0 * x_0 + factor_1 * x_1 + ...   floating and complex only
  };

  Kind kind = Kind::kSum;
  double factor = 1.0;  // for kPremulSum: the factor of this rank

  friend constexpr bool operator==(const ReduceOp&, const ReduceOp&) = default;

  static const ReduceOp kSum, kProduct, kMin, kMax, kAvg, kBand, kBor, kBxor;
  static constexpr ReduceOp premul_sum(double factor);
};

inline constexpr ReduceOp ReduceOp::kSum{Kind::kSum};
inline constexpr ReduceOp ReduceOp::kProduct{Kind::kProduct};
inline constexpr ReduceOp ReduceOp::kMin{Kind::kMin};
inline constexpr ReduceOp ReduceOp::kMax{Kind::kMax};
inline constexpr ReduceOp ReduceOp::kAvg{Kind::kAvg};
inline constexpr ReduceOp ReduceOp::kBand{Kind::kBand};
inline constexpr ReduceOp ReduceOp::kBor{Kind::kBor};
inline constexpr ReduceOp ReduceOp::kBxor{Kind::kBxor};
constexpr ReduceOp ReduceOp::premul_sum(double factor) { return {Kind::kPremulSum, factor}; }

inline constexpr std::array kAllReduceOpKinds = {ReduceOp::Kind::kSum,
                                                 ReduceOp::Kind::kProduct,
                                                 ReduceOp::Kind::kMin,
                                                 ReduceOp::Kind::kMax,
                                                 ReduceOp::Kind::kAvg,
                                                 ReduceOp::Kind::kBand,
                                                 ReduceOp::Kind::kBor,
                                                 ReduceOp::Kind::kBxor,
                                                 ReduceOp::Kind::kPremulSum};

/// "sum", "product", "min", "max", "avg", "band", "bor", "bxor", "premul_sum"; else "invalid".
constexpr std::string_view name_of(ReduceOp::Kind kind) {
  switch (kind) {
    case ReduceOp::Kind::kSum:
      return "sum";
    case ReduceOp::Kind::kProduct:
      return "product";
    case ReduceOp::Kind::kMin:
      return "min";
    case ReduceOp::Kind::kMax:
      return "max";
    case ReduceOp::Kind::kAvg:
      return "avg";
    case ReduceOp::Kind::kBand:
      return "band";
    case ReduceOp::Kind::kBor:
      return "bor";
    case ReduceOp::Kind::kBxor:
      return "bxor";
    case ReduceOp::Kind::kPremulSum:
      return "premul_sum";
  }
  return "invalid";
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}
constexpr bool is_complex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128; }

/// Whether the operator supports the type: complex numbers have no order, floating ones no bits,
/// and the average of bools is not a bool.
constexpr bool has_meaning(ReduceOp::Kind kind, DType dtype) {
  switch (kind) {
    case ReduceOp::Kind::kSum:
    case ReduceOp::Kind::kProduct:
      return true;
    case ReduceOp::Kind::kMin:
    case ReduceOp::Kind::kMax:
      return !is_complex(dtype);
    case ReduceOp::Kind::kAvg:
      return dtype != DType::kBool;
    case ReduceOp::Kind::kPremulSum:
      return is_floating(dtype) || is_complex(dtype);
    case ReduceOp::Kind::kBand:
    case ReduceOp::Kind::kBor:
    case ReduceOp::Kind::kBxor:
      return !is_floating(dtype) && !is_complex(dtype);
  }
  return false;
}

}  // namespace peal
