#include "peal/launch/job/document.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/launch/job/escapes.h"

namespace peal::launch {
namespace {

Error wrong(const Place& place, const std::string& name, std::string_view problem) {
  return Error(ErrorKind::kUsage, fmt::format("{}: {}", to_text(place, name), problem));
}

Place place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1, {}}; }

struct Size {
  int values = 1;
  int depth = 1;
};

Size size_of(const Value& value) {
  Size size;
  const auto add = [&](const Value& part) {
    const Size inner = size_of(part);
    size.values += inner.values;
    size.depth = std::max(size.depth, inner.depth + 1);
  };
  for (const Value& item : value.items) add(item);
  for (const Member& member : value.members) add(member.value);
  return size;
}

/// Builds the value from the events of the parser. Rejects tags, merge keys and other forms without
/// a meaning here.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(std::string name) : name_(std::move(name)) {}

  Value take() { return std::move(root_); }
  const Place& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = place_of(mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Value value;
    value.place = place_of(mark);
    add(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Place place = place_of(mark);
    const auto anchored = anchored_.find(anchor);
    if (anchored == anchored_.end()) {
      throw wrong(place, name_, "this alias (*) stands for a value that contains it");
    }
    const Size size = size_of(anchored->second);
    count(size.values - 1, place);
    check_depth(size.depth, place);
    add(Value(anchored->second), YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& text) override {
    Value value;
    value.kind = Value::Kind::kScalar;
    value.place = place_of(mark);
    value.is_quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!value.is_quoted) check_tag(tag, value.place);
    value.text = is_utf8(text) ? text : with_whole_escapes(text);
    add(std::move(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A list or a map that has begun.
  struct Open {
    Value value;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::set<std::string> keys{};     // of a map
    std::optional<Member> pending{};  // the key, until its value comes
  };

  void check_tag(const std::string& tag, const Place& place) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw wrong(place, name_, "a tag, as in !name, has no meaning here; remove it");
  }

  void count(int values, const Place& place) {
    values_ += values;
    if (values_ <= kMostValues) return;
    throw wrong(place,
                name_,
                fmt::format("there are more than {} values, with those that aliases (*) repeat",
                            kMostValues));
  }

  void check_depth(int depth, const Place& place) const {
    if (static_cast<int>(open_.size()) + depth <= kDeepestValue) return;
    throw wrong(
        place, name_, fmt::format("lists and maps are nested more than {} deep", kDeepestValue));
  }

  void open(Value::Kind kind,
            const YAML::Mark& mark,
            const std::string& tag,
            YAML::anchor_t anchor) {
    Open next;
    next.value.kind = kind;
    next.value.place = place_of(mark);
    next.anchor = anchor;
    check_tag(tag, next.value.place);
    check_depth(1, next.value.place);
    open_.push_back(std::move(next));
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.value), done.anchor);
  }

  void add(Value value, YAML::anchor_t anchor) {
    count(1, value.place);
    if (anchor != YAML::NullAnchor) {
      count(size_of(value).values, value.place);  // the copy
      anchored_[anchor] = value;
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.kind == Value::Kind::kList) {
      open_.back().value.items.push_back(std::move(value));
    } else if (open_.back().pending) {
      open_.back().pending->value = std::move(value);
      open_.back().value.members.push_back(*std::exchange(open_.back().pending, std::nullopt));
    } else {
      begin_member(value);
    }
  }

  void begin_member(const Value& key) {
    if (key.kind != Value::Kind::kScalar) {
      throw wrong(key.place, name_, "a key is a word, as in name: mnist");
    }
    if (key.text == "<<" && !key.is_quoted) {
      throw wrong(key.place, name_, "the merge key << is not known here; write the fields out");
    }
    if (!open_.back().keys.insert(key.text).second) {
      throw wrong(key.place,
                  name_,
                  fmt::format("the key {} is here twice; remove one", quoted_beginning(key.text)));
    }
    open_.back().pending = Member{key.text, key.place, {}};
  }

  std::string name_;
  Value root_;
  Place start_;
  int values_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchored_;
};

/// Whether a tab is before the first other character of the line.
bool is_indented_by_tab(std::string_view line) {
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

/// The parser's error for a text that is not YAML, in plain words.
Error not_yaml(const YAML::Exception& error, std::string_view text, const std::string& name) {
  if (error.mark.is_null()) return wrong({1, 1, {}}, name, "it is not YAML: " + error.msg);
  const Place place = place_of(error.mark);
  const std::vector<std::string_view> lines = split(text, '\n');
  const auto last = std::min<std::size_t>(static_cast<std::size_t>(place.line), lines.size());
  for (std::size_t line = last; line > 0 && line + 2 > last; --line) {
    if (!is_indented_by_tab(lines[line - 1])) continue;
    return wrong(
        {static_cast<int>(line), 1, {}}, name, "the line begins with a tab; indent YAML by spaces");
  }
  if (error.msg == YAML::ErrorMsg::BAD_FILE) {
    return wrong(
        place, name, fmt::format("lists and maps are nested more than {} deep", kDeepestValue));
  }
  if (error.msg == YAML::ErrorMsg::DOC_IN_SCALAR || error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
    return wrong(place, name, "a text in quotes is not closed; its last \" or ' is missing");
  }
  const bool is_misplaced =
      error.msg == YAML::ErrorMsg::END_OF_MAP || error.msg == YAML::ErrorMsg::END_OF_SEQ;
  return wrong(place,
               name,
               fmt::format("it is not YAML: {}{}",
                           error.msg,
                           is_misplaced ? "; check the indentation of this line" : ""));
}

void check_bytes(std::string_view text, const std::string& name) {
  if (name.ends_with(".py")) {
    throw wrong(
        {1, 1, {}},
        name,
        fmt::format("it is a program, and not a job file: run it with peal run -n 2 python3 "
                    "{}, or name it in a job file",
                    name));
  }
  if (Bytes(static_cast<std::int64_t>(text.size())) > kLongestDocument) {
    throw wrong({1, 1, {}}, name, "it is longer than 1 MiB, the limit for a job file");
  }
  int line = 1;
  for (const std::string_view part : split(text, '\n')) {
    if (!is_utf8(part)) throw wrong({line, 1, {}}, name, "this line is not UTF-8 text");
    ++line;
  }
}

}  // namespace

const Value* find(const Value& map, std::string_view key) {
  const auto member = std::ranges::find(map.members, key, &Member::key);
  return member == map.members.end() ? nullptr : &member->value;
}

Value* find(Value& map, std::string_view key) {
  const auto member = std::ranges::find(map.members, key, &Member::key);
  return member == map.members.end() ? nullptr : &member->value;
}

std::string to_text(const Place& place, const std::string& name) {
  if (!place.option.empty()) return place.option;
  return fmt::format("{}:{}:{}", name, place.line, place.column);
}

Value parse_document(std::string_view text, const std::string& name) {
  check_bytes(text, name);
  // The parser closes a text in quotes at the end of a file by itself, but not at the end of a
  // document.
  std::istringstream stream(join_surrogates(text) + (text.ends_with('\n') ? "...\n" : "\n...\n"));
  try {
    Builder builder(name);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    Value root = builder.take();
    if (root.kind == Value::Kind::kNull) {
      throw wrong({1, 1, {}}, name, "it is empty; a job file begins with name: and roles:");
    }
    Builder second(name);
    if (parser.HandleNextDocument(second)) {
      throw wrong(
          second.start(), name, "more text follows the end of the document; a file has one job");
    }
    return root;
  } catch (const YAML::Exception& error) {
    throw not_yaml(error, text, name);
  }
}

}  // namespace peal::launch
