// Where a socket listens or connects: IPv4, IPv6 or a unix socket.
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
  /// As the kernel gives it.
  Address(const sockaddr* address, socklen_t size);

  /// "127.0.0.1:4711", "[::1]:4711", "unix:@name" (abstract: no file to leave behind),
  /// "unix:/path". Throws Error(usage) for anything else; names are the matter of `resolve`
  /// (resolve.h).
  static Address parse(std::string_view text);
  static Address abstract_unix(std::string_view name);

  std::string to_string() const;
  bool is_unix() const { return storage_.ss_family == AF_UNIX; }
  /// Whether it cannot be reached from another machine: 127.0.0.0/8, ::1, unix sockets.
  bool is_loopback() const;
  /// Unix sockets have no port: 0, and `with_port` changes nothing.
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
