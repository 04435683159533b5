// A stream in records with checksums (record.h): what is damaged on its way is noticed. Against
// accidents alone; see encrypted_stream.h for the rest. Made by handshake.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "peal/net/record.h"
#include "peal/net/stream.h"

namespace peal::net {

/// What comes is not given away before the whole record was checked, so one that cannot be is never
/// seen in any part. Memory: up to two records. Cost: a checksum and a copy at each end.
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
  std::span<const std::byte> unsent_;  // of the writer's last record
  bool closed_ = false;                // nothing more can be sent
  RecordReader reader_;
  std::atomic<bool> has_unsent_ = false;
  std::atomic<bool> has_read_ahead_ = false;
};

}  // namespace peal::net
