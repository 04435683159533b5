// The messages by which ranks ask each other about pending operations (stall_watch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "peal/named/stall_report.h"

namespace peal::named {

/// All messages have this size in bytes: the receiver must know it.
inline constexpr std::size_t kStallMessageSize = 8192;
/// A question has at most this many names, and this many bytes of each.
inline constexpr std::size_t kMostNamesOfQuestion = 16;
inline constexpr std::size_t kLongestNameOfQuestion = 256;

using StallMessage = std::vector<std::uint8_t>;  // of kStallMessageSize bytes

/// Each question of a rank has a number. The answers repeat it, because an answer may be late.
struct StallQuestion {
  std::uint64_t number = 0;
  std::vector<std::string> names;
};

/// Which names the rank has, without the place of its program.
struct StallAnswer {
  std::uint64_t number = 0;
  Standing standing;
};

/// Where the program of the rank is.
struct StallPlace {
  std::uint64_t number = 0;
  std::string text;
};

StallMessage message_of(const StallQuestion& question);
StallMessage message_of(const StallAnswer& answer);
/// A long text is cut.
StallMessage message_of(const StallPlace& place);

/// Errors: mismatch (the message is malformed).
StallQuestion question_in(const StallMessage& message);
StallAnswer answer_in(const StallMessage& message);
StallPlace place_in(const StallMessage& message);

}  // namespace peal::named
