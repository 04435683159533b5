// A host before a port, as in RFC 3986: "[::1]:29500".
#pragma once

#include <string>

namespace peal {

/// The host, with an IPv6 address in brackets, so that a colon may follow.
inline std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace peal
