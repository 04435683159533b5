// Message authentication by HMAC-SHA256, and random bytes for it. Used by the proof (proof.h) and
// by the sealed store (store/sealed_store.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace peal::net {

/// The size of a MAC in bytes.
inline constexpr std::size_t kMacSize = 32;

/// HMAC-SHA256(key, text), kMacSize bytes. The caller begins the text with a label that no other
/// use of the key begins with. Errors: resource (OpenSSL without SHA-256). Source: RFC 2104.
std::string hmac_sha256(std::string_view key, std::string_view text);

/// Whether two MACs are equal, in a time that does not depend on where they differ.
bool is_same_mac(std::string_view a, std::string_view b);

/// Cryptographic random bytes. Errors: resource.
std::string random_bytes(std::size_t count);

/// Random hexadecimal digits, for a unique name or a secret (proof.h). The number of digits must be
/// even. Only the result remains in memory. Errors: resource.
std::string random_hex(std::size_t digits);

}  // namespace peal::net
