// The address of a socket: IPv4, IPv6 or a unix socket.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace peal::net {

/// A value: printable, parsable, comparable.
class Address {
 public:
  Address() = default;
  /// From the kernel's form.
  Address(const sockaddr* address, socklen_t size);

  /// Parses "127.0.0.1:4711", "[::1]:4711", "unix:@name" (abstract: leaves no file behind) and
  /// "unix:/path". Throws Error(usage) for anything else. For host names use `resolve` (resolve.h).
  static Address parse(std::string_view text);
  static Address abstract_unix(std::string_view name);

  std::string to_string() const;
  bool is_unix() const { return storage_.ss_family == AF_UNIX; }
  /// Whether no other machine can reach the address: 127.0.0.0/8, ::1, unix sockets.
  bool is_loopback() const;
  /// Unix sockets have no port: `port` returns 0, and `with_port` changes nothing.
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  friend bool operator==(const Address& a, const Address& b);

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace peal::net
