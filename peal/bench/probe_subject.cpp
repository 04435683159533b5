#include "peal/bench/probe_subject.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "peal/bench/probe_loops.h"
#include "peal/system/mapping.h"
#include "peal/system/shared_file.h"

namespace peal::bench {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t whole_pages(Bytes size) { return (size.value + kPage - 1) / kPage * kPage; }

/// The beginnings of all ranks' buffers in the shared memory. The flags use the first pages.
struct Layout {
  std::vector<std::int64_t> inputs, outputs;
  Bytes size;
};

Layout lay_out(const Case& c) {
  Layout layout;
  std::int64_t at = whole_pages(Bytes(Flags::kLine) * c.ranks);
  for (Rank rank = 0; rank < c.ranks; ++rank) {
    const Placement where = placement(c, rank);
    const Bytes in = peal::bytes_of(input_count(c, rank), c.dtype);
    const Bytes out = peal::bytes_of(output_count(c, rank), c.dtype);
    layout.inputs.push_back(at + peal::bytes_of(where.input, c.dtype).value);
    if (where.sharing == Sharing::kApart) at += whole_pages(in);
    layout.outputs.push_back(at + peal::bytes_of(where.output, c.dtype).value);
    at += whole_pages(where.sharing == Sharing::kApart ? out : std::max(in, out));
  }
  layout.size = Bytes(at);
  return layout;
}

/// out_k = in_0 + in_1 + ... for `size` bytes
struct Move {
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  Bytes size;
};

Mapping map(const std::string& path, Bytes size) {
  Mapping mapping = Mapping::of_file(open_shared_file(path, size).get(), size);
  const std::span<std::byte> bytes = mapping.bytes();
  ::madvise(
      bytes.data(), bytes.size(), MADV_HUGEPAGE);  // fewer TLB misses, if there are huge pages
  return mapping;
}

/// The buffers of all ranks, mapped into this process.
class ProbeBuffers final {
 public:
  ProbeBuffers(const Case& c, const std::string& path)
      : case_(c), layout_(lay_out(c)), memory_(map(path, layout_.size)) {}

  std::byte* input(Rank rank) const { return at(layout_.inputs, rank); }
  std::byte* output(Rank rank) const { return at(layout_.outputs, rank); }
  /// A rank's block in the buffer that begins at `whole`.
  std::byte* block(std::byte* whole, Rank rank) const { return whole + block_size().value * rank; }
  /// The size of a block, for operations with blocks; else of the buffer.
  Bytes block_size() const { return peal::bytes_of(case_.count, case_.dtype); }

 private:
  std::byte* at(const std::vector<std::int64_t>& places, Rank rank) const {
    return memory_.bytes().data() + places[static_cast<std::size_t>(rank)];
  }

