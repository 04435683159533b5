// Numbers in environment variables, with the text that errors quote. Used by the files that read
// the variables of launchers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "peal/config/environment.h"

namespace peal::rendezvous {

/// A number and where it comes from, for errors: "RANK=3".
struct Number {
  int value = 0;
  std::string origin;
};

/// Nothing if the variable is not set. Errors: usage if it is not a whole number.
std::optional<Number> number_variable(const Environment& environment, const std::string& name);

/// Nothing if the variable is not set. Errors: usage if it is not a port.
std::optional<std::uint16_t> port_variable(const Environment& environment, const std::string& name);

/// The value, unless the variable is not set or empty.
std::optional<std::string> text_variable(const Environment& environment, const std::string& name);

/// 0 <= index.value < size.value. `what`: "ranks". Errors: usage.
void check_range(const Number& index, const Number& size, const char* what);

}  // namespace peal::rendezvous
