// A stream over TLS 1.3. Its ends authenticate each other by a common key of 32 bytes, without
// certificates. Made by handshake.h, with the key that comes from the proof of the job's secret.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/net/proof.h"
#include "peal/net/stream.h"

struct ssl_st;
struct bio_method_st;

namespace peal::net {

/// Each connection gets fresh keys from a Diffie-Hellman exchange that the common key authenticates
/// (psk_dhe_ke). So the secret does not help to decrypt traffic that was recorded earlier.
/// Ciphers are AES-128-GCM and ChaCha20-Poly1305; no tickets, no early data, no renegotiation.
/// The end of a stream is not authenticated. As on any link, the end counts as a loss unless the
/// peer has announced it with a last message.
/// Memory: about 150 KiB once it is used. Source: RFC 8446.
class EncryptedStream final : public Stream {
 public:
  /// AES-GCM is safe for 2^24.5 records with one key (RFC 8446, 5.5).
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 23;

  /// Errors: resource (OpenSSL lacks TLS 1.3 or one of the ciphers).
  EncryptedStream(Fd fd,
                  Role role,
                  const std::string& key,
                  std::uint64_t records_per_key = kRecordsPerKey);
  ~EncryptedStream() override;

  /// Continues the handshake, which must be done before any other call. Returns true once it is
  /// done.
  /// Errors: peer_lost (the other end has another key or has left, or a third party is in between).
  /// Cost: one and a half round trips, and a few hundred microseconds of computing.
  bool try_handshake();
  /// What to poll for before the next `try_handshake`: POLLIN, POLLOUT.
  short interest() const;

  Moved try_write(std::span<const std::span<const std::byte>> pieces) override;
  Moved try_read(std::span<std::byte> into) override;
  bool try_flush() override;
  bool has_unsent() const noexcept override { return has_unsent_; }
  bool has_read_ahead() const noexcept override { return has_read_ahead_; }
  Bytes unacknowledged() const override;
  int fd() const noexcept override { return fd_.get(); }
  Fd release() noexcept override { return std::move(fd_); }

 private:
  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
  };
  enum class State : unsigned char { kFine, kClosed, kBroken };
  struct FreeMethod {
    void operator()(bio_method_st* method) const;
  };

  void write_record(std::span<const std::byte> record);
  std::size_t read_some(std::span<std::byte> into);
  void judge(int result, std::string_view doing);
  [[noreturn]] void fail(std::string_view doing);
  std::span<const std::byte> unsent() const { return std::span(out_).subspan(sent_); }

  Fd fd_;
  std::string key_;             // until the handshake is done
  std::vector<std::byte> out_;  // data that OpenSSL has written
  std::size_t sent_ = 0;        // the sent part of out_
  std::unique_ptr<bio_method_st, FreeMethod> to_memory_;
  std::unique_ptr<ssl_st, FreeSsl> ssl_;
  std::vector<std::byte> record_;
  std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;
  State reading_ = State::kFine;
  State writing_ = State::kFine;
  std::string flaw_;  // why the stream is broken
  std::atomic<bool> has_unsent_ = false;
  std::atomic<bool> has_read_ahead_ = false;
};

}  // namespace peal::net
