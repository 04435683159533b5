#include "peal/verify/testing/mutants.h"

#include <string>
#include <vector>

#include "peal/schedule/text.h"

namespace peal::verify {
namespace {

using schedule::Finish;
using schedule::Holds;
using schedule::Move;
using schedule::Part;
using schedule::Ranks;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

/// Changes the number each way. Each of the two changes has its own name.
template <class Number>
void mutate_each_way(Number& number,
                     std::string_view less,
                     std::string_view more,
                     const Attempt& attempt) {
  const Number right = number;
  number = right - Number(1);
  attempt(less);
  number = right + Number(1);
  attempt(more);
  number = right;
}

template <class Number>
void mutate(Number& number, std::string_view field, const Attempt& attempt) {
  mutate_each_way(number, field, field, attempt);
}

void mutate(Ranks& ranks, const Attempt& attempt) {
  mutate(ranks.first, "ranks.first", attempt);
  mutate(ranks.count, "ranks.count", attempt);
  mutate(ranks.stride, "ranks.stride", attempt);
}

void mutate(Slice& slice, const Attempt& attempt) {
  const Space right = slice.space;
  for (const Space space : {Space::kInput, Space::kOutput, Space::kStage, Space::kWire}) {
    slice.space = space;
    if (space != right) attempt("space");
  }
  slice.space = right;
  mutate(slice.ranks, attempt);
  mutate(slice.offset, "offset", attempt);
  const Holds held = slice.holds;
  slice.holds = held == Holds::kPartial ? Holds::kContribution : Holds::kPartial;
  attempt("holds");
  slice.holds = held;
}

void mutate(Move& move, const Attempt& attempt) {
  for (Slice& slice : move.from) mutate(slice, attempt);
  for (Slice& slice : move.to) mutate(slice, attempt);
  mutate(move.count, "count", attempt);
  const Finish right = move.finish;
  move.finish = right == Finish::kYes ? Finish::kNo : Finish::kYes;
  attempt("finish");
  move.finish = right;
}

void mutate(Signal& signal, const Attempt& attempt) {
  mutate(signal.value, "signal.value", attempt);
}

void mutate(Wait& wait, const Attempt& attempt) {
  mutate(wait.ranks, attempt);
  mutate_each_way(wait.value, "wait.value-1", "wait.value+1", attempt);
}

}  // namespace

void mutate_fields(Part& part, const Attempt& attempt) {
  for (Step& step : part.steps) {
    std::visit([&](auto& kind) { mutate(kind, attempt); }, step);
  }
  mutate_each_way(part.stage, "stage-1", "stage+1", attempt);
  mutate(part.span, "span", attempt);
}

void delete_steps(Part& part, const Attempt& attempt) {
  const std::vector<Step> right = part.steps;
  for (std::size_t i = 0; i < right.size(); ++i) {
    part.steps.erase(part.steps.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string text = to_text(right[i]);
    attempt(text.substr(0, text.find(' ')));
    part.steps = right;
  }
}

}  // namespace peal::verify
