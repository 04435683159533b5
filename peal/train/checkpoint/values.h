// Numbers and texts of a training run, such as the epoch. They are stored as text, which Python
// reads as well. Used in checkpoints.
#pragma once

#include <charconv>
#include <concepts>
#include <map>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace peal::train {

template <class T>
concept Arithmetic = std::is_arithmetic_v<T> && !std::same_as<T, char>;

/// Numbers keep all bits, also infinities. A bool is 0 or 1.
struct Values {
  std::map<std::string, std::string> texts = {};

  void set(const std::string& name, std::string text) { texts[name] = std::move(text); }
  void set(const std::string& name, Arithmetic auto number) { texts[name] = text_of(+number); }

  bool contains(const std::string& name) const { return texts.contains(name); }
  /// Errors: usage (no such value; number: not such a number).
  const std::string& text(const std::string& name) const;
  template <Arithmetic Number>
  Number number(const std::string& name) const;

  friend bool operator==(const Values&, const Values&) = default;

 private:
  template <class Number>
  static std::string text_of(Number number);
  [[noreturn]] static void refuse(const std::string& name, const std::string& text);
};

template <class Number>
std::string Values::text_of(Number number) {
  char text[64];  // longer than any number
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

template <Arithmetic Number>
Number Values::number(const std::string& name) const {
  const std::string& found = text(name);
  std::conditional_t<std::is_same_v<Number, bool>, int, Number> number{};
  const char* const end = found.data() + found.size();
  const auto [stop, error] = std::from_chars(found.data(), end, number);
  if (error != std::errc() || stop != end) refuse(name, found);
  return static_cast<Number>(number);
}

}  // namespace peal::train
