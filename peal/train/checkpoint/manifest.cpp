#include "peal/train/checkpoint/manifest.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/serialize.h"
#include "peal/base/units.h"

namespace peal::train {
namespace {

// The keys: checkpoint, step, ranks, model.NAME, optimizer.NAME.tensors,
// optimizer.NAME.algorithm, optimizer.NAME.groups, optimizer.NAME.GROUP.OPTION,
// optimizer.NAME.GROUP.parameters, optimizer.NAME.GROUP.parameter.NUMBER, rank.NUMBER.tensors,
// value.NAME
constexpr std::string_view kVersion = "1";
constexpr std::string_view kModel = "model.";
constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kRank = "rank.";
constexpr std::string_view kTensors = ".tensors";
constexpr std::string_view kValue = "value.";

Error damaged(const std::string& what) {
  return Error(ErrorKind::kMismatch, "the metadata of the checkpoint is damaged: " + what);
}

/// Reads the keys of a Metadata, and says which one is missing or wrong.
class Keys {
 public:
  explicit Keys(const Metadata& metadata) : metadata_(metadata) {}

  const std::string& text(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) throw damaged("there is no " + quoted_beginning(key));
    return found->second;
  }

  template <class Number>
  Number number(const std::string& key) const {
    const std::string& found = text(key);
    const auto number = try_parse_number<Number>(found);
    if (!number) throw damaged(quoted_beginning(key) + " is " + quoted_beginning(found));
    return *number;
  }

  /// A count of keys that exist, so that it has a bound.
  std::size_t count(const std::string& key) const {
    const auto number = this->number<std::size_t>(key);
    if (number > metadata_.size()) throw damaged(quoted_beginning(key) + " is too large");
    return number;
  }

  /// The rest of each key that begins with `prefix`, and its text.
  Metadata below(std::string_view prefix) const {
    Metadata rest;
    for (auto key = metadata_.lower_bound(std::string(prefix));
         key != metadata_.end() && key->first.starts_with(prefix);
         ++key) {
      rest.emplace(key->first.substr(prefix.size()), key->second);
    }
    return rest;
  }

 private:
  const Metadata& metadata_;
};

void put_group(Metadata& metadata, const std::string& prefix, const OptimizerState::Group& group) {
  Values numbers;
  for (const auto& [option, value] : group.options) numbers.set(prefix + "option." + option, value);
  numbers.set(prefix + "parameters", group.parameters.size());
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    metadata[prefix + "parameter." + std::to_string(i)] = group.parameters[i];
  }
  metadata.merge(numbers.texts);
}

OptimizerState::Group read_group(const Keys& keys, const std::string& prefix) {
  OptimizerState::Group group;
  const std::string options = prefix + "option.";
  for (const auto& [option, text] : keys.below(options)) {
    group.options[option] = keys.number<double>(options + option);
  }
  const std::size_t parameters = keys.count(prefix + "parameters");
  for (std::size_t i = 0; i < parameters; ++i) {
    group.parameters.push_back(keys.text(prefix + "parameter." + std::to_string(i)));
  }
  return group;
}

std::string group_prefix(const std::string& optimizer, std::size_t group) {
  return std::string(kOptimizer) + optimizer + ".group." + std::to_string(group) + ".";
}

Manifest::Optimizer read_optimizer(const Keys& keys, const std::string& name) {
  const std::string prefix = std::string(kOptimizer) + name + ".";
  Manifest::Optimizer optimizer;
  optimizer.tensors = keys.number<std::int64_t>(prefix + "tensors");
  optimizer.state.algorithm = keys.text(prefix + "algorithm");
  const std::size_t groups = keys.count(prefix + "groups");
  for (std::size_t i = 0; i < groups; ++i) {
    optimizer.state.groups.push_back(read_group(keys, group_prefix(name, i)));
  }
  return optimizer;
}

/// The rank of a key of to_metadata for the tensors of a rank, without kRank.
Rank read_rank(std::string_view key) {
  const auto rank = key.ends_with(kTensors)
                        ? try_parse_number<Rank>(key.substr(0, key.size() - kTensors.size()))
                        : std::nullopt;
  if (!rank || *rank < 0) throw damaged("a key for rank " + quoted_beginning(key));
  return *rank;
}

bool is_allowed(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
}

}  // namespace

