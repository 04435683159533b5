#include "peal/launch/job/edit_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"

namespace peal::launch {
namespace {

/// Arguments of a program may have any bytes.
void check_text(std::string_view text, std::string_view name) {
  if (is_utf8(text)) return;
  throw Error(ErrorKind::kUsage, fmt::format("{}: the value is not UTF-8 text", name));
}

}  // namespace

Value word_at(std::string_view text, const Place& place) {
  check_text(text, place.option);
  Value value;
  value.kind = Value::Kind::kScalar;
  value.place = place;
  value.text = text;
  return value;
}

Value text_at(std::string_view text, const Place& place) {
  Value value = word_at(text, place);
  value.is_quoted = true;
  return value;
}

Value map_at(const Place& place) {
  Value value;
  value.kind = Value::Kind::kMap;
  value.place = place;
  return value;
}

Value list_at(const std::vector<std::string_view>& texts, const Place& place) {
  Value value;
  value.kind = Value::Kind::kList;
  value.place = place;
  for (const std::string_view text : texts) value.items.push_back(text_at(text, place));
  return value;
}

Value paths_at(const std::vector<std::string_view>& paths,
               const std::string& here,
               const Place& place) {
  Value list = list_at(paths, place);
  for (Value& path : list.items) {
    const bool is_relative = !path.text.starts_with('/') && path.text.find("://") == path.text.npos;
    if (is_relative && !here.empty()) path.text = here + "/" + path.text;
  }
  return list;
}

void set(Value& map, std::string_view key, Value value) {
  if (Value* const known = find(map, key)) {
    *known = std::move(value);
    return;
  }
  const Place place = value.place;
  map.members.push_back({std::string(key), place, std::move(value)});
}

Value& map_in(Value& map, std::string_view key, const Place& place) {
  Value* const known = find(map, key);
  if (known != nullptr && known->kind == Value::Kind::kMap) return *known;
  set(map, key, map_at(place));
  return *find(map, key);
}

Value& value_in(Value& map, std::string_view path, const Place& place) {
  const std::size_t point = path.find('.');
  if (point != std::string_view::npos) {
    return value_in(map_in(map, path.substr(0, point), place), path.substr(point + 1), place);
  }
  if (find(map, path) == nullptr) {
    Value empty;
    empty.place = place;
    set(map, path, std::move(empty));
  }
  return *find(map, path);
}

std::vector<std::string_view> parts_in(std::string_view text) {
  if (text.empty()) return {};
  const bool has_own_sign = text.size() > 2 && text[0] == '^' && text[2] == '^';
  return has_own_sign ? split(text.substr(3), text[1]) : split(text, ',');
}

std::vector<std::pair<std::string, std::string>> pairs_in(std::string_view text,
                                                          std::string_view name) {
  check_text(text, name);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view part : parts_in(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: {} is not of the form name=value, with commas between pairs",
                              name,
                              quoted_beginning(part)));
    }
    std::string key(part.substr(0, equals));
    if (std::ranges::find(pairs, key, &std::pair<std::string, std::string>::first) != pairs.end()) {
      throw Error(ErrorKind::kUsage, fmt::format("{}: {} is here twice", name, key));
    }
    pairs.emplace_back(std::move(key), part.substr(equals + 1));
  }
  return pairs;
}

}  // namespace peal::launch
