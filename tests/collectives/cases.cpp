#include "tests/collectives/cases.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tests/support/values.h"

namespace peal::testing {
namespace {

using Form = Case::Form;
using Placement = Case::Placement;
using Memory = Case::Memory;
using Blocks = Case::Blocks;

std::string_view name_of(Form form) {
  switch (form) {
    case Form::kBlocking:
      return "blocking";
    case Form::kAsync:
      return "async";
  }
  return "invalid";
}

std::string_view name_of(Placement place) {
  switch (place) {
    case Placement::kApart:
      return "apart";
    case Placement::kInPlace:
      return "in_place";
  }
  return "invalid";
}

std::string_view name_of(Memory memory) {
  switch (memory) {
    case Memory::kForeign:
      return "foreign";
    case Memory::kRegistered:
      return "registered";
    case Memory::kHandedOver:
      return "handed_over";
    case Memory::kMixed:
      return "mixed";
  }
  return "invalid";
}

std::string_view name_of(Blocks blocks) {
  switch (blocks) {
    case Blocks::kEven:
      return "even";
    case Blocks::kUneven:
      return "uneven";
    case Blocks::kList:
      return "list";
  }
  return "invalid";
}

ReduceOp op_of(const Case& c) {
  return c.op == ReduceOp::Kind::kPremulSum ? ReduceOp::premul_sum(0.5) : ReduceOp{c.op};
}

/// The number of elements of each rank's block: equal, or different.
std::vector<Elements> block_counts(const Case& c, int ranks) {
  std::vector<Elements> counts;
  for (int r = 0; r < ranks; ++r) {
    counts.emplace_back(c.blocks == Blocks::kEven ? c.count : (c.count + 3 * r) % (c.count + 4));
  }
  return counts;
}

/// How many elements rank i sends to rank j in an uneven all_to_all.
std::int64_t pair_count(const Case& c, int i, int j) {
  return c.blocks == Blocks::kEven ? c.count : (c.count + 2 * i + 5 * j) % (c.count + 3);
}

struct Layout {
  std::vector<Elements> counts;
  std::vector<std::int64_t> offsets;
  std::int64_t total = 0;

  explicit Layout(std::vector<Elements> c) : counts(std::move(c)) {
    for (const Elements count : counts) {
      offsets.push_back(total);
      total += count.value;
    }
  }
  std::int64_t count(int r) const { return counts[static_cast<std::size_t>(r)].value; }
  std::int64_t offset(int r) const { return offsets[static_cast<std::size_t>(r)]; }
};

/// Runs one case on one rank.
class Runner {
 public:
  Runner(ProcessGroup& group, const Case& c)
      : group_(group), case_(c), rank_(group.rank()), ranks_(group.size()) {}

  std::string run() {
    switch (case_.operation) {
      case Operation::kBroadcast:
        return broadcast();
      case Operation::kReduce:
        return reduce();
      case Operation::kAllReduce:
        return all_reduce();
      case Operation::kScatter:
        return scatter();
      case Operation::kGather:
        return gather();
      case Operation::kAllGather:
        return all_gather();
      case Operation::kReduceScatter:
        return reduce_scatter();
      case Operation::kAllToAll:
        return all_to_all();
      case Operation::kBarrier:
        return barrier();
      case Operation::kSend:
        return send();
      case Operation::kRecv:
        break;
    }
    return "a receive is part of the case of its send";
  }

 private:
  Values values(std::int64_t count) {
    const Bytes size = bytes_of(Elements(count), case_.dtype);
    if (case_.memory == Memory::kHandedOver) {
      memory_.push_back(std::make_shared<std::byte[]>(static_cast<std::size_t>(size.value)));
      registrations_.push_back(group_.register_memory(memory_.back().get(), size));
    } else if (is_allocated(case_.memory, rank_)) {
      memory_.push_back(group_.allocate(size));
    } else {
      return Values(case_.dtype, count);
    }
    return Values(memory_.back().get(), case_.dtype, count);
  }

