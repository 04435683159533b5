// How what goes over a network is guarded on its way. PEAL_TLS and PEAL_INTEGRITY choose it
// (config.h), net/handshake.h agrees on it and net/stream.h carries it out.
#pragma once

#include <array>
#include <string_view>

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class Sealing : unsigned char {
  kPlain = 0,      // as TCP carries it
  kChecked = 1,    // checksums: what was damaged is noticed, what was forged is not
  kEncrypted = 2,  // TLS: nobody else reads it, and nobody changes it unnoticed
};

inline constexpr std::array kAllSealings = {
    Sealing::kPlain, Sealing::kChecked, Sealing::kEncrypted};

/// "plain", "checked", "encrypted"
std::string_view name_of(Sealing sealing);

/// What a user sets for it: "PEAL_TLS=off and PEAL_INTEGRITY=crc".
std::string_view settings_of(Sealing sealing);

}  // namespace peal
