#include "peal/net/encrypted_stream.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "peal/base/error.h"
#include "peal/net/pieces.h"
#include "peal/net/tcp_options.h"

namespace peal::net {
namespace {

/// The largest payload of a TLS record.
constexpr std::size_t kRecord = 16 << 10;
/// How many bytes are encrypted before they are sent, and how many are read at once.
constexpr std::size_t kBatch = 64 << 10;

/// The hash of the common key is SHA-256, and TLS lets only suites of that hash use it.
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::array<unsigned char, 2> kSuiteOfKey = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr const char* kGroups = "X25519:P-256";
/// There is only one key, so its name does not matter.
constexpr std::string_view kIdentity = "peal";

/// OpenSSL's last error. OpenSSL keeps a list of errors for each thread.
std::string reason() {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  return text != nullptr ? text : "OpenSSL gives no reason";
}

Error lacks(std::string_view what) {
  return Error(ErrorKind::kResource,
               fmt::format("OpenSSL does not provide {}: {}", what, reason()));
}

/// The common key in OpenSSL's form: a session to resume. The caller of the callback owns the
/// session. Null if memory is short.
SSL_SESSION* session_of(SSL* ssl) {
  const auto& key = *static_cast<const std::string*>(SSL_get_app_data(ssl));
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const suite = SSL_CIPHER_find(ssl, kSuiteOfKey.data());
  if (session != nullptr && suite != nullptr &&
      SSL_SESSION_set1_master_key(
          session, reinterpret_cast<const unsigned char*>(key.data()), key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, suite) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* ssl,
              const EVP_MD*,
              const unsigned char** identity,
              std::size_t* size,
              SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char*, std::size_t, SSL_SESSION** session) {
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

/// Appends OpenSSL's output to the vector that is the BIO's data.
int append(BIO* bio, const char* data, std::size_t size, std::size_t* written) noexcept {
  auto& out = *static_cast<std::vector<std::byte>*>(BIO_get_data(bio));
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    out.insert(out.end(), bytes.begin(), bytes.end());
  } catch (const std::exception&) {
    return 0;
  }
  *written = size;
  return 1;
}

long control(BIO*, int command, long, void*) noexcept { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* make_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "peal's memory");
  if (method == nullptr) throw lacks("memory for TLS");
  BIO_meth_set_write_ex(method, append);
  BIO_meth_set_ctrl(method, control);
  return method;
}

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

/// Sets all options explicitly, so that the context does not depend on the system's configuration.
std::unique_ptr<SSL_CTX, FreeContext> make_context() {
  std::unique_ptr<SSL_CTX, FreeContext> context(SSL_CTX_new(TLS_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), kSuites) != 1 ||
      SSL_CTX_set1_groups_list(context.get(), kGroups) != 1 ||
      SSL_CTX_set_num_tickets(context.get(), 0) != 1) {
    throw lacks("TLS 1.3");
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_clear_options(context.get(), SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
  SSL_CTX_set_options(context.get(),
                      SSL_OP_IGNORE_UNEXPECTED_EOF);  // reported as `closed`, not as an error
#endif
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kBatch);
  return context;
}

}  // namespace

void EncryptedStream::FreeSsl::operator()(ssl_st* ssl) const { SSL_free(ssl); }
void EncryptedStream::FreeMethod::operator()(bio_method_st* method) const { BIO_meth_free(method); }

EncryptedStream::EncryptedStream(Fd fd,
                                 Role role,
                                 const std::string& key,
                                 std::uint64_t records_per_key)
    : fd_(std::move(fd)), key_(key), to_memory_(make_method()), records_per_key_(records_per_key) {
  ERR_clear_error();
  ssl_.reset(SSL_new(make_context().get()));
  BIO* const in = BIO_new_socket(fd_.get(), BIO_NOCLOSE);
  BIO* const out = BIO_new(to_memory_.get());
  if (!ssl_ || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    throw lacks("memory for TLS");
  }
  BIO_set_data(out, &out_);
  BIO_set_init(out, 1);
  SSL_set_bio(ssl_.get(), in, out);
  SSL_set_app_data(ssl_.get(), &key_);
  if (role == Role::kConnector) {
    SSL_set_psk_use_session_callback(ssl_.get(), offer_key);
    // No certificate is trusted, so a server with a certificate is rejected. Only the key counts.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_psk_find_session_callback(ssl_.get(), find_key);
    SSL_set_accept_state(ssl_.get());
  }
}

EncryptedStream::~EncryptedStream() { OPENSSL_cleanse(key_.data(), key_.size()); }

// ---- the handshake

bool EncryptedStream::try_handshake() {
  if (SSL_is_init_finished(ssl_.get()) == 0) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) judge(result, "the TLS handshake with");
    if (reading_ == State::kClosed) {
      throw Error(ErrorKind::kPeerLost,
                  fmt::format("{} closed the connection in the TLS handshake", peer_name(fd())));
    }
    // A handshake that succeeded without the common key does not authenticate the other end.
    if (result == 1 && SSL_session_reused(ssl_.get()) != 1) fail("the TLS handshake with");
  }
  if (!try_flush() || SSL_is_init_finished(ssl_.get()) == 0) return false;
  OPENSSL_cleanse(key_.data(), key_.size());
  // Data that the peer sent right after the handshake may have been read together with its end.
  has_read_ahead_ = SSL_has_pending(ssl_.get()) == 1;
  return true;
}

