// The files of ranks and launchers: flights, dumps of them, and lines of how ranks ended. Every
// file that is read can be diagnosed, and a written one parses to the same value.
#include "peal/observe/dump.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/rank_end.h"
#include "peal/observe/why.h"

#include "tests/fuzz/fuzz.h"

namespace {

using peal::ErrorKind;
using peal::fuzz::require;
using peal::fuzz::unless_refused;
namespace observe = peal::observe;

void check_diagnosis(const observe::Dump& dump) {
  const observe::Diagnosis why = observe::diagnose(dump.flights, dump.ends);
  require(why.sentence.ends_with('.'), why.sentence);
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  const auto end =
      unless_refused(ErrorKind::kMismatch, [&] { return observe::parse_rank_end(input); });
  if (end) require(observe::parse_rank_end(to_line(*end)) == *end, "read as the same");

  const auto flight =
      unless_refused(ErrorKind::kMismatch, [&] { return observe::parse_flight(input); });
  if (flight) {
    check_diagnosis({.flights = {*flight}, .ends = {}, .skipped = {}});
    const std::string bytes(input);
    const auto dump = observe::parse_dump(observe::to_dump({&bytes, 1}, {}));
    require(dump.flights.size() == 1 && dump.flights[0] == *flight, "the same in a dump");
  }

  const auto dump =
      unless_refused(ErrorKind::kMismatch, [&] { return observe::parse_dump(input); });
  if (dump) check_diagnosis(*dump);
}
