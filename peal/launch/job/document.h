// A YAML or JSON document as a value. Each part knows its line and column, so that errors can name
// them. The readers of job files use it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"

namespace peal::launch {

/// The place of a value: in the file, counted from 1, or in an option of the command line.
struct Place {
  int line = 0;
  int column = 0;
  std::string option{};  // "--worker-count"; empty: in the file
  friend bool operator==(const Place&, const Place&) = default;
};

struct Member;

/// A part of the document. Aliases (*name) are replaced by the values that they repeat.
struct Value {
  enum class Kind : unsigned char { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Place place{};
  std::string text{};           // of a scalar, as it is written
  bool is_quoted = false;       // a scalar that is a text, even if the text is "yes" or "1"
  std::vector<Value> items{};   // of a list
  std::vector<Member> members;  // of a map, in the order of the file
  friend bool operator==(const Value&, const Value&) = default;
};

/// An entry of a map.
struct Member {
  std::string key;
  Place place;
  Value value;
  friend bool operator==(const Member&, const Member&) = default;
};

/// Limits, so that no document can take much memory or time.
inline constexpr Bytes kLongestDocument = 1_MiB;
inline constexpr int kMostValues = 100'000;  // with those that aliases repeat
inline constexpr int kDeepestValue = 50;

/// The value with this key; nullptr if the map has no such key. `map` is a map.
const Value* find(const Value& map, std::string_view key);
Value* find(Value& map, std::string_view key);

/// Reads a text in YAML or JSON. `name` is the name of the file, for errors.
/// Errors: usage: not YAML, not UTF-8, an empty text, several documents, a duplicate key, a key
/// that
///   is not a word, a tag, a tab, or more than the limits. The text begins with "NAME:LINE:COLUMN:
///   ".
Value parse_document(std::string_view text, const std::string& name);

/// The value as JSON in one line. Plain scalars that are numbers of JSON, true or false stay so,
/// and all others become texts.
std::string to_json(const Value& value);

/// "NAME:LINE:COLUMN", or the option.
std::string to_text(const Place& place, const std::string& name);

}  // namespace peal::launch