  template <class Blocking, class Async>
  void carry_out(Blocking&& blocking, Async&& async) {
    if (case_.form == Form::kBlocking) {
      blocking();
    } else {
      async()->wait();
    }
  }

  /// Counts to pass with a single buffer.
  std::vector<Elements> counts_argument(const Layout& layout) const {
    return case_.blocks == Blocks::kUneven ? layout.counts : std::vector<Elements>();
  }

  template <class AnyBuffer>
  static std::vector<AnyBuffer> cut(Values& values, const Layout& layout) {
    std::vector<AnyBuffer> buffers;
    for (std::size_t r = 0; r < layout.counts.size(); ++r) {
      buffers.push_back(values.buffer(layout.offsets[r], layout.counts[r].value));
    }
    return buffers;
  }

  std::string broadcast() {
    Values data = values(case_.count);
    data.fill_bytes(rank_ == case_.root ? 7 : 100 + static_cast<std::uint64_t>(rank_));
    carry_out([&] { group_.broadcast(data.buffer(), case_.root); },
              [&] { return group_.broadcast_async(data.buffer(), case_.root); });
    return data.compare_bytes(7, 0, 0, case_.count);
  }

  std::string all_reduce() {
    Values data = values(case_.count);
    fill_operands(data, case_.op, rank_);
    carry_out([&] { group_.all_reduce(data.buffer(), {.op = op_of(case_)}); },
              [&] { return group_.all_reduce_async(data.buffer(), {.op = op_of(case_)}); });
    return compare_reduced(data, case_.op, ranks_, 0, 0, case_.count);
  }

  std::string reduce() {
    Values data = values(case_.count);
    fill_operands(data, case_.op, rank_);
    carry_out([&] { group_.reduce(data.buffer(), case_.root, {.op = op_of(case_)}); },
              [&] { return group_.reduce_async(data.buffer(), case_.root, {.op = op_of(case_)}); });
    if (rank_ == case_.root) return compare_reduced(data, case_.op, ranks_, 0, 0, case_.count);
    return is_as_filled(data) ? "" : "the data of this rank was changed";
  }

  std::string scatter() {
    const Layout layout(block_counts(case_, ranks_));
    const bool is_root = rank_ == case_.root;
    Values in = values(is_root ? layout.total : 0);
    in.fill_bytes(7);
    Values apart = values(layout.count(rank_));
    const bool in_place = is_root && case_.place == Placement::kInPlace;
    const Buffer out =
        in_place ? in.buffer(layout.offset(rank_), layout.count(rank_)) : apart.buffer();
    if (case_.blocks == Blocks::kList) {
      const auto list = is_root ? cut<ConstBuffer>(in, layout) : std::vector<ConstBuffer>();
      carry_out([&] { group_.scatter(std::span(list), out, case_.root); },
                [&] { return group_.scatter_async(std::span(list), out, case_.root); });
    } else {
      const auto counts = counts_argument(layout);
      carry_out(
          [&] { group_.scatter(in.buffer(), out, case_.root, {.counts = counts}); },
          [&] { return group_.scatter_async(in.buffer(), out, case_.root, {.counts = counts}); });
    }
    if (in_place) return in.compare_bytes(7, 0, 0, layout.total);
    return apart.compare_bytes(7, layout.offset(rank_), 0, layout.count(rank_));
  }

