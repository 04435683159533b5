// Where the ranks of a test meet: a port that nobody else is given meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "peal/base/fd.h"
#include "peal/net/socket.h"

namespace peal::testing {

/// A port of 127.0.0.1 at which a rank can listen while this lives.
class ReservedPort final {
 public:
  ReservedPort() : fd_(net::reserve(net::Address::parse("127.0.0.1:0"))) {}

  std::uint16_t number() const { return net::local_address(fd_.get()).port(); }
  std::string text() const { return std::to_string(number()); }

 private:
  Fd fd_;
};

}  // namespace peal::testing
