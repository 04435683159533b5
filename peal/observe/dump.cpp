#include "peal/observe/dump.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/system/own_file.h"
#include "peal/system/text_file.h"
#include "peal/system/whole_file.h"

namespace peal::observe {
namespace {

// A dump is this line and then parts. A part is a line "flight SIZE" or "end SIZE", then SIZE
// bytes.
constexpr std::string_view kFirstLine = "peal dump 1\n";
constexpr std::string_view kFlightPart = "flight";
constexpr std::string_view kEndPart = "end";
/// The most skipped files and parts that a Dump names.
constexpr std::size_t kMostNamed = 100;
/// Enough for hundreds of ranks; each rank has some 400 KB.
constexpr Bytes kLongestDump(std::int64_t{4} << 30);

Error malformed_dump(const std::string& how) {
  return Error(ErrorKind::kMismatch, "the dump " + how);
}

std::string to_part(std::string_view what, std::string_view bytes) {
  return fmt::format("{} {}\n{}", what, bytes.size(), bytes);
}

struct Part {
  std::string_view what;
  std::string_view bytes;
};

/// Removes the next part from `rest` and returns it.
Part take_part(std::string_view& rest) {
  const std::size_t line = rest.find('\n');
  const std::size_t space = rest.find(' ');
  if (line == std::string_view::npos || space >= line) throw malformed_dump("is truncated");
  const std::string_view digits = rest.substr(space + 1, line - space - 1);
  const bool is_number = !digits.empty() && digits.size() < 12 &&
                         std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) throw malformed_dump("is truncated");
  const std::size_t size = std::stoull(std::string(digits));
  if (size > rest.size() - line - 1) throw malformed_dump("is truncated");
  const Part part{rest.substr(0, space), rest.substr(line + 1, size)};
  rest.remove_prefix(line + 1 + size);
  return part;
}

/// A rank may occur more than once: in a dump and in a folder, or before and after a restart.
class Collection {
 public:
  void add(Flight flight) {
    const auto known = flights_.find(flight.rank);
    if (known != flights_.end() && known->second.begun > flight.begun) return;
    flights_.insert_or_assign(flight.rank, std::move(flight));
  }
  void add(RankEnd end) {
    const auto known = ends_.find(end.rank);
    if (known != ends_.end() && known->second.at > end.at) return;
    ends_.insert_or_assign(end.rank, std::move(end));
  }
  /// A folder may also hold records of other jobs; keeps only the job that began last.
  void keep_last_job() {
    const auto last = std::ranges::max_element(
        flights_, {}, [](const auto& entry) { return entry.second.begun; });
    if (last == flights_.end()) return;
    const std::string job = last->second.job;
    std::erase_if(flights_, [&](const auto& entry) { return entry.second.job != job; });
    job_ = job;
  }
  void add(EndFile file) {
    if (!job_ || file.job == *job_) add(std::move(file.end));
  }
  void add(const Dump& dump) {
    for (const Flight& flight : dump.flights) add(flight);
    for (const RankEnd& end : dump.ends) add(end);
    skipped_.insert(skipped_.end(), dump.skipped.begin(), dump.skipped.end());
  }
  void skip(std::string_view what, const Error& why) {
    if (skipped_.size() < kMostNamed) {
      skipped_.push_back(fmt::format("{}: {}", what, why.message()));
    } else if (skipped_.size() == kMostNamed) {
      skipped_.emplace_back("and more");
    }
  }

  Dump take() {
    Dump dump;
    for (auto& [rank, flight] : flights_) dump.flights.push_back(std::move(flight));
    for (auto& [rank, end] : ends_) dump.ends.push_back(std::move(end));
    dump.skipped = std::move(skipped_);
    return dump;
  }

 private:
  std::map<Rank, Flight> flights_;
  std::map<Rank, RankEnd> ends_;
  std::vector<std::string> skipped_;
  std::optional<std::string> job_;  // the job of a folder
};

Dump parse_dump(std::string_view bytes, RankBudget& budget) {
  if (!bytes.starts_with(kFirstLine)) throw malformed_dump("does not begin as a dump");
  bytes.remove_prefix(kFirstLine.size());
  Collection all;
  while (!bytes.empty()) {
    const Part part = take_part(bytes);
    try {
      if (part.what == kFlightPart) {
        all.add(parse_flight(part.bytes, budget));
      } else if (part.what == kEndPart) {
        all.add(parse_rank_end(part.bytes));
      } else {
        throw malformed_dump("has a part of an unknown kind");
      }
    } catch (const Error& error) {
      all.skip("a part of the dump", error);
    }
  }
  return all.take();
}

void add_file(const std::string& bytes, Collection& all, RankBudget& budget) {
  budget.add(bytes);
  if (bytes.starts_with(kFirstLine)) {
    all.add(parse_dump(bytes, budget));
  } else if (is_flight(bytes)) {
    all.add(parse_flight(bytes, budget));
  } else {
    throw Error(ErrorKind::kMismatch, "is neither a dump nor the record of a rank");
  }
}

/// Other users may be able to put files there, so only files of this user count.
void add_folder(const std::string& path, Collection& all, RankBudget& budget) {
  std::vector<std::filesystem::path> flights, ends;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::filesystem::path& file = entry.path();
    if (!file.filename().string().starts_with(kRankPrefix)) continue;
    if (file.extension() == kFlightSuffix) flights.push_back(file);
    if (file.extension() == kEndSuffix) ends.push_back(file);
  }
  if (flights.empty() && ends.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("it holds no {}N{}; a rank creates its record when all ranks have met",
                            kRankPrefix,
                            kFlightSuffix));
  }
  Collection found;
  const auto add = [&](std::vector<std::filesystem::path> files, const auto& add_one) {
    std::ranges::sort(files);
    for (const std::filesystem::path& file : files) {
      try {
        add_one(file);
      } catch (const Error& error) {
        found.skip(printable(file.string()), error);
      }
    }
  };
  add(flights,
      [&](const std::string& file) { add_file(read_own_file(file, kLongestDump), found, budget); });
  found.keep_last_job();
  add(ends, [&](const std::string& file) { found.add(parse_end_file(read_own_file(file))); });
  all.add(found.take());
}

}  // namespace

std::string to_dump(std::span<const std::string> flights, std::span<const RankEnd> ends) {
  std::string bytes(kFirstLine);
  for (const std::string& flight : flights) bytes += to_part(kFlightPart, flight);
  for (const RankEnd& end : ends) bytes += to_part(kEndPart, to_line(end));
  return bytes;
}

Dump parse_dump(std::string_view bytes) {
  RankBudget budget;
  budget.add(bytes);
  return parse_dump(bytes, budget);
}

void write_dump(const std::string& path,
                std::span<const std::string> flights,
                std::span<const RankEnd> ends) {
  write_whole_file(path, to_dump(flights, ends));
}

Dump read_dumps(std::span<const std::string> paths) {
  Collection all;
  RankBudget budget;
  for (const std::string& path : paths) {
    try {
      if (std::error_code none; std::filesystem::is_directory(path, none)) {
        add_folder(path, all, budget);
      } else {
        add_file(read_text_file(path, kLongestDump), all, budget);
      }
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", printable(path), error.message()));
    } catch (const std::filesystem::filesystem_error& error) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: cannot be read: {}", printable(path), error.code().message()));
    }
  }
  return all.take();
}

}  // namespace peal::observe
