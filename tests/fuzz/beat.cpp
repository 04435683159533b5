// Heartbeats: what can be decoded is what `encode_beat` makes.
#include "peal/transport/beat.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto stopped =
      unless_refused(ErrorKind::kMismatch, [&] { return transport::decode_beat(input); });
  if (!stopped) return;
  require(transport::encode_beat(*stopped) == input, "the beat's bytes");
}
