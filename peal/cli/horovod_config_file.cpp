#include "peal/cli/horovod_config_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/system/text_file.h"

namespace peal::cli {
namespace {

constexpr Bytes kLongestConfig = 1_MiB;

Error wrong_place(std::string_view place, std::string_view problem) {
  return Error(ErrorKind::kUsage, fmt::format("{}: {}", place, problem));
}

std::string key_of(const YAML::Node& node, std::string_view section) {
  if (node.IsScalar()) return node.Scalar();
  throw wrong_place(section, "a name is a word, not a list or a map");
}

/// controller: gloo, mpi or jsrun.
GivenOption controller(const YAML::Node& value) {
  const std::string name = value.IsScalar() ? value.Scalar() : "";
  for (const char* const option : {"--gloo", "--mpi", "--jsrun"}) {
    if (name == option + 2) return {horovod_option(option), {"true"}, "controller"};
  }
  throw wrong_place("controller", fmt::format("{}: it takes gloo", quoted_beginning(name)));
}

void add(const std::string& place, const YAML::Node& value, HorovodConfig& config) {
  const HorovodOption* const option = horovod_option_at(place);
  if (option == nullptr) {
    config.unknown.push_back(place);
  } else if (value.IsScalar()) {
    config.options.push_back({option, {value.Scalar()}, place});
  } else if (!value.IsNull()) {  // an empty value means the default
    throw wrong_place(place, "it takes one value, not a list or a map");
  }
}

/// Whether any option has its place in the section.
bool is_section(const std::string& name) {
  return std::ranges::any_of(horovod_options(), [&](const HorovodOption& option) {
    return option.place.starts_with(name + ".");
  });
}

void add_section(const std::string& name, const YAML::Node& section, HorovodConfig& config) {
  if (name == "controller") {
    config.options.push_back(controller(section));
  } else if (section.IsMap()) {
    for (const auto& entry : section) {
      add(fmt::format("{}.{}", name, key_of(entry.first, name)), entry.second, config);
    }
  } else if (is_section(name) && !section.IsNull()) {
    throw wrong_place(name, "it takes names with values, as in cache_capacity: 1024");
  } else if (!section.IsNull()) {
    config.unknown.push_back(name);
  }
}

std::string_view indent_of(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

YAML::Node load(const std::string& text) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    const auto lines = split(text, '\n');
    const auto tab = std::ranges::find_if(
        lines, [](std::string_view line) { return indent_of(line).find('\t') != line.npos; });
    if (tab != lines.end()) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("line {} begins with a tab: indent YAML by spaces", tab - lines.begin() + 1));
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("line {} is not YAML: {}", error.mark.line + 1, error.msg));
  }
}

}  // namespace

HorovodConfig parse_horovod_config(const std::string& text) {
  const YAML::Node root = load(text);
  HorovodConfig config;
  if (root.IsNull()) return config;
  if (!root.IsMap()) {
    throw Error(ErrorKind::kUsage, "it has no sections such as params: or timeline:");
  }
  for (const auto& entry : root)
    add_section(key_of(entry.first, "a section"), entry.second, config);
  return config;
}

HorovodConfig read_horovod_config(const std::string& path) {
  try {
    return parse_horovod_config(read_text_file(path, kLongestConfig));
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("--config-file {}: {}", path, error.message()));
  }
}

}  // namespace peal::cli
