// A port for a test's listener. No other process gets the port meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "peal/net/socket.h"
#include "peal/system/fd.h"

namespace peal::net {

/// A free port of `host`, which is numeric. The port is reserved while this lives.
class ReservedPort final {
 public:
  explicit ReservedPort(const std::string& host = "127.0.0.1")
      : fd_(reserve(Address::parse(host + ":0"))) {}

  std::uint16_t number() const { return local_address(fd_.get()).port(); }
  std::string text() const { return std::to_string(number()); }

 private:
  Fd fd_;
};

}  // namespace peal::net
