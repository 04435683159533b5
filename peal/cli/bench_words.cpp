#include "peal/cli/bench_words.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/bench/sizes.h"
#include "peal/bench/values.h"

namespace peal::cli {
namespace {

std::string in_lower_case(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

/// "there is no operation "all_redcue"; did you mean all_reduce?" (`what` is "operation")
Error no_such(std::string_view what, const std::string& word, std::vector<std::string> names) {
  const std::string lower = in_lower_case(word);
  const std::string nearest = *std::ranges::min_element(
      names, {}, [&](const std::string& name) { return difference(lower, name); });
  if (difference(lower, nearest) <= kNearDifference) {
    return Error(ErrorKind::kUsage,
                 fmt::format("there is no {} \"{}\"; did you mean {}?", what, word, nearest));
  }
  return Error(ErrorKind::kUsage,
               fmt::format("there is no {} \"{}\", only {}", what, word, fmt::join(names, ", ")));
}

/// "bf16" -> "bfloat16", "u8" -> "uint8"
std::string torchs_name_of(DType dtype) {
  std::string name(name_of(dtype));
  for (const auto& [ours, torchs] :
       {std::pair("bf", "bfloat"), {"f", "float"}, {"i", "int"}, {"u", "uint"}, {"c", "complex"}}) {
    const std::size_t bits = std::strlen(ours);
    if (name.find_first_of("0123456789") == bits && name.starts_with(ours)) {
      return torchs + name.substr(bits);
    }
  }
  return name;
}

DType parse_dtype(const std::string& word) {
  const auto found = std::ranges::find_if(kAllDTypes, [&](DType dtype) {
    return word == name_of(dtype) || word == torchs_name_of(dtype);
  });
  if (found != kAllDTypes.end() && bench::is_measured(*found)) return *found;
  std::vector<std::string> measured = measured_dtypes();
  if (found == kAllDTypes.end()) {
    for (const DType dtype : kAllDTypes) {
      if (bench::is_measured(dtype)) measured.push_back(torchs_name_of(dtype));
    }
    throw no_such("type to measure", word, measured);
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format("--dtype \"{}\" is not measured, only {}", word, fmt::join(measured, ", ")));
}

}  // namespace

std::vector<std::string> measured_dtypes() {
  std::vector<std::string> names;
  for (const DType dtype : kAllDTypes) {
    if (bench::is_measured(dtype)) names.emplace_back(name_of(dtype));
  }
  return names;
}

std::vector<bench::Op> parse_ops(const std::vector<std::string>& words) {
  std::vector<std::string> names = {"all"};
  for (const bench::Op op : bench::kAllOps) names.emplace_back(name_of(op));
  std::vector<bench::Op> ops;
  const auto add = [&](bench::Op op) {
    if (std::ranges::count(ops, op) == 0) ops.push_back(op);
  };
  for (const std::string& word : words) {
    for (const std::string& name : bench::parse_list("OP", word)) {
      if (name == "all") {
        std::ranges::for_each(bench::kAllOps, add);
      } else if (const auto op = bench::op_named(name)) {
        add(*op);
      } else {
        throw no_such("operation", name, names);
      }
    }
  }
  if (ops.empty()) {
    throw Error(ErrorKind::kUsage, "which operation? For example: peal bench all_reduce");
  }
  return ops;
}

std::vector<DType> parse_dtypes(const std::string& text) {
  std::vector<DType> dtypes;
  for (const std::string& word : bench::parse_list("--dtype", text)) {
    dtypes.push_back(parse_dtype(word));
  }
  return dtypes;
}

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  for (const std::string& word : bench::parse_list("--np", text)) {
    const auto number = try_parse_number<int>(word);
    if (!number || *number < 2 || *number > 1024) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--np \"{}\": it takes a number of ranks, 2 to 1024, as in 2 or 2,4", word));
    }
    ranks.push_back(*number);
  }
  return ranks;
}

std::vector<std::string> parse_names(std::string_view option,
                                     std::string_view what,
                                     const std::string& text,
                                     const std::vector<std::string>& known) {
  if (text.empty()) return {};
  std::vector<std::string> names = bench::parse_list(option, text);
  for (const std::string& name : names) {
    if (std::ranges::count(known, name) == 0) throw no_such(what, name, known);
  }
  return names;
}

TransportChoice parse_transport(const std::string& text) {
  std::vector<std::string_view> names;
  for (const TransportChoice choice : kAllTransportChoices) {
    if (text == name_of(choice)) return choice;
    names.push_back(name_of(choice));
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("--transport \"{}\": it takes {}", text, fmt::join(names, ", ")));
}

double parse_tolerance(const std::string& text) {
  const auto part = try_parse_number<double>(text);
  if (part && *part > 0 && *part <= 1) return *part;
  throw Error(ErrorKind::kUsage,
              fmt::format("--tolerance \"{}\": it takes the part of an earlier ratio that is "
                          "enough, more than 0 and at most 1, as in 0.5",
                          text));
}

}  // namespace peal::cli
