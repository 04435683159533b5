// The protection of data on a network. PEAL_TLS and PEAL_INTEGRITY choose it (config/config.h),
// net/handshake.h agrees on it with the peer, and net/stream.h applies it.
#pragma once

#include <array>
#include <string_view>

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class LinkProtection : unsigned char {
  kPlain = 0,      // plain TCP
  kChecked = 1,    // checksums: detect damage, but not forgery
  kEncrypted = 2,  // TLS: nobody else can read the data, or change them unnoticed
};

inline constexpr std::array kAllLinkProtections = {
    LinkProtection::kPlain, LinkProtection::kChecked, LinkProtection::kEncrypted};

/// "plain", "checked", "encrypted"
std::string_view name_of(LinkProtection protection);

/// The environment variables that choose it: "PEAL_TLS=off and PEAL_INTEGRITY=crc".
std::string_view settings_of(LinkProtection protection);

}  // namespace peal
