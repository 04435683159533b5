// Reads typed values from a document, with errors that say where the value stands, what it is
// called, and what it takes. The readers of the three forms of job files use it.
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

  /// A text. A plain yes, no, on, off, true, false or nothing is refused: programs read them
  /// differently.
  std::string text() const;
  /// The text as it is written, whatever it is.
  const std::string& word() const;
  /// A whole number. It may be quoted, as in JSON of Google's services.
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

/// The members of a map, taken one by one. What is not taken is an unknown field.
class Members final {
 public:
  /// Errors: usage if the field is not a map.
  explicit Members(const Field& field);

  const Field& field() const { return field_; }
  /// The member with this key. Nothing, if there is none or its value is empty (null).
  std::optional<Field> take(std::string_view key);
  /// The same. Errors: usage if it is missing.
  Field need(std::string_view key);
  /// The keys of `keys` that are there, as paths. They count as taken.
  std::vector<std::string> take_all(const std::vector<std::string_view>& keys);

  /// Errors: usage, if a member was not taken. The error names the nearest key of those that were
  /// asked for.
  void refuse_rest() const;

 private:
  Field field_;
  std::vector<std::string> known_{};  // the keys that were asked for
};

}  // namespace peal::launch