  std::string gather() {
    const Layout layout(block_counts(case_, ranks_));
    const bool is_root = rank_ == case_.root;
    Values out = values(is_root ? layout.total : 0);
    Values apart = values(layout.count(rank_));
    apart.fill_bytes(seed(rank_));
    const bool in_place = is_root && case_.place == Placement::kInPlace;
    Buffer in = apart.buffer();
    if (in_place) {
      in = out.buffer(layout.offset(rank_), layout.count(rank_));
      copy_bytes(apart, in);
    }
    if (case_.blocks == Blocks::kList) {
      const auto list = is_root ? cut<Buffer>(out, layout) : std::vector<Buffer>();
      carry_out([&] { group_.gather(in, list, case_.root); },
                [&] { return group_.gather_async(in, list, case_.root); });
    } else {
      const auto counts = counts_argument(layout);
      carry_out(
          [&] { group_.gather(in, out.buffer(), case_.root, {.counts = counts}); },
          [&] { return group_.gather_async(in, out.buffer(), case_.root, {.counts = counts}); });
    }
    return is_root ? compare_gathered(out, layout) : "";
  }

  std::string all_gather() {
    const Layout layout(block_counts(case_, ranks_));
    Values out = values(layout.total);
    Values apart = values(layout.count(rank_));
    apart.fill_bytes(seed(rank_));
    Buffer in = apart.buffer();
    if (case_.place == Placement::kInPlace) {
      in = out.buffer(layout.offset(rank_), layout.count(rank_));
      copy_bytes(apart, in);
    }
    if (case_.blocks == Blocks::kList) {
      const auto list = cut<Buffer>(out, layout);
      carry_out([&] { group_.all_gather(in, list); },
                [&] { return group_.all_gather_async(in, list); });
    } else {
      const auto counts = counts_argument(layout);
      carry_out([&] { group_.all_gather(in, out.buffer(), {.counts = counts}); },
                [&] { return group_.all_gather_async(in, out.buffer(), {.counts = counts}); });
    }
    return compare_gathered(out, layout);
  }

  std::string reduce_scatter() {
    const Layout layout(block_counts(case_, ranks_));
    Values in = values(layout.total);
    fill_operands(in, case_.op, rank_);
    Values apart = values(layout.count(rank_));
    const bool in_place = case_.place == Placement::kInPlace;
    const Buffer out =
        in_place ? in.buffer(layout.offset(rank_), layout.count(rank_)) : apart.buffer();
    if (case_.blocks == Blocks::kList) {
      const auto list = cut<ConstBuffer>(in, layout);
      carry_out([&] { group_.reduce_scatter(list, out, {.op = op_of(case_)}); },
                [&] { return group_.reduce_scatter_async(list, out, {.op = op_of(case_)}); });
    } else {
      const auto counts = counts_argument(layout);
      carry_out(
          [&] { group_.reduce_scatter(in.buffer(), out, {.op = op_of(case_), .counts = counts}); },
          [&] {
            return group_.reduce_scatter_async(
                in.buffer(), out, {.op = op_of(case_), .counts = counts});
          });
    }
    const std::int64_t offset = layout.offset(rank_);
    const std::int64_t count = layout.count(rank_);
    if (in_place) return compare_reduced(in, case_.op, ranks_, offset, offset, count);
    if (const auto wrong = compare_reduced(apart, case_.op, ranks_, offset, 0, count);
        !wrong.empty()) {
      return wrong;
    }
    return is_as_filled(in) ? "" : "its input was changed";
  }

  std::string all_to_all() {
    std::vector<Elements> to;
    std::vector<Elements> from;
    for (int peer = 0; peer < ranks_; ++peer) {
      to.emplace_back(pair_count(case_, rank_, peer));
      from.emplace_back(pair_count(case_, peer, rank_));
    }
    const Layout sent(to);
    const Layout received(from);
    Values in = values(sent.total);
    in.fill_bytes(seed(rank_));
    Values out = values(received.total);
    if (case_.blocks == Blocks::kList) {
      const auto ins = cut<ConstBuffer>(in, sent);
      const auto outs = cut<Buffer>(out, received);
      carry_out([&] { group_.all_to_all(ins, outs); },
                [&] { return group_.all_to_all_async(ins, outs); });
    } else {
      const bool even = case_.blocks == Blocks::kEven;
      const auto to_argument = even ? std::vector<Elements>() : to;
      const auto from_argument = even ? std::vector<Elements>() : from;
      carry_out(
          [&] {
            group_.all_to_all(
                in.buffer(), out.buffer(), {.to = to_argument, .from = from_argument});
          },
          [&] {
            return group_.all_to_all_async(
                in.buffer(), out.buffer(), {.to = to_argument, .from = from_argument});
          });
    }
    for (int peer = 0; peer < ranks_; ++peer) {
      std::int64_t theirs = 0;  // where the block for this rank begins in the peer's input
      for (int before = 0; before < rank_; ++before) theirs += pair_count(case_, peer, before);
      const auto wrong =
          out.compare_bytes(seed(peer), theirs, received.offset(peer), received.count(peer));
      if (!wrong.empty()) return fmt::format("from rank {}: {}", peer, wrong);
    }
    return "";
  }

