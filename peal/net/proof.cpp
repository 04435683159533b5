#include "peal/net/proof.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/net/mac.h"

namespace peal::net {
namespace {

constexpr std::string_view kMagic = "peal/net";
constexpr std::uint16_t kVersion = 2;  // since 2 the greeting contains the protection
constexpr std::size_t kNonceSize = 32;
constexpr std::size_t kGreetingSize = kMagic.size() + 2 + 1 + 1 + 4 + kNonceSize;

Error is_a_stranger(int fd) {
  return Error(ErrorKind::kUsage,
               fmt::format("{} is not a peal process: another program uses this port; choose "
                           "another MASTER_PORT, or find the program that connects",
                           peer_name(fd)));
}

Error has_another_protection(int fd, LinkProtection other, LinkProtection own) {
  return Error(ErrorKind::kUsage,
               fmt::format("{} was configured with {}, but this process with {}: give all ranks "
                           "the same PEAL_TLS and PEAL_INTEGRITY",
                           peer_name(fd),
                           settings_of(other),
                           settings_of(own)));
}

Error does_not_know_the_secret(int fd, const ProofContext& context) {
  return Error(
      ErrorKind::kUsage,
      fmt::format("the other end does not know this job's secret ({}, connection \"{}\" of "
                  "job \"{}\"{}): give all ranks the same PEAL_SECRET, and each job its own "
                  "port",
                  peer_name(fd),
                  context.purpose,
                  context.job,
                  context.secret.empty() ? ", this process has no secret" : ""));
}

}  // namespace

void check(const ProofContext& context) {
  if (context.protection != LinkProtection::kEncrypted || !context.secret.empty()) return;
  throw Error(ErrorKind::kUsage,
              "PEAL_TLS=on needs a secret to authenticate the ranks: give all ranks the same "
              "PEAL_SECRET or PEAL_SECRET_FILE (`peal run` makes one)");
}

Proof::Proof(Role role, ProofContext context, const Hello& self)
    : role_(role), context_(std::move(context)), own_nonce_(random_bytes(kNonceSize)), self_(self) {
  check(context_);
  ByteWriter greeting;
  greeting.put_raw(kMagic).put_u16(kVersion).put_u8(static_cast<std::uint8_t>(role));
  greeting.put_u8(static_cast<std::uint8_t>(context_.protection));
  greeting.put_i32(self.rank).put_raw(own_nonce_);
  out_ = std::move(greeting).take();
}

short Proof::interest() const { return out_.empty() ? POLLIN : POLLOUT; }

bool Proof::flush(int fd) {
  while (!out_.empty()) {
    const std::array pieces = {bytes_of(out_)};
    const Moved moved = try_write(fd, pieces);
    if (moved.closed) {
      throw Error(ErrorKind::kPeerLost,
                  fmt::format("{} closed the connection before it proved that it knows this job's "
                              "secret",
                              peer_name(fd)));
    }
    if (moved.bytes == 0_B) return false;
    out_.erase(0, static_cast<std::size_t>(moved.bytes.value));
  }
  return true;
}

/// Reads until `in_` has `size` bytes, and never more. Returns false if they have not all come yet.
bool Proof::fill(int fd, std::size_t size) {
  while (in_.size() < size) {
    std::array<std::byte, std::max(kGreetingSize, kMacSize)> chunk;
    const Moved moved = try_read(fd, std::span(chunk).first(size - in_.size()));
    if (moved.closed) {
      throw Error(ErrorKind::kPeerLost,
                  fmt::format("{} closed the connection before it proved that it knows this job's "
                              "secret; its output may say why",
                              peer_name(fd)));
    }
    if (moved.bytes == 0_B) return false;
    in_.append(reinterpret_cast<const char*>(chunk.data()),
               static_cast<std::size_t>(moved.bytes.value));
    if (stage_ == Stage::kGreeting) check_beginning(fd);
  }
  return true;
}

/// Rejects a stranger by its first bytes, because it may never send enough for a whole greeting.
void Proof::check_beginning(int fd) const {
  const std::size_t known = std::min(in_.size(), kMagic.size());
  if (in_.compare(0, known, kMagic.substr(0, known)) != 0) throw is_a_stranger(fd);
}

void Proof::read_greeting(int fd) {
  ByteReader greeting(in_, "greeting");
  greeting.get_raw(Bytes(kMagic.size()));
  const std::uint16_t version = greeting.get_u16();
  if (version != kVersion) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} uses version {} of peal's protocol, but this process version {}: "
                            "run the same peal on all ranks",
                            peer_name(fd),
                            version,
                            kVersion));
  }
  if (greeting.get_u8() == static_cast<std::uint8_t>(role_)) throw is_a_stranger(fd);  // an echo
  const auto protection = static_cast<LinkProtection>(greeting.get_u8());
  if (protection != context_.protection)
    throw has_another_protection(fd, protection, context_.protection);
  other_.rank = greeting.get_i32();
  other_nonce_ = greeting.get_raw(Bytes(kNonceSize));
  greeting.finish();
  in_.clear();
}

std::string Proof::exchange() const {
  const bool connects = role_ == Role::kConnector;
  ByteWriter text;
  text.put_u16(kVersion).put_u8(static_cast<std::uint8_t>(context_.protection));
  text.put_raw(connects ? own_nonce_ : other_nonce_).put_i32((connects ? self_ : other_).rank);
  text.put_raw(connects ? other_nonce_ : own_nonce_).put_i32((connects ? other_ : self_).rank);
  text.put_text(context_.job).put_text(context_.purpose);
  return std::move(text).take();
}

std::string Proof::mac_of(Role prover) const {
  ByteWriter text;
  text.put_raw(kMagic).put_u8(static_cast<std::uint8_t>(prover)).put_raw(exchange());
  return hmac_sha256(context_.secret.text(), text.view());
}

std::string Proof::key() const {
  return hmac_sha256(context_.secret.text(), "peal/tls" + exchange());
}

std::optional<Hello> Proof::advance(int fd) {
  const Role other_role = role_ == Role::kConnector ? Role::kAcceptor : Role::kConnector;
  if (!flush(fd)) return std::nullopt;
  if (stage_ == Stage::kGreeting) {
    if (!fill(fd, kGreetingSize)) return std::nullopt;
    read_greeting(fd);
    stage_ = Stage::kOtherMac;
    if (role_ == Role::kAcceptor) out_ = mac_of(role_);
    if (!flush(fd)) return std::nullopt;
  }
  if (stage_ == Stage::kOtherMac) {
    if (!fill(fd, kMacSize)) return std::nullopt;
    stage_ = Stage::kResult;
    if (role_ == Role::kConnector) out_ = mac_of(role_);
  }
  if (!flush(fd)) return std::nullopt;
  if (!is_same_mac(mac_of(other_role), in_)) throw does_not_know_the_secret(fd, context_);
  return other_;
}

Secret make_secret() {
  constexpr std::size_t kSecretDigits = 64;
  std::string text = random_hex(kSecretDigits);
  const Wiped wiped(text);
  return Secret(text);
}

}  // namespace peal::net
