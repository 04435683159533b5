#include "peal/observe/end_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "peal/base/error.h"
#include "peal/observe/flight_folder.h"
#include "peal/system/own_file.h"
#include "peal/system/whole_file.h"

namespace peal::observe {

EndFile parse_end_file(std::string_view text) {
  const std::size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) {
    throw Error(ErrorKind::kMismatch,
                "the end file of a rank needs two lines: the job, and how the rank ended");
  }
  return {.job = std::string(text.substr(0, line_end)),
          .end = parse_rank_end(text.substr(line_end + 1))};
}

void write_end_file(const EndPlace& place, const RankEnd& end) {
  ::mkdir(place.folder.c_str(), 0700);  // if this fails, writing the file fails too
  write_whole_file(end_file_in(place.folder, end.rank), place.job + "\n" + to_line(end) + "\n");
}

std::optional<RankEnd> try_read_end_file(const EndPlace& place, Rank rank) {
  try {
    const EndFile file = parse_end_file(read_own_file(end_file_in(place.folder, rank)));
    const bool is_meant = file.job == place.job && file.end.rank == rank;
    return is_meant ? std::optional(file.end) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<RankEnd> await_end_file(const EndPlace& place, Rank rank, Deadline deadline) {
  constexpr auto kPause = std::chrono::milliseconds(2);
  while (true) {
    if (std::optional<RankEnd> end = try_read_end_file(place, rank)) return end;
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_until(deadline.within(kPause).at());
  }
}

void remove_end_files(const std::string& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::filesystem::path& path = entry->path();
    const bool is_one =
        path.filename().string().starts_with(kRankPrefix) && path.extension() == kEndSuffix;
    if (is_one) remove_own_file(path);
  }
}

void remove_end_file(const std::string& folder, Rank rank) {
  remove_own_file(end_file_in(folder, rank));
}

}  // namespace peal::observe
