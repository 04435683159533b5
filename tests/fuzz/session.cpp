// Sessions, as the last rank to arrive leaves them: what can be decoded is what `encode` makes.
#include "peal/rendezvous/session.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto session =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::Session::decode(input); });
  if (!session) return;
  require(session->encode() == input, "the session's bytes");
}
