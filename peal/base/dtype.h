// The element types that collectives move and reduce.
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "peal/base/half.h"
#include "peal/base/units.h"

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class DType : std::uint8_t {
  kBool = 0,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,   // two floats: real, imaginary
  kC128,  // two doubles
};

inline constexpr std::array kAllDTypes = {DType::kBool,
                                          DType::kU8,
                                          DType::kI8,
                                          DType::kI16,
                                          DType::kI32,
                                          DType::kI64,
                                          DType::kF16,
                                          DType::kBF16,
                                          DType::kF32,
                                          DType::kF64,
                                          DType::kC64,
                                          DType::kC128};

/// Size of one element.
constexpr Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
      return 1_B;
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16:
      return 2_B;
    case DType::kI32:
    case DType::kF32:
      return 4_B;
    case DType::kI64:
    case DType::kF64:
    case DType::kC64:
      return 8_B;
    case DType::kC128:
      return 16_B;
  }
  return 0_B;
}

constexpr Bytes bytes_of(Elements count, DType dtype) { return size_of(dtype) * count.value; }

/// "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128".
/// "invalid" for a number that is not a type (a corrupt message).
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "u8";
    case DType::kI8:
      return "i8";
    case DType::kI16:
      return "i16";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kC64:
      return "c64";
    case DType::kC128:
      return "c128";
  }
  return "invalid";
}

/// The C++ types that have a DType.
template <class T>
concept Element = std::same_as<T, bool> || std::same_as<T, std::uint8_t> ||
    std::same_as<T, std::int8_t> || std::same_as<T, std::int16_t> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> || std::same_as<T, Float16> ||
    std::same_as<T, BFloat16> || std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// The DType of a C++ type: `dtype_of<float>` is kF32.
template <Element T>
inline constexpr DType dtype_of = DType::kBool;
template <>
inline constexpr DType dtype_of<bool> = DType::kBool;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::kU8;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::kI8;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::kI16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::kI32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::kI64;
template <>
inline constexpr DType dtype_of<Float16> = DType::kF16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::kBF16;
template <>
inline constexpr DType dtype_of<float> = DType::kF32;
template <>
inline constexpr DType dtype_of<double> = DType::kF64;
template <>
inline constexpr DType dtype_of<std::complex<float>> = DType::kC64;
template <>
inline constexpr DType dtype_of<std::complex<double>> = DType::kC128;

}  // namespace peal
