// Meeting results, as ranks send them: a result that is decoded and encoded decodes to the same
// value.
#include "peal/rendezvous/meeting_result.h"

#include <string>

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto text_of = [](const rendezvous::MeetingResult& result) {
    return result ? std::string(result->what()) : "";
  };
  const auto result =
      unless_refused(ErrorKind::kMismatch, [&] { return rendezvous::decode_result(input); });
  if (!result) return;
  const auto again = rendezvous::decode_result(rendezvous::encode(*result));
  require(text_of(again) == text_of(*result), "decoded as the same");
}
