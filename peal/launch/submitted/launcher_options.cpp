#include "peal/launch/submitted/launcher_options.h"

#include <string_view>

#include <fmt/format.h>

#include "peal/base/bracketed.h"

namespace peal::launch::submitted {
namespace {

constexpr std::string_view kHosts = "--hosts=";
constexpr std::string_view kPealPath = "--peal-path=";

std::string text_of(const HostSlots& host) {
  return fmt::format("{}:{}", bracketed(host.name), host.slots);
}

}  // namespace

std::vector<std::string> encode(const LauncherOptions& options) {
  std::vector<std::string> texts;
  std::string hosts;
  for (const HostSlots& host : options.hosts) {
    hosts += (hosts.empty() ? "" : ",") + text_of(host);
  }
  if (!hosts.empty()) texts.push_back(std::string(kHosts) + hosts);
  if (!options.peal.empty()) texts.push_back(std::string(kPealPath) + options.peal);
  return texts;
}

LauncherOptions decode_launcher_options(std::span<const std::string> texts) {
  LauncherOptions options;
  for (const std::string_view text : texts) {
    if (text.starts_with(kHosts)) options.hosts = parse_host_list(text.substr(kHosts.size()));
    if (text.starts_with(kPealPath)) options.peal = text.substr(kPealPath.size());
  }
  return options;
}

}  // namespace peal::launch::submitted
