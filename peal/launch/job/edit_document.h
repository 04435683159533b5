// Changes a document that was parsed: the steps of gcloud_flags.cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "peal/launch/job/document.h"

namespace peal::launch {

/// Values at a place. A word is not quoted: it may be a number or a truth value.
/// Errors: usage, for a text that is not UTF-8.
Value text_at(std::string_view text, const Place& place);
Value word_at(std::string_view text, const Place& place);
Value map_at(const Place& place);
/// A list of texts.
Value list_at(const std::vector<std::string_view>& texts, const Place& place);

/// A list of paths; those that are relative begin at the folder `here`, if it is not empty.
Value paths_at(const std::vector<std::string_view>& paths,
               const std::string& here,
               const Place& place);

/// Sets the member of a map, or adds it.
void set(Value& map, std::string_view key, Value value);

/// The member of a map; if it is not a map, it becomes an empty one at `place`.
Value& map_in(Value& map, std::string_view key, const Place& place);

/// The value at a path, as "masterConfig.imageUri". Maps and the value are made if they are
/// missing.
Value& value_in(Value& map, std::string_view path, const Place& place);

/// The parts between commas, or, as in gcloud, between the signs in "^:^a:b,c". None in "".
std::vector<std::string_view> parts_in(std::string_view text);

/// The pairs in "count=2,type=x". `name`: of the flag, for errors.
/// Errors: usage, for a part without =, and for a name that is here twice.
std::vector<std::pair<std::string, std::string>> pairs_in(std::string_view text,
                                                          std::string_view name);

}  // namespace peal::launch
