#include "peal/bench/protocol.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/bench/values.h"

namespace peal::bench {
namespace {

constexpr std::int64_t kMostTimes = 100'000'000;

struct AnswerWord {
  Answer::Kind kind;
  std::string_view word;
};
constexpr std::array kAnswerWords = {AnswerWord{Answer::Kind::kOk, "ok"},
                                     AnswerWord{Answer::Kind::kMissing, "missing"},
                                     AnswerWord{Answer::Kind::kWrong, "wrong"},
                                     AnswerWord{Answer::Kind::kFailed, "failed"}};

Error malformed(std::string_view line) {
  return Error(
      ErrorKind::kMismatch,
      fmt::format("a worker or the coordinator sent \"{}\", which is not valid here", line));
}

/// Removes the word before the first space from `rest` and returns it.
std::string_view take_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

/// The words "key=value" of a command.
class Fields {
 public:
  Fields(std::string_view line, std::string_view rest) : line_(line) {
    while (!rest.empty()) {
      const std::string_view word = take_word(rest);
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) throw malformed(line_);
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  std::string_view text(std::string_view key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw malformed(line_);
    return found->second;
  }
  std::int64_t number(std::string_view key) const {
    if (const auto value = try_parse_number<std::int64_t>(text(key))) return *value;
    throw malformed(line_);
  }
  int small(std::string_view key) const { return static_cast<int>(number(key)); }

 private:
  std::string_view line_;
  std::map<std::string_view, std::string_view> values_;
};

Prepare parse_prepare(std::string_view line, const Fields& fields) {
  const auto op = op_named(fields.text("op"));
  const auto dtype =
      std::ranges::find_if(kAllDTypes, [&](DType d) { return name_of(d) == fields.text("dtype"); });
  if (!op || dtype == kAllDTypes.end()) throw malformed(line);
  return {.slot = fields.small("slot"),
          .the_case = {.op = *op,
                       .dtype = *dtype,
                       .ranks = fields.small("ranks"),
                       .count = Elements(fields.number("count")),
                       .place = fields.text("place") == "in" ? BlockPlace::kIn : BlockPlace::kOut},
          .variant = std::string(fields.text("variant"))};
}

Timing parse_timing(const Fields& fields) {
  return {.slot = fields.small("slot"),
          .warmup = fields.small("warmup"),
          .iterations = fields.small("iterations"),
          .batch = fields.small("batch"),
          .rewriting = fields.number("rewrite") != 0 ? Rewriting::kInputs : Rewriting::kNone};
}

std::string encode(const Prepare& command) {
  const Case& c = command.the_case;
  return fmt::format(
      "prepare slot={} op={} dtype={} ranks={} count={} modulus={} place={} variant={}\n",
      command.slot,
      name_of(c.op),
      name_of(c.dtype),
      c.ranks,
      c.count.value,
      modulus(c.dtype, c.ranks),
      c.place == BlockPlace::kIn ? "in" : "out",
      command.variant);
}

std::string encode(const Timing& command) {
  return fmt::format("time slot={} warmup={} iterations={} batch={} rewrite={}\n",
                     command.slot,
                     command.warmup,
                     command.iterations,
                     command.batch,
                     command.rewriting == Rewriting::kInputs ? 1 : 0);
}

std::int64_t parse_count(std::string_view line, std::string_view digits) {
  const auto count = try_parse_number<std::int64_t>(digits);
  if (!count || *count < 0 || *count > kMostTimes) throw malformed(line);
  return *count;
}

}  // namespace

std::string encode(const Hello& hello) {
  return fmt::format("hello {} {} {}\n", hello.backend, hello.rank, hello.note);
}

Hello parse_hello(std::string_view line) {
  std::string_view rest = line;
  const std::string_view verb = take_word(rest);
  const std::string_view backend = take_word(rest);
  const auto rank = parse_count(line, take_word(rest));
  if (verb != "hello" || backend.empty()) throw malformed(line);
  return {std::string(backend), static_cast<Rank>(rank), std::string(rest)};
}

std::string encode(const Command& command) {
  return std::visit([](const auto& c) { return encode(c); }, command);
}

Command parse_command(std::string_view line) {
  std::string_view rest = line;
  const std::string_view verb = take_word(rest);
  const Fields fields(line, rest);
  if (verb == "prepare") return parse_prepare(line, fields);
  if (verb == "time") return parse_timing(fields);
  throw malformed(line);
}

std::string encode(const Answer& answer) {
  const std::string_view word =
      std::ranges::find(kAnswerWords, answer.kind, &AnswerWord::kind)->word;
  if (answer.kind != Answer::Kind::kOk) {
    std::string text = answer.text;
    std::ranges::replace(text, '\n', ' ');
    return fmt::format("{} {}\n", word, text);
  }
  std::string bytes = fmt::format("{} {}\n", word, answer.times.size());
  bytes.append(reinterpret_cast<const char*>(answer.times.data()),
               answer.times.size() * sizeof(Interval));
  return bytes;
}

std::optional<Answer> try_take_answer(std::string& bytes) {
  const auto end = bytes.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string_view line(bytes.data(), end);
  std::string_view rest = line;
  const std::string_view word = take_word(rest);
  const auto* known = std::ranges::find(kAnswerWords, word, &AnswerWord::word);
  if (known == kAnswerWords.end()) throw malformed(line);
  Answer answer{.kind = known->kind, .text = {}, .times = {}};
  std::size_t size = end + 1;
  if (answer.kind == Answer::Kind::kOk) {
    answer.times.resize(static_cast<std::size_t>(parse_count(line, rest)));
    const std::size_t more = answer.times.size() * sizeof(Interval);
    if (bytes.size() < size + more) return std::nullopt;
    if (more > 0) std::memcpy(answer.times.data(), bytes.data() + size, more);
    size += more;
  } else {
    answer.text = rest;
  }
  bytes.erase(0, size);
  return answer;
}

}  // namespace peal::bench
