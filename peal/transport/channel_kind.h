// The two streams of a transport: bytes of collectives, and messages.
#pragma once

#include <array>

namespace peal::transport {

enum class ChannelKind : unsigned char { kData = 0, kMail = 1 };
inline constexpr std::array kChannelKinds = {ChannelKind::kData, ChannelKind::kMail};

}  // namespace peal::transport
