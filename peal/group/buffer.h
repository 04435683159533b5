// Typed memory for operations. Borrowed: the caller keeps it alive until the operation has ended.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
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

enum class BufferForm : unsigned char { kOne, kList };

/// The buffer argument of a collective: one buffer or a list of buffers. Each operation documents
/// what a list means. A list is borrowed until the call returns, also by an asynchronous call.
///   group->all_reduce(gradients);                   // a std::vector<float>
///   group->all_reduce({weights, biases});           // two vectors as one operation
template <class AnyBuffer>
class BasicBuffers {
 public:
  /// An empty list.
  BasicBuffers() = default;
  // The constraints exclude copies. NOLINTBEGIN(*-explicit-constructor, *-reference-overload)
  template <class T>
  requires std::convertible_to<T&&, AnyBuffer> BasicBuffers(T&& one)
      : one_(std::forward<T>(one)), is_list_(false) {}
  /// A vector, array or span of buffers.
  template <std::ranges::contiguous_range List>
  requires std::same_as<std::ranges::range_value_t<List>, AnyBuffer> BasicBuffers(const List& list)
      : list_(list) {}
  // NOLINTEND(*-explicit-constructor, *-reference-overload)
  BasicBuffers(std::initializer_list<AnyBuffer> list) : list_(list.begin(), list.size()) {}
  /// For callers that know the form only at run time. If the form is one buffer, an empty span
  /// means `AnyBuffer()`.
  BasicBuffers(std::span<const AnyBuffer> buffers, BufferForm form)
      : one_(buffers.empty() ? AnyBuffer() : buffers.front()),
        list_(buffers),
        is_list_(form == BufferForm::kList) {}

  bool is_list() const { return is_list_; }
  /// Valid as long as this object.
  std::span<const AnyBuffer> all() const { return is_list_ ? list_ : std::span(&one_, 1); }
  /// The buffer, if this is not a list.
  const AnyBuffer& one() const { return one_; }

 private:
  AnyBuffer one_;
  std::span<const AnyBuffer> list_;
  bool is_list_ = true;
};

using Buffers = BasicBuffers<Buffer>;
using ConstBuffers = BasicBuffers<ConstBuffer>;

}  // namespace peal
