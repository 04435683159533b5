// The messages of an elastic job: every input that can be decoded equals the output of `encode`.
#include "peal/rendezvous/elastic_protocol.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using rendezvous::ElasticAnswer;
  using rendezvous::ElasticRequest;
  const auto request =
      unless_refused(ErrorKind::kMismatch, [&] { return ElasticRequest::decode(input); });
  if (request) require(request->encode() == input, "the request's bytes");
  const auto answer =
      unless_refused(ErrorKind::kMismatch, [&] { return ElasticAnswer::decode(input); });
  if (answer) require(answer->encode() == input, "the answer's bytes");
}
