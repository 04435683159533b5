// The files that say how ranks ended, beside their records. Every input is either rejected or read.
// A file that is read and written parses to the same value.
#include "peal/observe/end_file.h"

#include "peal/base/printable.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto file =
      unless_refused(ErrorKind::kMismatch, [&] { return observe::parse_end_file(input); });
  if (!file) return;
  require(file->end.rank >= 0, "a valid rank");
  require(printable(file->end.text) == file->end.text, "a text that a terminal can print");
  const auto again = observe::parse_end_file(file->job + "\n" + observe::to_line(file->end) + "\n");
  require(again.job == file->job && again.end == file->end, "read as the same");
}
