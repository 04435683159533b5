// Heartbeats: every input that can be decoded equals the output of `encode_beat`.
#include "peal/transport/liveness/beat.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto stopped =
      unless_refused(ErrorKind::kMismatch, [&] { return transport::decode_beat(input); });
  if (!stopped) return;
  require(transport::encode_beat(*stopped) == input, "the beat's bytes");
}