Metadata to_metadata(const Manifest& manifest) {
  Metadata metadata = {{"checkpoint", std::string(kVersion)},
                       {"step", std::to_string(manifest.step)},
                       {"ranks", std::to_string(manifest.ranks)}};
  for (const auto& [name, tensors] : manifest.models) {
    metadata[std::string(kModel) + name] = std::to_string(tensors);
  }
  for (const auto& [name, optimizer] : manifest.optimizers) {
    const std::string prefix = std::string(kOptimizer) + name + ".";
    metadata[prefix + "tensors"] = std::to_string(optimizer.tensors);
    metadata[prefix + "algorithm"] = optimizer.state.algorithm;
    metadata[prefix + "groups"] = std::to_string(optimizer.state.groups.size());
    for (std::size_t i = 0; i < optimizer.state.groups.size(); ++i) {
      put_group(metadata, group_prefix(name, i), optimizer.state.groups[i]);
    }
  }
  for (const auto& [rank, tensors] : manifest.rank_tensors) {
    metadata[std::string(kRank) + std::to_string(rank) + std::string(kTensors)] =
        std::to_string(tensors);
  }
  for (const auto& [name, text] : manifest.values.texts) {
    metadata[std::string(kValue) + name] = text;
  }
  return metadata;
}

Manifest parse_manifest(const Metadata& metadata) {
  const Keys keys(metadata);
  if (const std::string& version = keys.text("checkpoint"); version != kVersion) {
    throw Error(ErrorKind::kUnsupported,
                "the checkpoint has the version " + quoted_beginning(version) +
                    ", but this program reads version 1: use a newer peal");
  }
  Manifest manifest;
  manifest.step = keys.number<std::int64_t>("step");
  manifest.ranks = keys.number<int>("ranks");
  if (manifest.step < 0 || manifest.ranks < 1) throw damaged("a negative number");
  for (const auto& [name, tensors] : keys.below(kModel)) {
    manifest.models[name] = keys.number<std::int64_t>(std::string(kModel) + name);
  }
  for (const auto& [key, text] : keys.below(kOptimizer)) {
    if (!key.ends_with(".algorithm")) continue;
    const std::string name = key.substr(0, key.size() - std::string_view(".algorithm").size());
    manifest.optimizers[name] = read_optimizer(keys, name);
  }
  for (const auto& [key, text] : keys.below(kRank)) {
    manifest.rank_tensors[read_rank(key)] = keys.number<std::int64_t>(std::string(kRank) + key);
  }
  manifest.values.texts = keys.below(kValue);
  if (const std::string reason = why_not_file_names(manifest); !reason.empty())
    throw damaged(reason);
  return manifest;
}

void merge_groups(Manifest& manifest, const Manifest& other) {
  for (const auto& [name, theirs] : other.optimizers) {
    const auto ours = manifest.optimizers.find(name);
    if (ours == manifest.optimizers.end() ||
        ours->second.state.algorithm != theirs.state.algorithm ||
        ours->second.state.groups.size() != theirs.state.groups.size()) {
      throw Error(ErrorKind::kMismatch,
                  "the ranks do not have the same optimizer \"" + name +
                      "\": every rank needs the same algorithm and groups");
    }
    for (std::size_t i = 0; i < theirs.state.groups.size(); ++i) {
      std::vector<std::string>& parameters = ours->second.state.groups[i].parameters;
      std::set<std::string> known(parameters.begin(), parameters.end());
      for (const std::string& parameter : theirs.state.groups[i].parameters) {
        if (known.insert(parameter).second) parameters.push_back(parameter);
      }
    }
  }
}

std::string encode(const Manifest& manifest) {
  ByteWriter writer;
  const Metadata metadata = to_metadata(manifest);
  writer.put_u64(metadata.size());
  for (const auto& [key, text] : metadata) writer.put_text(key).put_text(text);
  return std::move(writer).take();
}

Manifest decode_manifest(std::string_view bytes) {
  constexpr Bytes kLongest(std::numeric_limits<std::int32_t>::max());
  ByteReader reader(bytes, "description of a checkpoint");
  Metadata metadata;
  for (std::uint64_t left = reader.get_u64(); left > 0; --left) {
    const std::string key(reader.get_text(kLongest));
    metadata[key] = reader.get_text(kLongest);
  }
  reader.finish();
  return parse_manifest(metadata);
}

std::string why_not_file_names(const Manifest& manifest) {
  std::set<std::string> taken = {"training", "ranks"};
  std::vector<std::string> names;
  for (const auto& [name, tensors] : manifest.models) names.push_back(name);
  for (const auto& [name, optimizer] : manifest.optimizers) names.push_back(name);
  for (const std::string& name : names) {
    const std::string who = "the name " + quoted_beginning(name) + " of a part of the checkpoint ";
    if (name.empty() || !std::ranges::all_of(name, is_allowed)) {
      return who + "is not letters, digits, - and _";
    }
    if (!taken.insert(name).second) return who + "is already taken";
  }
  return "";
}

}  // namespace peal::train
