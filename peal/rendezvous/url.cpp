#include "peal/rendezvous/url.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"

namespace peal::rendezvous {
namespace {

Error wrong(std::string_view url, std::string_view why) {
  return Error(ErrorKind::kUsage,
               fmt::format("\"{}\": {}; write env://, tcp://host:port or file:///path, followed by "
                           "?rank=0&world_size=2 if the environment does not give these",
                           url,
                           why));
}

/// Cuts `text` at the first `separator` and returns the rest, or nothing without a separator.
std::optional<std::string_view> cut(std::string_view& text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + separator.size());
  text = text.substr(0, at);
  return rest;
}

void parse_query(std::string_view url, std::string_view query, Url& result) {
  std::optional<std::string_view> rest = query;
  while (rest) {
    std::string_view name = *rest;
    rest = cut(name, "&");
    const auto value = cut(name, "=");
    const std::optional<int> number = value ? try_parse_number<int>(*value) : std::nullopt;
    if (name != "rank" && name != "world_size") {
      throw wrong(url, fmt::format("\"{}\" is neither rank nor world_size", name));
    }
    if (!number) throw wrong(url, fmt::format("{} has no number", name));
    (name == "rank" ? result.rank : result.world_size) = number;
  }
}

TcpUrl parse_tcp(std::string_view url, std::string_view place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) throw wrong(url, "it has no port");
  const auto port = parse_port(place.substr(colon + 1));
  std::string_view host = place.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw wrong(url, "an IPv6 address needs brackets, as in tcp://[::1]:29500");
  }
  if (!port) throw wrong(url, "the port is not a number from 1 to 65535");
  if (host.empty()) throw wrong(url, "it has no host");
  return {std::string(host), *port};
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = try_parse_number<std::uint16_t>(text);
  return port && *port > 0 ? port : std::nullopt;
}

Url parse_url(std::string_view text) {
  std::string_view scheme = text;
  std::optional<std::string_view> place = cut(scheme, "://");
  if (!place) throw wrong(text, "it is not a URL");
  Url url;
  if (const auto query = cut(*place, "?")) parse_query(text, *query, url);
  if (scheme == "env") {
    if (!place->empty()) throw wrong(text, "env:// takes no host or path");
  } else if (scheme == "tcp") {
    url.way = parse_tcp(text, *place);
  } else if (scheme == "file") {
    if (!place->starts_with('/')) throw wrong(text, "the path does not begin with a slash");
    url.way = FileUrl{std::string(*place)};
  } else {
    throw wrong(text, fmt::format("{}:// is not supported", scheme));
  }
  return url;
}

}  // namespace peal::rendezvous
