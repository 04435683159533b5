// Offers of shared memory: every input that can be decoded equals the output of `encode`.
#include "peal/transport/shm/offer.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto offer =
      unless_refused(ErrorKind::kMismatch, [&] { return transport::decode_offer(input); });
  if (!offer) return;
  require(transport::encode(*offer) == input, "the offer's bytes");
}