  /// Each rank sends to the next one. It receives from the one before, either by rank or from any
  /// source.
  std::string send() {
    const Rank next = (rank_ + 1) % ranks_;
    const Rank before = (rank_ + ranks_ - 1) % ranks_;
    Values out = values(case_.count);
    out.fill_bytes(seed(rank_));
    Values in = values(case_.count);
    Rank source = before;
    if (case_.form == Form::kBlocking) {
      const WorkPtr sent = group_.isend(out.buffer(), next);
      group_.recv(in.buffer(), before);
      sent->wait();
    } else {
      const WorkPtr received = group_.irecv(in.buffer(), kAnySource);
      group_.send(out.buffer(), next);
      received->wait();
      source = received->source();
    }
    if (source != before) return fmt::format("from rank {}", source);
    return in.compare_bytes(seed(before), 0, 0, case_.count);
  }

  std::string barrier() {
    carry_out([&] { group_.barrier(); }, [&] { return group_.barrier_async(); });
    return "";
  }

  /// Whether this rank's operands are unchanged.
  bool is_as_filled(const Values& values) const {
    Values due(values.dtype(), values.count());
    fill_operands(due, case_.op, rank_);
    const auto size = bytes_of(Elements(values.count()), values.dtype()).value;
    return std::equal(due.data(), due.data() + size, values.data());
  }

  static std::uint64_t seed(Rank rank) { return 50 + static_cast<std::uint64_t>(rank); }

  static void copy_bytes(const Values& from, const Buffer& to) {
    std::copy_n(from.data(), bytes_of(to.count, to.dtype).value, static_cast<std::byte*>(to.data));
  }

  std::string compare_gathered(const Values& out, const Layout& layout) const {
    for (int r = 0; r < ranks_; ++r) {
      const auto wrong = out.compare_bytes(seed(r), 0, layout.offset(r), layout.count(r));
      if (!wrong.empty()) return fmt::format("from rank {}: {}", r, wrong);
    }
    return "";
  }

  ProcessGroup& group_;
  const Case& case_;
  Rank rank_;
  int ranks_;
  std::vector<peal::Memory> memory_;
  std::vector<Registration> registrations_;  // released before their memory
};

}  // namespace

std::string describe(const Case& c) {
  return fmt::format("{} {} {} count={} root={} form={} place={} memory={} blocks={}",
                     peal::name_of(c.operation),
                     peal::name_of(c.dtype),
                     peal::name_of(c.op),
                     c.count,
                     c.root,
                     name_of(c.form),
                     name_of(c.place),
                     name_of(c.memory),
                     name_of(c.blocks));
}

std::string run_case(ProcessGroup& group, const Case& c) { return Runner(group, c).run(); }

std::string run_cases(ProcessGroup& group, const std::vector<Case>& cases) {
  constexpr std::size_t kEnough = 1000;
  std::string wrong;
  for (const Case& c : cases) {
    const std::string result = run_case(group, c);
    if (!result.empty() && wrong.size() < kEnough) wrong += describe(c) + ": " + result + "\n";
  }
  return wrong;
}

}  // namespace peal::testing
