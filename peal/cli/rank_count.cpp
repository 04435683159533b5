#include "peal/cli/rank_count.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/parse_number.h"
#include "peal/base/split.h"
#include "peal/cli/spelling.h"
#include "peal/launch/cores.h"

namespace peal::cli {
namespace {

/// The GPUs that programs may use: those that CUDA_VISIBLE_DEVICES lists, else all devices.
int count_gpus() {
  if (const auto visible = process_environment()("CUDA_VISIBLE_DEVICES")) {
    const bool is_none = visible->empty() || *visible == "-1";
    return is_none ? 0 : static_cast<int>(split(*visible, ',').size());
  }
  int count = 0;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", count))) ++count;
  return count;
}

}  // namespace

std::optional<CountRange> parse_range(const std::vector<std::string>& counts,
                                      const launch::Wording& wording) {
  if (counts.size() != 1) return std::nullopt;
  return parse_count_range(counts.front(), wording.count, "ranks");
}

std::optional<int> parse_count(const std::vector<std::string>& counts,
                               const launch::Wording& wording) {
  if (counts.empty() || parse_range(counts, wording)) return std::nullopt;
  if (counts.size() > 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} is given {} times, with {} (-n, -np, --num-proc and --nproc-per-node are "
                    "the same option); give it once",
                    wording.count,
                    counts.size(),
                    fmt::join(counts, " and ")));
  }
  return parse_rank_count(counts.front(), wording.count);
}

int parse_rank_count(const std::string& text, const std::string& source) {
  if (const auto count = try_parse_number<int>(text)) return *count;
  const int gpus = text == "gpu" || text == "auto" ? count_gpus() : 0;
  if (text == "cpu" || (text == "auto" && gpus == 0)) {
    return static_cast<int>(launch::usable_cores().size());
  }
  if (gpus > 0) return gpus;
  if (text == "gpu") {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} gpu: this machine has no GPU (/dev/nvidia0, or a number in "
                            "CUDA_VISIBLE_DEVICES): give a number, or cpu",
                            source));
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "{} \"{}\": it takes the number of ranks, 1 or more; or cpu, gpu or auto", source, text));
}

std::optional<int> count_in(const Environment& environment) {
  constexpr const char* kPerNode = "PET_NPROC_PER_NODE";
  const auto text = environment(kPerNode);
  if (!text || text->empty()) return std::nullopt;
  return parse_rank_count(*text, kPerNode);
}

Error missing_count(const std::vector<std::string>& command, const launch::Wording& wording) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string option = as_declared(command[i]);
    if (!option.starts_with("-n")) continue;
    std::string count = option.substr(2);
    if (count.empty() && i + 1 < command.size()) count = command[i + 1];
    if (!try_parse_number<int>(count)) continue;
    return Error(ErrorKind::kUsage,
                 fmt::format("how many ranks? All words after the command belong to it; did "
                             "you mean: {} {} {} {}",
                             wording.program,
                             wording.count,
                             count,
                             command.front()));
  }
  return Error(ErrorKind::kUsage,
               fmt::format("how many ranks? Use {}, as in: {}", wording.count, wording.example()));
}

}  // namespace peal::cli
