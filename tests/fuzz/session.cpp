// Sessions, as the last rank to arrive stores them: every input that can be decoded equals the
// output of `encode`.
#include "peal/rendezvous/session.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto session =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::Session::decode(input); });
  if (!session) return;
  require(session->encode() == input, "the session's bytes");
}
