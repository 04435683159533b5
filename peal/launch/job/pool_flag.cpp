#include "peal/launch/job/pool_flag.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/job/edit_document.h"

namespace peal::launch {
namespace {

constexpr std::string_view kFlag = "--worker-pool-spec";

/// A name in the text, and the field of the pool that it sets.
struct PoolKey {
  std::string_view name;
  std::string_view path;
  bool is_number = false;
  bool is_list = false;
};
constexpr std::array kKeys = {
    PoolKey{.name = "replica-count", .path = "replicaCount", .is_number = true},
    PoolKey{.name = "machine-type", .path = "machineSpec.machineType"},
    PoolKey{.name = "accelerator-type", .path = "machineSpec.acceleratorType"},
    PoolKey{.name = "accelerator-count", .path = "machineSpec.acceleratorCount", .is_number = true},
    PoolKey{.name = "container-image-uri", .path = "containerSpec.imageUri"},
    PoolKey{.name = "executor-image-uri", .path = "pythonPackageSpec.executorImageUri"},
    PoolKey{.name = "python-module", .path = "pythonPackageSpec.pythonModule"},
    PoolKey{.name = "local-package-path", .path = "pythonPackageSpec.packageUris", .is_list = true},
};
/// Names by which gcloud builds an image.
constexpr std::array<std::string_view, 5> kBuilds = {
    "script", "output-image-uri", "requirements", "extra-packages", "extra-dirs"};

Error wrong(const std::string& problem) {
  return Error(ErrorKind::kUsage, fmt::format("{}: {}", kFlag, problem));
}

const PoolKey& key_named(const std::string& name) {
  const auto* const key = std::ranges::find(kKeys, name, &PoolKey::name);
  if (key != kKeys.end()) return *key;
  if (std::ranges::find(kBuilds, name) != kBuilds.end()) {
    throw wrong(
        fmt::format("peal builds no images, so {} has no meaning; build the image, and name "
                    "it by container-image-uri",
                    name));
  }
  std::vector<std::string_view> names;
  for (const PoolKey& known : kKeys) names.push_back(known.name);
  const std::string_view nearest = nearest_word(name, names);
  throw wrong(
      nearest.empty()
          ? fmt::format("there is no {}, only {}", quoted_beginning(name), fmt::join(names, ", "))
          : fmt::format("there is no {}; did you mean {}?", quoted_beginning(name), nearest));
}

}  // namespace

Value pool_of(const std::string& text, const std::string& here, const Place& place) {
  Value pool = map_at(place);
  if (text.empty()) return pool;
  for (const auto& [name, value] : pairs_in(text, kFlag)) {
    const PoolKey& key = key_named(name);
    value_in(pool, key.path, place) = key.is_number ? word_at(value, place)
                                      : key.is_list ? paths_at({value}, here, place)
                                                    : text_at(value, place);
  }
  if ((find(pool, "containerSpec") == nullptr) == (find(pool, "pythonPackageSpec") == nullptr)) {
    throw wrong(
        "a pool needs container-image-uri=IMAGE, or executor-image-uri and python-module, and not "
        "both");
  }
  return pool;
}

}  // namespace peal::launch
