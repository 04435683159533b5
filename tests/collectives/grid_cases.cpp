// The cases of the grid.
//
// In full, for each number of ranks, for each operation that carries data:
//   type x count                                 (reductions by sum)
//   count x (in place or apart x memory x equal blocks, uneven ones or a list)
//   operator x type, of those that go together   (the operations that reduce)
// The root, blocking or not, and the combinations of the above that are not listed are random. A
// deck deals each value once before it deals any value again. So each value meets each operation in
// each run; over the fabrics, algorithms and seeds all combinations meet.
//
// The large cases, for each collective that carries data:
//   in place or apart x memory                   (reductions by sum)
//   in place or apart with a list of blocks in registered memory, which is not touched in place
//   operator                                     (the operations that reduce)
// Type, root, and for the operators place and memory, come from decks.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "tests/collectives/cases.h"

namespace peal::testing {
namespace {

using Form = Case::Form;
using Placement = Case::Placement;
using Memory = Case::Memory;
using Blocks = Case::Blocks;

/// Deals its cards in a random order.
template <class Card>
class Deck {
 public:
  Deck(std::vector<Card> cards, std::mt19937& random) : cards_(std::move(cards)), random_(random) {}

  Card deal() {
    if (next_ == 0) std::shuffle(cards_.begin(), cards_.end(), random_);
    const Card card = cards_[next_];
    next_ = (next_ + 1) % cards_.size();
    return card;
  }

 private:
  std::vector<Card> cards_;
  std::mt19937& random_;
  std::size_t next_ = 0;
};

struct Variant {
  Placement place;
  Memory memory;
  Blocks blocks;
};

std::vector<Variant> all_variants() {
  std::vector<Variant> all;
  for (const Placement place : {Placement::kApart, Placement::kInPlace}) {
    for (const Memory memory : {Memory::kForeign, Memory::kRegistered}) {
      for (const Blocks blocks : {Blocks::kEven, Blocks::kUneven, Blocks::kList}) {
        all.push_back({place, memory, blocks});
      }
    }
  }
  return all;
}

/// Equal blocks only: other blocks are not accessed in place.
std::vector<Variant> large_variants() {
  std::vector<Variant> all;
  for (const Placement place : {Placement::kApart, Placement::kInPlace}) {
    for (const Memory memory :
         {Memory::kForeign, Memory::kRegistered, Memory::kHandedOver, Memory::kMixed}) {
      all.push_back({place, memory, Blocks::kEven});
    }
  }
  return all;
}

constexpr std::int64_t kLargeMessage = 20'000;

/// Counts at which algorithms go wrong. The last is 1 to 16 KB, by type. It is partly above and
/// partly below the size of the memory transport's rings (4 KiB) and the grid's stage (8 KiB). It
/// is always below the sizes of large_cases().
std::vector<std::int64_t> counts_for(int ranks) {
  const std::set<std::int64_t> counts = {0, 1, ranks - 1, ranks, ranks + 1, 1000};
  return {counts.begin(), counts.end()};
}

std::vector<Rank> all_ranks(int ranks) {
  std::vector<Rank> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The cases of one operation.
class Builder {
 public:
  Builder(Operation operation, int ranks, std::mt19937& random, std::vector<Case>& cases)
      : operation_(operation),
        counts_(counts_for(ranks)),
        random_(random),
        variants_(all_variants(), random),
        roots_(all_ranks(ranks), random),
        forms_({Form::kBlocking, Form::kAsync}, random),
        cases_(cases) {}

  void add_types_and_counts() {
    for (const std::int64_t count : counts_) {  // as many types as variants: each count meets all
      for (const DType dtype : kAllDTypes) add(dtype, ReduceOp::Kind::kSum, count);
    }
  }

  void add_operators() {
    for (const ReduceOp::Kind op : kAllReduceOpKinds) {
      Deck<std::int64_t> counts(counts_, random_);
      for (const DType dtype : kAllDTypes) {
        if (op != ReduceOp::Kind::kSum && has_meaning(op, dtype)) add(dtype, op, counts.deal());
      }
    }
  }

  void add_large() {
    Deck<DType> dtypes({kLargeDTypes.begin(), kLargeDTypes.end()}, random_);
    std::vector<Variant> variants = large_variants();
    for (const Placement place : {Placement::kApart, Placement::kInPlace}) {
      variants.push_back({place, Memory::kRegistered, Blocks::kList});
    }
    for (const Variant& variant : variants) {
      add(dtypes.deal(), ReduceOp::Kind::kSum, kLargeCount, variant);
    }
  }

  void add_large_operators() {
    Deck<Variant> variants(large_variants(), random_);
    for (const ReduceOp::Kind op : kAllReduceOpKinds) {
      std::vector<DType> dtypes(kLargeDTypes.begin(), kLargeDTypes.end());
      std::erase_if(dtypes, [&](DType dtype) { return !has_meaning(op, dtype); });
      add(Deck<DType>(dtypes, random_).deal(), op, kLargeCount, variants.deal());
    }
  }

  /// So large that a message is requested before it is sent, and comes in pieces.
  void add_large_messages() {
    for (const DType dtype : kAllDTypes) add(dtype, ReduceOp::Kind::kSum, kLargeMessage);
    const Variant handed_over{Placement::kApart, Memory::kHandedOver, Blocks::kEven};
    for (const DType dtype : kLargeDTypes) {
      add(dtype, ReduceOp::Kind::kSum, kLargeMessage, handed_over);
    }
  }

 private:
  void add(DType dtype, ReduceOp::Kind op, std::int64_t count) {
    add(dtype, op, count, variants_.deal());
  }

  void add(DType dtype, ReduceOp::Kind op, std::int64_t count, const Variant& variant) {
    cases_.push_back({.operation = operation_,
                      .dtype = dtype,
                      .op = op,
                      .count = count,
                      .root = roots_.deal(),
                      .form = forms_.deal(),
                      .place = variant.place,
                      .memory = variant.memory,
                      .blocks = variant.blocks});
  }

  Operation operation_;
  std::vector<std::int64_t> counts_;
  std::mt19937& random_;
  Deck<Variant> variants_;
  Deck<Rank> roots_;
  Deck<Form> forms_;
  std::vector<Case>& cases_;
};

}  // namespace

std::vector<Case> grid_cases(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Case> cases;
  for (const Operation operation : kAllCollectives) {
    Builder builder(operation, ranks, random, cases);
    if (operation == Operation::kBarrier) continue;
    builder.add_types_and_counts();
    if (reduces(operation)) builder.add_operators();
  }
  Builder messages(Operation::kSend, ranks, random, cases);
  messages.add_types_and_counts();
  messages.add_large_messages();
  for (const Form form : {Form::kBlocking, Form::kAsync}) {
    cases.push_back({.operation = Operation::kBarrier, .form = form});
  }
  return cases;
}

std::vector<Case> large_cases(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Case> cases;
  for (const Operation operation : kAllCollectives) {
    if (operation == Operation::kBarrier) continue;
    Builder builder(operation, ranks, random, cases);
    builder.add_large();
    if (reduces(operation)) builder.add_large_operators();
  }
  return cases;
}

}  // namespace peal::testing
