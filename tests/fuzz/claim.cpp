// Claims, as processes store them for their ranks: every input that can be decoded equals the
// output of `encode`.
#include "peal/rendezvous/registration.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto claim =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::Claim::decode(input); });
  if (!claim) return;
  require(claim->encode() == input, "the claim's bytes");
}
