#include "peal/net/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "peal/base/error.h"
#include "peal/base/secret.h"

namespace peal::net {

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string mac(kMacSize, '\0');
  unsigned int size = 0;
  const unsigned char* result = HMAC(EVP_sha256(),
                                     key.data(),
                                     static_cast<int>(key.size()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size(),
                                     reinterpret_cast<unsigned char*>(mac.data()),
                                     &size);
  if (result == nullptr) throw Error(ErrorKind::kResource, "OpenSSL does not provide HMAC-SHA256");
  return mac;
}

bool is_same_mac(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw Error(ErrorKind::kResource, "the system gives no random numbers");
  }
  return bytes;
}

std::string random_hex(std::size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string bytes = random_bytes(digits / 2);
  const Wiped wiped(bytes);
  std::string text;
  text.reserve(digits);
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

}  // namespace peal::net
