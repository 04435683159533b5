// Changes a document that was parsed: the steps of gcloud_flags.cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "peal/launch/job/document.h"

namespace peal::launch {

/// Values at a place. A text is quoted. A word is not: it may be a number, or true or false.
/// Errors: usage, for a text that is not UTF-8.
Value text_at(std::string_view text, const Place& place);
Value word_at(std::string_view text, const Place& place);
Value map_at(const Place& place);
/// A list of texts.
Value list_at(const std::vector<std::string_view>& texts, const Place& place);

/// A list of paths. If the folder `here` is not empty, relative paths begin there.
Value paths_at(const std::vector<std::string_view>& paths,
               const std::string& here,
               const Place& place);

/// Sets the member of a map, or adds it.
void set(Value& map, std::string_view key, Value value);

/// The member of a map. A member that is missing or is not a map becomes an empty map at `place`.
Value& map_in(Value& map, std::string_view key, const Place& place);

/// The value at a path such as "masterConfig.imageUri". Makes the value, and the maps around it, if
/// they are missing.
Value& value_in(Value& map, std::string_view path, const Place& place);

/// The parts between commas. As in gcloud, "^:^a:b,c" chooses another separator: parts a and b,c.
/// An empty text has no parts.
std::vector<std::string_view> parts_in(std::string_view text);

/// The pairs in "count=2,type=x". `name`: of the flag, for errors.
/// Errors: usage, for a part without =, and for a duplicate name.
std::vector<std::pair<std::string, std::string>> pairs_in(std::string_view text,
                                                          std::string_view name);

}  // namespace peal::launch
