// Contacts, as ranks publish them, and the last wills in their place. A contact that is decoded and
// encoded decodes to the same value. The only results are a contact, a mismatch and a lost rank.
#include "peal/rendezvous/contact.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  if (!input.empty() && input.front() == '\0') {
    try {
      rendezvous::decode_of(3, input);
      require(false, "a last will was decoded as a contact");
    } catch (const Error& error) {
      require(error.kind() == ErrorKind::kMismatch || error.kind() == ErrorKind::kPeerLost,
              error.what());
    }
    return;
  }
  const auto contact =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::decode_of(3, input); });
  if (!contact) return;
  require(rendezvous::decode(rendezvous::encode(*contact)) == *contact, "decoded as the same");
}
