#include "peal/launch/job/field.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/duration_text.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/size_text.h"

namespace peal::launch {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// Plain words that some readers of YAML take for true or false.
bool is_truth_word(const std::string& text) {
  constexpr std::array<std::string_view, 6> kWords = {"true", "false", "yes", "no", "on", "off"};
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return std::ranges::find(kWords, lower) != kWords.end();
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "nothing";
    case Value::Kind::kScalar:
      return quoted_beginning(value.text);
    case Value::Kind::kList:
      return "a list";
    case Value::Kind::kMap:
      break;
  }
  return "a map";
}

}  // namespace

Field Field::part(const Value& value, std::string_view name) const {
  const bool is_index = name.starts_with('[');
  const std::string_view dot = path_.empty() || is_index ? "" : ".";
  return {value, fmt::format("{}{}{}", path_, dot, name), file_};
}

Error Field::error(std::string_view problem) const {
  const std::string place = to_text(value_->place, file_);
  if (path_.empty() || !value_->place.option.empty()) {
    return Error(ErrorKind::kUsage, fmt::format("{}: {}", place, problem));
  }
  return Error(ErrorKind::kUsage, fmt::format("{}: {}: {}", place, path_, problem));
}

const std::string& Field::word() const {
  if (is(Value::Kind::kScalar)) return value_->text;
  if (is(Value::Kind::kNull)) throw error("it has no value; for an empty text write \"\"");
  throw error(fmt::format("it takes one value, not {}", describe(*value_)));
}

std::string Field::text() const {
  const std::string& written = word();
  if (!value_->is_quoted && is_truth_word(written)) {
    throw error(
        fmt::format("it takes a text, and YAML may read {0} as true or false; quote it: "
                    "\"{0}\"",
                    written));
  }
  return written;
}

std::string Field::filled_text() const {
  std::string written = text();
  if (written.empty()) throw error("it takes a text that is not empty");
  return written;
}

int Field::integer(int least, int most) const {
  const std::string& written = word();
  const bool is_digits = written.find_first_not_of(kDigits) == std::string::npos;
  if (written.size() > 1 && written.front() == '0' && is_digits) {
    throw error(fmt::format("{} begins with 0, and may be read as octal; remove the 0", written));
  }
  const auto number = try_parse_number<int>(written);
  if (number && *number >= least && *number <= most) return *number;
  throw error(
      fmt::format("{} is not a whole number from {} to {}", describe(*value_), least, most));
}

double Field::number() const {
  const std::string& written = word();
  const auto number = try_parse_number<double>(written);
  const bool is_plain = written.find_first_not_of("0123456789.") == std::string::npos;
  if (number && is_plain) return *number;
  throw error(fmt::format("{} is not a number such as 4 or 0.5", describe(*value_)));
}

bool Field::flag() const {
  const std::string& written = word();
  if (written == "true") return true;
  if (written == "false") return false;
  throw error(fmt::format("{} is not true or false", describe(*value_)));
}

std::chrono::milliseconds Field::duration() const {
  const std::string& written = word();
  if (const auto duration = try_parse_duration(written)) return *duration;
  const bool is_number = try_parse_number<double>(written).has_value();
  throw error(fmt::format("{} is not a duration{}, as in 90s, 30m or 2h",
                          describe(*value_),
                          is_number ? ": it has no unit" : ""));
}

std::chrono::seconds Field::seconds() const {
  const auto exact = duration();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(exact);
  if (whole == exact) return whole;
  throw error(fmt::format("{} is not a whole number of seconds", describe(*value_)));
}

Bytes Field::size() const {
  if (const auto size = try_parse_size(word())) return *size;
  throw error(fmt::format("{} is not a size, as in 512M or 15G", describe(*value_)));
}

std::vector<Field> Field::items() const {
  if (!is(Value::Kind::kList)) {
    throw error(fmt::format("it takes a list, as in [a, b], not {}", describe(*value_)));
  }
  std::vector<Field> items;
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    items.push_back(part(value_->items[i], fmt::format("[{}]", i)));
  }
  return items;
}

std::vector<std::string> Field::texts() const {
  std::vector<std::string> texts;
  for (const Field& item : items()) texts.push_back(item.text());
  return texts;
}

std::map<std::string, std::string> Field::texts_by_name() const {
  if (!is(Value::Kind::kMap)) {
    throw error(
        fmt::format("it takes names with values, as in NAME: value, not {}", describe(*value_)));
  }
  std::map<std::string, std::string> texts;
  for (const Member& member : value_->members) {
    texts[member.key] = part(member.value, member.key).text();
  }
  return texts;
}

Members::Members(const Field& field, std::vector<std::string_view> keys)
    : field_(field), keys_(std::move(keys)) {
  if (!field.is(Value::Kind::kMap)) {
    throw field.error(fmt::format("it takes fields with values, as in name: value, not {}",
                                  describe(field.value())));
  }
  for (const Member& member : field.value().members) {
    if (std::ranges::find(keys_, member.key) != keys_.end()) continue;
    Value at;
    at.place = member.place;
    const std::string_view nearest = nearest_word(member.key, keys_);
    throw field_.part(at, member.key)
        .error(nearest.empty()
                   ? fmt::format("there is no such field, only {}", fmt::join(keys_, ", "))
                   : fmt::format("there is no such field; did you mean {}?", nearest));
  }
}

std::optional<Field> Members::take(std::string_view key) const {
  if (std::ranges::find(keys_, key) == keys_.end()) {
    throw Error(ErrorKind::kBug, fmt::format("{} is not among the keys of the reader", key));
  }
  const Value* const value = find(field_.value(), key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return std::nullopt;
  return field_.part(*value, key);
}

Field Members::need(std::string_view key) const {
  if (auto field = take(key)) return *field;
  throw field_.error(fmt::format("the field {} is missing", key));
}

}  // namespace peal::launch
