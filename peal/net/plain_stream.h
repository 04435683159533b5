// A stream that sends its bytes unchanged. Used inside a host, and between hosts unless the user
// sets PEAL_TLS or PEAL_INTEGRITY. Made by handshake.h.
#pragma once

#include <utility>

#include "peal/net/stream.h"
#include "peal/net/tcp_options.h"

namespace peal::net {

/// Never holds bytes back.
class PlainStream final : public Stream {
 public:
  explicit PlainStream(Fd fd) : fd_(std::move(fd)) {}

  Moved try_write(std::span<const std::span<const std::byte>> pieces) override {
    return net::try_write(fd_.get(), pieces);
  }
  Moved try_read(std::span<std::byte> into) override { return net::try_read(fd_.get(), into); }
  bool try_flush() override { return true; }
  bool has_unsent() const noexcept override { return false; }
  bool has_read_ahead() const noexcept override { return false; }
  Bytes unacknowledged() const override { return net::unacknowledged(fd_.get()); }
  int fd() const noexcept override { return fd_.get(); }
  Fd release() noexcept override { return std::move(fd_); }

 private:
  Fd fd_;
};

}  // namespace peal::net
