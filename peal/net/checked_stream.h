// A stream in records with checksums (record.h), which detects damaged data. The checksums protect
// against accidents, not against attacks; for these see encrypted_stream.h. Made by handshake.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "peal/net/record.h"
#include "peal/net/stream.h"

namespace peal::net {

/// The reader gets bytes only after their whole record was checked, so it never gets a part of a
/// damaged record. Memory: up to two records. Cost: a checksum and a copy at each end.
class CheckedStream final : public Stream {
 public:
  explicit CheckedStream(Fd fd);

  Moved try_write(std::span<const std::span<const std::byte>> pieces) override;
  Moved try_read(std::span<std::byte> into) override;
  bool try_flush() override;
  bool has_unsent() const noexcept override { return has_unsent_; }
  bool has_read_ahead() const noexcept override { return has_read_ahead_; }
  Bytes unacknowledged() const override;
  int fd() const noexcept override { return fd_.get(); }
  Fd release() noexcept override { return std::move(fd_); }

 private:
  std::size_t take(std::span<std::byte> into);

  Fd fd_;
  RecordWriter writer_;
  std::span<const std::byte> unsent_;  // the unsent part of the writer's last record
  bool closed_ = false;                // nothing more can be sent
  RecordReader reader_;
  std::atomic<bool> has_unsent_ = false;
  std::atomic<bool> has_read_ahead_ = false;
};

}  // namespace peal::net
