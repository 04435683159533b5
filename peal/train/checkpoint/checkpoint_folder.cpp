#include "peal/train/checkpoint/checkpoint_folder.h"

#include <string_view>
#include <system_error>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/train/checkpoint/together.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kDigits = 8;  // at least

/// The step of a complete checkpoint.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = try_parse_number<std::int64_t>(std::string_view(name).substr(kPrefix.size()));
  if (!step || *step < 0 || checkpoint_name(*step) != name) return std::nullopt;
  return step;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  if (step < 0) {
    throw Error(ErrorKind::kUsage,
                "a checkpoint cannot have the negative step " + std::to_string(step));
  }
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

std::map<std::int64_t, fs::path> list_checkpoints(const fs::path& folder) {
  std::map<std::int64_t, fs::path> found;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code unknown;
    const auto step = step_of(entry->path().filename());
    if (step && entry->is_directory(unknown)) found[*step] = entry->path();
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    throw system_error("cannot read " + folder.string(), failure.value());
  }
  return found;
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  const auto found = list_checkpoints(folder);
  if (found.empty()) return std::nullopt;
  return found.rbegin()->second;
}

std::optional<fs::path> latest_checkpoint(ProcessGroup& group,
                                          const fs::path& folder,
                                          Timeout timeout) {
  const Ranks ranks(group, timeout);
  std::string name;
  ranks.together([&] {
    if (ranks.rank() != 0) return;
    if (const auto latest = latest_checkpoint(folder)) name = latest->filename();
  });
  name = ranks.broadcast(name);
  if (name.empty()) return std::nullopt;
  return folder / name;
}

}  // namespace peal::train
