#include "peal/verify/testing/compute.h"

#include "peal/schedule/problem.h"
#include "peal/verify/state.h"
#include "peal/verify/symbolic_run.h"

namespace peal::verify {
namespace {

using schedule::Schedule;

class Evaluation {
 public:
  Evaluation(const Expressions& expressions, const RankBuffers& inputs, Scaling scaling)
      : expressions_(expressions), inputs_(inputs), scaling_(scaling) {}

  float of(Value value) const {
    const Expressions::Node& node = expressions_.node(value.expression);
    if (node.kind == Expressions::Kind::kInput) {
      return inputs_[static_cast<std::size_t>(node.rank)]
                    [static_cast<std::size_t>(value.index.value)];
    }
    float sum = term(node, 0, value);
    for (std::size_t i = 1; i < node.terms.size(); ++i) sum += term(node, i, value);
    if (node.kind == Expressions::Kind::kBegin) return sum * scaling_.weight;
    if (node.kind == Expressions::Kind::kFinish) return sum / scaling_.divisor;
    return sum;
  }

 private:
  float term(const Expressions::Node& node, std::size_t i, Value value) const {
    const Value& at = node.terms.at(i);
    return of({at.expression, value.index + at.index});
  }

  const Expressions& expressions_;
  const RankBuffers& inputs_;
  Scaling scaling_;
};

}  // namespace

RankBuffers compute(const Schedule& schedule, const RankBuffers& inputs, Scaling scaling) {
  State state({&schedule, 1}, smallest_scratch({&schedule, 1}));
  run(state, 1);
  const Evaluation evaluation(state.expressions, inputs, scaling);
  RankBuffers outputs(schedule.parts.size());
  for (Rank rank = 0; rank < schedule.problem.ranks; ++rank) {
    Buffers& buffers = state.buffers_of(rank, 0).value();
    const Elements size = output_size(schedule.problem, rank);
    for (const Run& run : buffers.output().peek({buffers.output_begin, size})) {
      for (Elements i; i < run.count; i += Elements(1)) {
        outputs[static_cast<std::size_t>(rank)].push_back(evaluation.of(run.first.at(i)));
      }
    }
  }
  return outputs;
}

}  // namespace peal::verify