short EncryptedStream::interest() const { return has_unsent_ ? POLLOUT : POLLIN; }

// ---- writing

Moved EncryptedStream::try_write(std::span<const std::span<const std::byte>> pieces) {
  Bytes taken;
  Pieces left(pieces);
  while (try_flush() && writing_ == State::kFine && !left.empty()) {
    while (!left.empty() && unsent().size() < kBatch) {
      std::size_t size = std::min(left.front().size(), kRecord);
      if (size == kRecord) {
        write_record(left.front().first(size));
        left.drop(size);
      } else {  // put a header and the piece after it into one record
        record_.resize(kRecord);
        size = left.take(record_);
        write_record(std::span(record_).first(size));
      }
      taken += Bytes(static_cast<std::int64_t>(size));
    }
  }
  if (writing_ != State::kFine) return {0_B, true};
  return {taken, false, has_unsent_};
}

/// OpenSSL writes to memory here, so it always takes the whole record.
void EncryptedStream::write_record(std::span<const std::byte> record) {
  ERR_clear_error();
  if (++records_ % records_per_key_ == 0) {
    // The update is sent before the record.
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) fail("sending to");
  }
  std::size_t written = 0;
  const int result = SSL_write_ex(ssl_.get(), record.data(), record.size(), &written);
  if (result != 1 || written != record.size()) fail("sending to");
}

bool EncryptedStream::try_flush() {
  while (!unsent().empty() && writing_ != State::kClosed) {
    const std::array pieces = {unsent()};
    const Moved moved = net::try_write(fd_.get(), pieces);
    if (moved.closed) writing_ = State::kClosed;
    if (moved.bytes == 0_B) break;
    sent_ += static_cast<std::size_t>(moved.bytes.value);
  }
  const bool done = unsent().empty() || writing_ == State::kClosed;
  if (done) {
    out_.clear();
    sent_ = 0;
  }
  if (has_unsent_ == done) has_unsent_ = !done;
  return done;
}

Bytes EncryptedStream::unacknowledged() const {
  return net::unacknowledged(fd()) + Bytes(static_cast<std::int64_t>(unsent().size()));
}

// ---- reading

Moved EncryptedStream::try_read(std::span<std::byte> into) {
  if (reading_ == State::kBroken) throw Error(ErrorKind::kPeerLost, flaw_);
  if (into.empty()) return {0_B, false, has_read_ahead_};
  std::size_t done = 0;
  // OpenSSL reads from the socket once. The loop decrypts these records while `into` has room.
  while (done < into.size() && reading_ == State::kFine) {
    std::size_t size = 0;
    try {
      size = read_some(into.subspan(done));
    } catch (const Error&) {
      if (done == 0) throw;  // otherwise the next call throws
    }
    done += size;
    if (size == 0 || SSL_has_pending(ssl_.get()) == 0) break;
  }
  // SSL_has_pending also counts an incomplete record, until a read has tried it.
  const bool has_more = done == into.size() && SSL_has_pending(ssl_.get()) == 1;
  const bool ahead = done > 0 && (has_more || reading_ == State::kBroken);
  if (has_read_ahead_ != ahead) has_read_ahead_ = ahead;
  return {Bytes(static_cast<std::int64_t>(done)), done == 0 && reading_ == State::kClosed, ahead};
}

/// Reads from one record at most.
std::size_t EncryptedStream::read_some(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t size = 0;
  const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &size);
  if (result == 1) return size;
  judge(result, "the encrypted link to");
  return 0;
}

/// Handles a failed call of OpenSSL. Returns if there is nothing to read yet, or if the stream has
/// ended. Throws otherwise.
void EncryptedStream::judge(int result, std::string_view doing) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return;
    case SSL_ERROR_ZERO_RETURN:
    case SSL_ERROR_SYSCALL:
      reading_ = State::kClosed;
      return;
    default:
      fail(doing);
  }
}

/// Sends the TLS alert that notifies the other end, and throws.
void EncryptedStream::fail(std::string_view doing) {
  flaw_ = fmt::format(
      "{} {} failed: {}; data was damaged or changed on the network, or the other end is not a "
      "rank of this job",
      doing,
      peer_name(fd()),
      reason());
  try_flush();
  reading_ = writing_ = State::kBroken;
  throw Error(ErrorKind::kPeerLost, flaw_);
}

}  // namespace peal::net
