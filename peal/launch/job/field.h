// Reads typed values from a document. Errors contain the place and the path of the value, and the
// legal values. The readers of the three forms of job files use it.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/launch/job/document.h"

namespace peal::launch {

/// A value of a document, with its path. All functions throw usage errors of the form
/// "FILE:LINE:COLUMN: PATH: what is wrong". The value must outlive the field.
class Field final {
 public:
  /// `path`: "" for the whole document. `file`: its name.
  Field(const Value& value, std::string path, std::string file)
      : value_(&value), path_(std::move(path)), file_(std::move(file)) {}

  const Value& value() const { return *value_; }
  const std::string& path() const { return path_; }
  /// A part of this field: "roles[0].image".
  Field part(const Value& value, std::string_view name) const;
  Error error(std::string_view problem) const;

  bool is(Value::Kind kind) const { return value_->kind == kind; }

  /// A text. Rejects an empty value, and a plain yes, no, on, off, true or false, because programs
  /// read these differently.
  std::string text() const;
  /// The same, but an empty text is an error too.
  std::string filled_text() const;
  /// The text as written, also if it is a number or a plain yes.
  const std::string& word() const;
  /// A whole number. May be quoted, as in JSON of Google's services.
  int integer(int least, int most) const;
  /// A number such as 4 or 0.5.
  double number() const;
  bool flag() const;
  /// "2h", "7200s".
  std::chrono::milliseconds duration() const;
  /// The same in whole seconds.
  std::chrono::seconds seconds() const;
  /// "15G", "512M".
  Bytes size() const;

  /// The items of a list.
  std::vector<Field> items() const;
  std::vector<std::string> texts() const;
  /// A map of texts, as variables or labels.
  std::map<std::string, std::string> texts_by_name() const;

 private:
  const Value* value_;
  std::string path_;
  std::string file_;
};

/// The members of a map.
class Members final {
 public:
  /// `keys`: the fields that the map may have.
  /// Errors: usage if the field is not a map, or has another key. The error names the nearest key.
  Members(const Field& field, std::vector<std::string_view> keys);

  const Field& field() const { return field_; }
  /// The member with this key, which is one of the keys. Returns nothing if the mapping does not
  /// have the member, or if its value is empty (null).
  std::optional<Field> take(std::string_view key) const;
  /// The same. Errors: usage if it is missing.
  Field need(std::string_view key) const;

 private:
  Field field_;
  std::vector<std::string_view> keys_;
};

}  // namespace peal::launch
