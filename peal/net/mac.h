// Message authentication by HMAC-SHA256, and the random bytes that go with it. Used by the proof
// (proof.h) and by the store that seals its values (store/sealed_store.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace peal::net {

/// The size of a MAC in bytes.
inline constexpr std::size_t kMacSize = 32;

/// HMAC-SHA256(key, text), kMacSize bytes. The text begins with a label that no other use of the
/// key begins with. Errors: resource (OpenSSL without SHA-256). Source: RFC 2104.
std::string hmac_sha256(std::string_view key, std::string_view text);

/// Whether two MACs are equal, in a time that does not depend on where they differ.
bool is_same_mac(std::string_view a, std::string_view b);

/// Bytes from the system's generator. Errors: resource.
std::string random_bytes(std::size_t count);

/// So many random digits in hexadecimal, an even number: for a name that nothing else has. Memory
/// holds no copy but the result, of which a secret can be made (proof.h). Errors: resource.
std::string random_hex(std::size_t digits);

}  // namespace peal::net
