#include "peal/launch/job/managed.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "peal/base/difference.h"
#include "peal/base/printable.h"

namespace peal::launch {
namespace {

constexpr std::string_view kNoTpus =
    "peal has no TPUs; choose a machine with CPUs or GPUs, as n1-standard-8";
constexpr int kMostAccelerators = 1'000;
constexpr std::size_t kMostPackages = 100;
constexpr std::string_view kFolder = "packages";

}  // namespace

void Unused::take(const Members& members, const std::vector<std::string_view>& keys) {
  for (const std::string_view key : keys) {
    if (auto field = members.take(key)) fields_.push_back(std::move(*field));
  }
}

std::vector<std::string> Unused::names(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const Field& field : fields_) {
    const std::string& option = field.value().place.option;
    const std::string& path = field.path();
    names.push_back(!option.empty()            ? option
                    : path.starts_with(prefix) ? path.substr(prefix.size())
                                               : path);
  }
  return names;
}

MachineType read_machine_type(const Field& field) {
  const std::string name = field.text();
  if (const auto machine = machine_type(name)) {
    if (machine->is_tpu) throw field.error(kNoTpus);
    return *machine;
  }
  const std::string nearest = nearest_machine_type(name);
  throw field.error(fmt::format(
      "{} is not a machine type that peal knows{}",
      quoted_beginning(name),
      nearest.empty() ? ", as n1-standard-8" : fmt::format("; did you mean {}?", nearest)));
}

std::optional<int> read_accelerators(const Members& members,
                                     std::string_view type,
                                     std::string_view count,
                                     std::span<const std::string_view> types) {
  const auto type_field = members.take(type);
  const auto count_field = members.take(count);
  const std::string name = type_field ? type_field->text() : "ACCELERATOR_TYPE_UNSPECIFIED";
  const bool has_type = !name.ends_with("_TYPE_UNSPECIFIED");
  const int gpus = count_field ? count_field->integer(0, kMostAccelerators) : 0;
  if (name.starts_with("TPU")) throw type_field->error(kNoTpus);
  const bool is_known =
      types.empty() ? name.starts_with("NVIDIA_") : std::ranges::find(types, name) != types.end();
  if (has_type && !is_known) {
    const std::string_view nearest = nearest_word(name, types);
    throw type_field->error(fmt::format("{} is not an accelerator{}",
                                        quoted_beginning(name),
                                        nearest.empty()
                                            ? "; use one such as NVIDIA_TESLA_T4"
                                            : fmt::format("; did you mean {}?", nearest)));
  }
  if (has_type && gpus == 0) {
    throw type_field->error(fmt::format("it needs {}, the number of GPUs", count));
  }
  if (!has_type && gpus > 0) {
    throw count_field->error(fmt::format("it needs {}, as NVIDIA_TESLA_T4", type));
  }
  return gpus > 0 ? std::optional(gpus) : std::nullopt;
}

Packages read_packages(const Field& field) {
  Packages packages;
  bool has_folder = false;
  const std::vector<Field> items = field.items();
  if (items.size() > kMostPackages) {
    throw field.error(fmt::format("it has more than {} packages", kMostPackages));
  }
  for (const Field& item : items) {
    const std::string uri = item.text();
    if (uri.find("://") != std::string::npos) {
      throw item.error(
          fmt::format("peal cannot fetch {}; copy the package to this machine, and "
                      "name the file here",
                      quoted_beginning(uri)));
    }
    std::filesystem::path path(uri);
    if (!path.has_filename()) path = path.parent_path();  // "trainer/"
    const std::string extension = path.extension().string();
    if (extension == ".gz" || extension == ".bz2" || extension == ".tar" || extension == ".tgz") {
      throw item.error(
          "Python cannot import from this archive; build a wheel (pip wheel), or name "
          "the folder of the package");
    }
    const std::string target = fmt::format("{}/{}", kFolder, path.filename().string());
    packages.files.push_back({path.string(), target});
    const bool is_archive = extension == ".whl" || extension == ".zip" || extension == ".egg";
    if (is_archive) packages.python_path += (packages.python_path.empty() ? "" : ":") + target;
    has_folder = has_folder || !is_archive;
  }
  if (has_folder) {
    packages.python_path =
        std::string(kFolder) + (packages.python_path.empty() ? "" : ":") + packages.python_path;
  }
  return packages;
}

void refuse(const Members& members, std::string_view key, std::string_view reason) {
  if (const auto field = members.take(key)) throw field->error(reason);
}

}  // namespace peal::launch
