#include "peal/observe/end_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "peal/base/error.h"
#include "peal/base/text_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/whole_file.h"

namespace peal::observe {

void write_end_file(const std::string& folder, const RankEnd& end) {
  ::mkdir(folder.c_str(), 0700);  // if it fails, so does what follows
  write_whole_file(end_file_in(folder, end.rank), to_line(end) + "\n");
}

std::optional<RankEnd> try_read_end_file(const std::string& folder, Rank rank) {
  try {
    const RankEnd end = parse_rank_end(read_text_file(end_file_in(folder, rank)));
    return end.rank == rank ? std::optional(end) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<RankEnd> await_end_file(const std::string& folder,
                                      Rank rank,
                                      WallTime earliest,
                                      Deadline deadline) {
  constexpr auto kPause = std::chrono::milliseconds(2);
  while (true) {
    std::optional<RankEnd> end = try_read_end_file(folder, rank);
    if (end && end->at >= earliest) return end;
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
    std::error_code unknown;
    if (is_one && entry->symlink_status(unknown).type() == std::filesystem::file_type::regular) {
      std::filesystem::remove(path, unknown);
    }
  }
}

}  // namespace peal::observe
