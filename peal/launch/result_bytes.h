// The result of a rank's function as bytes, to take it from the process of the rank to the caller.
// Both are the same program on the same machine. Used by `peal::spawn`.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "peal/base/serialize.h"
#include "peal/base/units.h"

namespace peal::launch {

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsView = false;
template <class Character, class Traits>
inline constexpr bool kIsView<std::basic_string_view<Character, Traits>> = true;
template <class T, std::size_t Extent>
inline constexpr bool kIsView<std::span<T, Extent>> = true;

/// A value whose bytes mean the same in another process. A pointer inside a struct is not noticed.
template <class T>
concept PlainValue = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
                     !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T> && !kIsView<T>;

template <class T>
constexpr bool can_be_result() {
  if constexpr (kIsVector<T>) {
    return can_be_result<typename T::value_type>();
  } else {
    return PlainValue<T> || std::is_same_v<T, std::string>;
  }
}

/// A plain value, a std::string, or a std::vector of results.
template <class T>
concept ResultValue = can_be_result<T>();

/// Whether the bytes of a vector can be copied at once.
template <class T>
inline constexpr bool kIsOneBlock =
    PlainValue<T> && !std::is_same_v<T, bool> && std::is_default_constructible_v<T>;

template <ResultValue T>
void put_result(ByteWriter& writer, const T& value) {
  if constexpr (kIsVector<T>) {
    using Element = typename T::value_type;
    writer.put_u64(value.size());
    if constexpr (kIsOneBlock<Element>) {
      writer.put_raw({reinterpret_cast<const char*>(value.data()), value.size() * sizeof(Element)});
    } else {
      for (const Element& element : value) put_result(writer, element);
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    writer.put_u64(value.size()).put_raw(value);
  } else {
    writer.put_raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
}

/// Errors: mismatch, for bytes that `put_result` did not write.
template <ResultValue T>
T get_result(ByteReader& reader) {
  if constexpr (kIsVector<T>) {
    using Element = typename T::value_type;
    const std::uint64_t size = reader.get_u64();
    T values;
    if constexpr (kIsOneBlock<Element>) {
      const std::string_view bytes =
          reader.get_raw(Bytes(static_cast<std::int64_t>(size * sizeof(Element))));
      values.resize(size);
      if (size > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      for (std::uint64_t i = 0; i < size; ++i) values.push_back(get_result<Element>(reader));
    }
    return values;
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto size = static_cast<std::int64_t>(reader.get_u64());
    return std::string(reader.get_raw(Bytes(size)));
  } else {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), reader.get_raw(Bytes(sizeof(T))).data(), sizeof(T));
    return std::bit_cast<T>(bytes);
  }
}

}  // namespace peal::launch
