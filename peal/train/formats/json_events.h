// Events of nlohmann's JSON parser, for readers that accept one exact form: the base class refuses
// everything. A reader of events needs no tree of JSON values, which would take a multiple of the
// memory, and would hide a name that occurs twice. Used by the parsers of this folder.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::train {

/// A reader derives from it, and hides the methods of the events that it accepts. The methods have
/// the names and forms that the parser expects. They throw, and so always return true.
class JsonEvents {
 public:
  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool number_integer(std::int64_t) { return refuse("a negative number"); }
  bool number_unsigned(std::uint64_t) { return refuse("a number"); }
  bool number_float(double, const std::string&) { return refuse("a number that is not whole"); }
  bool string(std::string&) { return refuse("a text"); }
  bool binary(nlohmann::json::binary_t&) { return refuse("binary data"); }
  bool start_array(std::size_t) { return refuse("a list"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    throw damaged("the header is not JSON at byte " + std::to_string(position));
  }

 protected:
  static Error damaged(const std::string& what) { return Error(ErrorKind::kMismatch, what); }

  [[noreturn]] bool refuse(std::string_view what) const {
    std::string text = "the header has " + std::string(what) + " in place of the expected value";
    if (!name_.empty()) text += " of " + quoted_beginning(name_);
    if (!field_.empty()) text += ": " + quoted_beginning(field_);
    throw damaged(text);
  }

  [[noreturn]] static void refuse_twice(const std::string& name) {
    throw damaged("the header has " + quoted_beginning(name) + " twice");
  }

  std::int64_t checked(std::uint64_t number) const {
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse("a number beyond 2^63");
    }
    return static_cast<std::int64_t>(number);
  }

  // The keys in the outer and in the inner object that are being read.
  const std::string& name() const { return name_; }
  const std::string& field() const { return field_; }
  void set_name(std::string name) { name_ = std::move(name); }
  void set_field(std::string field) { field_ = std::move(field); }

 private:
  std::string name_;
  std::string field_;
};

/// Passes the events of a JSON text, which must be one object, to `reader`.
template <class Reader>
void read_json(std::string_view text, Reader& reader) {
  if (!text.starts_with('{')) {  // the parser would accept spaces and a mark of the byte order
    throw Error(ErrorKind::kMismatch, "the header does not begin with {");
  }
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
}

}  // namespace peal::train
