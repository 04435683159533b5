#include "peal/rendezvous/number_variable.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {

std::optional<Number> number_variable(const Environment& environment, const std::string& name) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  const auto value = try_parse_number<int>(*text);
  if (!value) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "{}=\"{}\" is not a number: set it to a whole number, or do not set it", name, *text));
  }
  return Number{*value, fmt::format("{}={}", name, *value)};
}

std::optional<std::uint16_t> port_variable(const Environment& environment,
                                           const std::string& name) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  const auto port = parse_port(*text);
  if (!port) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}=\"{}\" is not a port: set it to a number from 1 to 65535 that is "
                            "free on rank 0's machine",
                            name,
                            *text));
  }
  return port;
}

std::optional<std::string> text_variable(const Environment& environment, const std::string& name) {
  const auto text = environment(name);
  return text && !text->empty() ? text : std::nullopt;
}

void check_range(const Number& index, const Number& size, const char* what) {
  if (size.value < 1) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: set it to 1 or more", size.origin));
  }
  if (index.value < 0 || index.value >= size.value) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} does not fit {}: {} go from 0 to {}",
                            index.origin,
                            size.origin,
                            what,
                            size.value - 1));
  }
}

}  // namespace peal::rendezvous
