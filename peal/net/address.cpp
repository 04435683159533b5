#include "peal/net/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/net/resolve.h"

namespace peal::net {
namespace {

constexpr std::size_t kPathOffset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t kMaxName = sizeof(sockaddr_un::sun_path) - 1;

template <class Sockaddr>
Sockaddr as(const sockaddr* address) {
  Sockaddr result;
  std::memcpy(&result, address, sizeof result);
  return result;
}

/// Keeps only the fields that identify an address, without padding and flow labels.
sockaddr_in essence(const sockaddr_in& full) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = full.sin_port;
  result.sin_addr = full.sin_addr;
  return result;
}

sockaddr_in6 essence(const sockaddr_in6& full) {
  sockaddr_in6 result{};
  result.sin6_family = AF_INET6;
  result.sin6_port = full.sin6_port;
  result.sin6_addr = full.sin6_addr;
  result.sin6_scope_id = full.sin6_scope_id;
  return result;
}

template <class Sockaddr>
Address address_of(const Sockaddr& value) {
  return Address(reinterpret_cast<const sockaddr*>(&value), sizeof value);
}

/// `leading` is the first byte of the path: '\0' makes the name abstract.
Address unix_address(std::string_view leading, std::string_view name) {
  if (name.empty() || leading.size() + name.size() > kMaxName) {
    throw Error(ErrorKind::kUsage,
                fmt::format("\"unix:{}{}\" is not an address: the name takes 1 to {} bytes",
                            leading.empty() ? "" : "@",
                            name,
                            kMaxName - leading.size()));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, leading.data(), leading.size());
  std::memcpy(address.sun_path + leading.size(), name.data(), name.size());
  const bool abstract = !leading.empty();  // a path ends with a zero, an abstract name does not
  const std::size_t size = kPathOffset + leading.size() + name.size() + (abstract ? 0 : 1);
  return Address(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

std::optional<Address> numeric_address(std::string_view host, std::string_view port_text) {
  const auto port = try_parse_number<std::uint16_t>(port_text);
  if (!port) return std::nullopt;
  if (host.starts_with('[') && host.ends_with(']')) {
    // inet_pton does not parse scopes ("fe80::1%eth0").
    const Answer found = read_number(std::string(host.substr(1, host.size() - 2)), AF_INET6);
    if (found.addresses.empty()) return std::nullopt;
    return found.addresses.front().with_port(*port);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, std::string(host).c_str(), &address.sin_addr) != 1) return std::nullopt;
  return address_of(address).with_port(*port);
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t size) {
  const auto keep = [this](const void* bytes, std::size_t count) {
    std::memcpy(&storage_, bytes, count);
    size_ = static_cast<socklen_t>(count);
  };
  if (address->sa_family == AF_INET) {
    const sockaddr_in value = essence(as<sockaddr_in>(address));
    keep(&value, sizeof value);
  } else if (address->sa_family == AF_INET6) {
    const sockaddr_in6 value = essence(as<sockaddr_in6>(address));
    keep(&value, sizeof value);
  } else {
    keep(address, std::min<std::size_t>(size, sizeof storage_));
  }
}

Address Address::parse(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  // The system's functions would end the text at a zero byte, and accept the part before it.
  const bool is_text = text.find('\0') == std::string_view::npos;
  if (is_text && text.starts_with(kUnix)) {
    const std::string_view name = text.substr(kUnix.size());
    return name.starts_with('@') ? abstract_unix(name.substr(1)) : unix_address("", name);
  }
  const std::size_t colon = text.rfind(':');
  if (is_text && colon != std::string_view::npos) {
    if (const auto found = numeric_address(text.substr(0, colon), text.substr(colon + 1))) {
      return *found;
    }
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("\"{}\" is not an address: write 127.0.0.1:4711, [::1]:4711, unix:@name "
                          "or unix:/path",
                          text));
}

Address Address::abstract_unix(std::string_view name) {
  return unix_address(std::string_view("\0", 1), name);
}

std::string Address::to_string() const {
  if (is_unix()) {
    const auto* address = reinterpret_cast<const sockaddr_un*>(&storage_);
    if (size_ <= kPathOffset) return "unix:";
    if (address->sun_path[0] != '\0') return fmt::format("unix:{}", address->sun_path);
    return fmt::format("unix:@{}",
                       std::string_view(address->sun_path + 1, size_ - kPathOffset - 1));
  }
  std::array<char, NI_MAXHOST> host{};
  if (size_ == 0 ||
      ::getnameinfo(raw(), size_, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "nowhere";
  }
  if (storage_.ss_family == AF_INET6) return fmt::format("[{}]:{}", host.data(), port());
  return fmt::format("{}:{}", host.data(), port());
}

bool Address::is_loopback() const {
  if (storage_.ss_family == AF_INET) {
    const auto address = as<sockaddr_in>(raw());
    return ntohl(address.sin_addr.s_addr) >> 24 == 127;
  }
  if (storage_.ss_family == AF_INET6) {
    const auto address = as<sockaddr_in6>(raw());
    return IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
  }
  return is_unix();
}

std::uint16_t Address::port() const {
  if (storage_.ss_family == AF_INET) return ntohs(as<sockaddr_in>(raw()).sin_port);
  if (storage_.ss_family == AF_INET6) return ntohs(as<sockaddr_in6>(raw()).sin6_port);
  return 0;
}

Address Address::with_port(std::uint16_t port) const {
  if (storage_.ss_family == AF_INET) {
    auto address = as<sockaddr_in>(raw());
    address.sin_port = htons(port);
    return address_of(address);
  }
  if (storage_.ss_family == AF_INET6) {
    auto address = as<sockaddr_in6>(raw());
    address.sin6_port = htons(port);
    return address_of(address);
  }
  return *this;
}

bool operator==(const Address& a, const Address& b) {
  return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
}

}  // namespace peal::net
