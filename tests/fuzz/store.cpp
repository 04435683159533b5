// Requests and replies of the TCP store: every input that can be decoded equals the output of
// `encode`.
#include "peal/store/tcp_protocol.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using namespace store;
  if (const auto request =
          unless_refused(ErrorKind::kMismatch, [&] { return decode_request(input); })) {
    require(encode(*request) == input, "the request's bytes");
  }
  if (const auto reply =
          unless_refused(ErrorKind::kMismatch, [&] { return decode_reply(input); })) {
    require(encode(*reply) == input, "the reply's bytes");
  }
}
