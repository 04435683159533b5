// Verdicts, as ranks pass them: what is decoded and encoded is decoded as the same.
#include "peal/rendezvous/verdict.h"

#include <string>

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto text_of = [](const rendezvous::Verdict& verdict) {
    return verdict ? std::string(verdict->what()) : "";
  };
  const auto verdict =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::decode_verdict(input); });
  if (!verdict) return;
  const auto again = rendezvous::decode_verdict(rendezvous::encode(*verdict));
  require(text_of(again) == text_of(*verdict), "decoded as the same");
}
