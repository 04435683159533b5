#include "peal/rendezvous/held_meetings.h"

#include <sys/stat.h>

#include <map>
#include <optional>

#include <fmt/format.h>

#include "peal/base/guarded.h"
#include "peal/system/per_process.h"

namespace peal::rendezvous {
namespace {

using Held = std::map<std::string, std::weak_ptr<store::Store>>;

Guarded<Held>& all_held() {
  static constinit PerProcess<Guarded<Held>> own;
  return own.get();
}

std::optional<std::string> name_in_file(const std::string& path, Rank rank) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return fmt::format("rank {} in file {}:{}", rank, status.st_dev, status.st_ino);
}

}  // namespace

void note_held(const std::string& name, const std::shared_ptr<store::Store>& store) {
  all_held().with([&](Held& held) {
    std::erase_if(held, [](const auto& entry) { return entry.second.expired(); });
    held[name] = store;
  });
}

bool is_held(const std::string& name) {
  return all_held().with([&](const Held& held) {
    const auto found = held.find(name);
    return found != held.end() && !found->second.expired();
  });
}

void note_file_held(const std::string& path,
                    Rank rank,
                    const std::shared_ptr<store::Store>& store) {
  if (const auto name = name_in_file(path, rank)) note_held(*name, store);
}

bool is_file_held(const std::string& path, Rank rank) {
  const auto name = name_in_file(path, rank);
  return name && is_held(*name);
}

}  // namespace peal::rendezvous