  Case case_;
  Layout layout_;
  Mapping memory_;
};

/// Adds the slice of `rank` from all inputs and stores it in the outputs of the first `roots`
/// ranks. Slices are whole cache lines, so that no two ranks write to one line.
Move reduce_slice(const Case& c, Rank rank, const ProbeBuffers& buffers, int roots) {
  const std::int64_t size = buffers.block_size().value;
  const auto cut = [&](Rank r) { return r == c.ranks ? size : size * r / c.ranks / 64 * 64; };
  Move move{.from = {}, .to = {}, .size = Bytes(cut(rank + 1) - cut(rank))};
  for (Rank r = 0; r < c.ranks; ++r) move.from.push_back(buffers.input(r) + cut(rank));
  for (Rank r = 0; r < roots; ++r) move.to.push_back(buffers.output(r) + cut(rank));
  return move;
}

Move reduce_block(const Case& c, Rank rank, const ProbeBuffers& buffers) {
  Move move{.from = {}, .to = {buffers.output(rank)}, .size = buffers.block_size()};
  for (Rank r = 0; r < c.ranks; ++r) move.from.push_back(buffers.block(buffers.input(r), rank));
  return move;
}

Move give_block(const Case& c, Rank rank, const ProbeBuffers& buffers) {
  Move move{.from = {buffers.input(rank)}, .to = {}, .size = buffers.block_size()};
  for (Rank r = 0; r < c.ranks; ++r) move.to.push_back(buffers.block(buffers.output(r), rank));
  std::erase(move.to, buffers.input(rank));  // in place
  return move;
}

/// The moves of a rank between the two barriers.
std::vector<Move> moves_of(const Case& c, Rank rank, const ProbeBuffers& buffers) {
  const Bytes size = buffers.block_size();
  switch (c.op) {
    case Op::kAllReduce:
      return {reduce_slice(c, rank, buffers, c.ranks)};
    case Op::kReduce:
      return {reduce_slice(c, rank, buffers, 1)};
    case Op::kReduceScatter:
      return {reduce_block(c, rank, buffers)};
    case Op::kAllGather:
      return {give_block(c, rank, buffers)};
    case Op::kBroadcast:
      return {{{buffers.input(kRoot)}, {buffers.output(rank)}, size}};
    case Op::kScatter:
      return {{{buffers.block(buffers.input(kRoot), rank)}, {buffers.output(rank)}, size}};
    case Op::kGather:
      return {{{buffers.input(rank)}, {buffers.block(buffers.output(kRoot), rank)}, size}};
    case Op::kSendRecv:
      return {{{buffers.input(rank == 0 ? c.ranks - 1 : 0)}, {buffers.output(rank)}, size}};
    case Op::kAllToAll: {
      std::vector<Move> moves;
      for (Rank from = 0; from < c.ranks; ++from) {
        moves.push_back({{buffers.block(buffers.input(from), rank)},
                         {buffers.block(buffers.output(rank), from)},
                         size});
      }
      return moves;
    }
    case Op::kBarrier:
      return {};
  }
  return {};
}

class ProbeTrial final : public Trial {
 public:
  /// The subject owns `flags`, because their counts continue from trial to trial.
  ProbeTrial(const Case& c, Rank rank, const std::string& path, Flags& flags, Stores stores)
      : case_(c),
        rank_(rank),
        flags_(flags),
        stores_(stores),
        buffers_(c, path),
        moves_(moves_of(c, rank, buffers_)) {
    std::erase_if(moves_, [](const Move& move) {
      const bool to_itself = move.to.size() == 1 && move.from.front() == move.to.front();
      return move.size == 0_B || move.to.empty() || (move.from.size() == 1 && to_itself);
    });
  }

  std::span<std::byte> input() override {
    return {buffers_.input(rank_), bytes(input_count(case_, rank_))};
  }
  std::span<std::byte> output() override {
    return {buffers_.output(rank_), bytes(output_count(case_, rank_))};
  }

  void run() override {
    if (case_.op == Op::kSendRecv) return ping_pong();
    flags_.meet();
    if (case_.op == Op::kBarrier) return;
    move();
    flags_.meet();
  }

 private:
  std::size_t bytes(Elements count) const {
    return static_cast<std::size_t>(peal::bytes_of(count, case_.dtype).value);
  }
  void move() {
    for (const Move& m : moves_) combine(m.from, m.to, m.size, case_.dtype, stores_);
  }

  /// The receiver copies directly from the sender's buffer. The third signal of the first rank
  /// allows the last rank to write its input again.
  void ping_pong() {
    const Rank last = case_.ranks - 1;
    flags_.signal();
    if (rank_ == last) {
      flags_.await(0);
      move();
    }
    flags_.signal();
    if (rank_ == 0) {
      flags_.await(last);
      move();
    }
    flags_.signal();
    if (rank_ == last) flags_.await(0);
  }

  Case case_;
  Rank rank_;
  Flags& flags_;
  Stores stores_;
  ProbeBuffers buffers_;
  std::vector<Move> moves_;
};

class ProbeSubject final : public Subject {
 public:
  ProbeSubject(std::string path, Rank rank, int ranks, Waiting waiting)
      : path_(std::move(path)),
        rank_(rank),
        lines_(map(path_, Bytes(Flags::kLine) * ranks)),
        flags_(lines_.bytes().data(), rank, ranks, waiting, Rest::kNone) {}

  std::string note() const override { return "bare copies and additions in shared memory"; }
  bool can(const Case&, const std::string&) const override { return true; }
  DType checked_as(DType dtype) const override {
    return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kI16 : dtype;
  }
  std::unique_ptr<Trial> prepare(const Case& c, const std::string& variant) override {
    const Stores stores = variant == "streaming" ? Stores::kStreaming : Stores::kPlain;
    return std::make_unique<ProbeTrial>(c, rank_, path_, flags_, stores);
  }

 private:
  std::string path_;
  Rank rank_;
  Mapping lines_;
  Flags flags_;
};

}  // namespace

std::unique_ptr<Subject> make_probe_subject(const std::string& path,
                                            Rank rank,
                                            int ranks,
                                            Waiting waiting) {
  return std::make_unique<ProbeSubject>(path, rank, ranks, waiting);
}

}  // namespace peal::bench
