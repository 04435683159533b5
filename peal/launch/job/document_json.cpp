// Values of a document as JSON.
#include <string>

#include <nlohmann/json.hpp>

#include "peal/launch/job/document.h"

namespace peal::launch {
namespace {

using Json = nlohmann::ordered_json;

/// A plain scalar that JSON would read as a number, a truth value or null; else its text.
Json plain(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  const bool is_same = !json.is_discarded() && json.is_primitive() && json.dump() == text;
  return is_same ? json : Json(text);
}

Json json_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return nullptr;
    case Value::Kind::kScalar:
      return value.is_quoted ? Json(value.text) : plain(value.text);
    case Value::Kind::kList: {
      Json list = Json::array();
      for (const Value& item : value.items) list.push_back(json_of(item));
      return list;
    }
    case Value::Kind::kMap:
      break;
  }
  Json map = Json::object();
  for (const Member& member : value.members) map[member.key] = json_of(member.value);
  return map;
}

}  // namespace

std::string to_json(const Value& value) { return json_of(value).dump(); }

}  // namespace peal::launch
