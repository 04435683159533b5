#include "peal/verify/expression.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace peal::verify {

namespace {

constexpr std::size_t kLongestText = 120;

/// Reads a content from its beginning.
class RunReader {
 public:
  explicit RunReader(const Content& content) : run_(content.begin()), end_(content.end()) {}

  bool at_end() const { return run_ == end_; }
  /// How many elements of the current run are left.
  Elements left() const { return run_->count - taken_; }
  /// The first value of the next `count` elements. They must be in the current run.
  Value take(Elements count) {
    const Value value = run_->first.at(taken_);
    taken_ += count;
    if (taken_ == run_->count) {
      ++run_;
      taken_ = Elements(0);
    }
    return value;
  }

 private:
  Content::const_iterator run_;
  Content::const_iterator end_;
  Elements taken_;
};

}  // namespace

void append(Content& content, const Run& run) {
  if (!content.empty() && content.back().first.at(content.back().count) == run.first) {
    content.back().count += run.count;
  } else {
    content.push_back(run);
  }
}

Expressions::Expressions() { intern(Node{}); }

Value Expressions::input(int operation, Rank rank, Elements index) {
  return {intern({.kind = Kind::kInput, .operation = operation, .rank = rank, .terms = {}}), index};
}

Content Expressions::reduce(std::span<const Content> terms) {
  if (terms.size() == 1) return terms.front();
  std::vector<RunReader> readers(terms.begin(), terms.end());
  std::vector<Value> values(terms.size());
  Content content;
  while (!readers.front().at_end()) {
    Elements count = readers.front().left();
    for (const RunReader& reader : readers) count = std::min(count, reader.left());
    for (std::size_t i = 0; i < readers.size(); ++i) values[i] = readers[i].take(count);
    append(content, {reduce(values), count});
  }
  return content;
}

Content Expressions::begin(Content content) { return each(Kind::kBegin, std::move(content)); }

Content Expressions::finish(Content content) { return each(Kind::kFinish, std::move(content)); }

Content Expressions::each(Kind kind, Content content) {
  for (Run& run : content) {
    const Value whole{run.first.expression, Elements(0)};
    run.first.expression = intern({.kind = kind, .operation = 0, .rank = 0, .terms = {whole}});
  }
  return content;
}

bool Expressions::is_whole_reduction(ExpressionId expression, int operation, int ranks) const {
  const Node& root = node(expression);
  std::vector<Leaf> leaves;
  // A tree has fewer inner nodes than leaves.
  int budget = 2 * ranks;
  if (root.kind != Kind::kFinish || !collect(root.terms.front(), budget, leaves)) return false;
  std::sort(leaves.begin(), leaves.end());
  if (leaves.size() != static_cast<std::size_t>(ranks)) return false;
  for (Rank r = 0; r < ranks; ++r) {
    if (leaves[static_cast<std::size_t>(r)] != Leaf{operation, r, Elements(0)}) return false;
  }
  return true;
}

bool Expressions::collect(Value value, int& budget, std::vector<Leaf>& leaves) const {
  if (--budget < 0) return false;
  const Node& at = node(value.expression);
  switch (at.kind) {
    case Kind::kBegin: {
      const Node& given = node(at.terms.front().expression);
      if (given.kind == Kind::kInput) leaves.push_back({given.operation, given.rank, value.index});
      return given.kind == Kind::kInput;
    }
    case Kind::kReduce:
      return std::all_of(at.terms.begin(), at.terms.end(), [&](const Value& term) {
        return collect({term.expression, value.index + term.index}, budget, leaves);
      });
    case Kind::kUnwritten:
    case Kind::kInput:
    case Kind::kFinish:
      return false;
  }
  return false;
}

std::string Expressions::describe(Value value) const {
  std::string text;
  print(value, text);
  if (text.size() > kLongestText) text.replace(kLongestText, std::string::npos, "...");
  return text;
}

void Expressions::print(Value value, std::string& text) const {
  if (text.size() > kLongestText) return;
  const Node& at = node(value.expression);
  if (at.kind == Kind::kUnwritten) text += "nothing";
  if (at.kind == Kind::kInput) text += fmt::format("in_{}[{}]", at.rank, value.index.value);
  if (at.terms.empty()) return;
  text += at.kind == Kind::kFinish ? "finish(" : at.kind == Kind::kBegin ? "begin(" : "reduce(";
  for (const Value& term : at.terms) {
    if (&term != &at.terms.front()) text += ", ";
    print({term.expression, value.index + term.index}, text);
  }
  text += ")";
}

Value Expressions::reduce(std::span<const Value> terms) {
  const Elements index = terms.front().index;
  Node node{
      .kind = Kind::kReduce, .operation = 0, .rank = 0, .terms = {terms.begin(), terms.end()}};
  for (Value& term : node.terms) term.index -= index;
  return {intern(std::move(node)), index};
}

ExpressionId Expressions::intern(Node node) {
  const auto [at, is_new] = ids_.try_emplace(std::move(node), static_cast<int>(nodes_.size()));
  if (is_new) nodes_.push_back(&at->first);
  return at->second;
}

}  // namespace peal::verify
