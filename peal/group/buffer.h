// Typed memory that operations read and write. Borrowed: the caller keeps it alive until the
// operation has ended.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal {

/// Memory that an operation may write.
struct Buffer {
  void* data = nullptr;
  Elements count;
  DType dtype = DType::kF32;

  Buffer() = default;
  Buffer(void* d, Elements n, DType t) : data(d), count(n), dtype(t) {}
  template <Element T, std::size_t N>
  Buffer(std::span<T, N> values)  // NOLINT(google-explicit-constructor): a span is such a view
      : Buffer(values.data(), Elements(static_cast<std::int64_t>(values.size())), dtype_of<T>) {}
  template <Element T>
  Buffer(std::vector<T>& values)  // NOLINT(google-explicit-constructor)
      : Buffer(std::span<T>(values)) {}
};

template <class T>
concept ReadableElement = Element<std::remove_const_t<T>>;

/// Memory that an operation only reads.
struct ConstBuffer {
  const void* data = nullptr;
  Elements count;
  DType dtype = DType::kF32;

  ConstBuffer() = default;
  ConstBuffer(const void* d, Elements n, DType t) : data(d), count(n), dtype(t) {}
  ConstBuffer(const Buffer& b)  // NOLINT(google-explicit-constructor)
      : ConstBuffer(b.data, b.count, b.dtype) {}
  template <ReadableElement T, std::size_t N>
  ConstBuffer(std::span<T, N> values)  // NOLINT(google-explicit-constructor)
      : ConstBuffer(values.data(),
                    Elements(static_cast<std::int64_t>(values.size())),
                    dtype_of<std::remove_const_t<T>>) {}
  template <Element T>
  ConstBuffer(const std::vector<T>& values)  // NOLINT(google-explicit-constructor)
      : ConstBuffer(std::span<const T>(values)) {}
};

}  // namespace peal
