// Contacts, as ranks publish them: what is decoded and encoded is decoded as the same.
#include "peal/rendezvous/contact.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto contact =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::decode(input); });
  if (!contact) return;
  require(rendezvous::decode(rendezvous::encode(*contact)) == *contact, "decoded as the same");
}
