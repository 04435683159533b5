// Parses the URL that says how ranks meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "peal/base/units.h"

namespace peal::rendezvous {

/// env://: the environment says where ranks meet.
struct EnvironmentUrl {
  friend bool operator==(const EnvironmentUrl&, const EnvironmentUrl&) = default;
};
/// tcp://host:port, tcp://[::1]:port
struct TcpUrl {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const TcpUrl&, const TcpUrl&) = default;
};
/// file:///path
struct FileUrl {
  std::string path;
  friend bool operator==(const FileUrl&, const FileUrl&) = default;
};

struct Url {
  std::variant<EnvironmentUrl, TcpUrl, FileUrl> way;
  std::optional<Rank> rank = {};       // ?rank=0
  std::optional<int> world_size = {};  // &world_size=2
  friend bool operator==(const Url&, const Url&) = default;
};

/// Errors: usage, which quotes the URL and says what is allowed.
Url parse_url(std::string_view text);

/// A port from 1 to 65535, or nothing.
std::optional<std::uint16_t> parse_port(std::string_view text);

}  // namespace peal::rendezvous
