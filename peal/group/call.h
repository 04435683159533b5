// One call of an operation: checks its arguments, and converts them into the form for backends.
// ProcessGroup makes one on its stack for each call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "peal/group/backend.h"

namespace peal {

/// Threads: one. Borrows its arguments. Does not allocate for one input and one output buffer.
/// Empty buffers overlap nothing. Errors of every method but the constructor: usage (shapes, types,
/// ranks, overlap), unsupported.
class Call {
 public:
  Call(Rank rank, int size, const Capabilities& capabilities)
      : rank_(rank), size_(size), capabilities_(capabilities) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Borrows from this object, which must not move.
  const Request& request() const { return request_; }

  void send(const ConstBuffer& data, Rank to, Tag tag = {});
  void recv(const Buffer& data, Rank from, Tag tag = {});
  void barrier();
  void broadcast(std::span<const Buffer> data, Rank root);
  void all_reduce(std::span<const Buffer> data, ReduceOp op);
  void reduce(std::span<const Buffer> data, Rank root, ReduceOp op);

  // Operations on a block for each rank, in the forms that collectives.h describes.
  void scatter(const ConstBuffers& in,
               const Buffer& out,
               Rank root,
               std::span<const Elements> counts = {});
  void gather(const ConstBuffer& in,
              const Buffers& out,
              Rank root,
              std::span<const Elements> counts = {});
  void all_gather(const ConstBuffers& in,
                  const Buffers& out,
                  std::span<const Elements> counts = {});
  void reduce_scatter(const ConstBuffers& in,
                      const Buffers& out,
                      ReduceOp op,
                      std::span<const Elements> counts = {});
  void all_to_all(const ConstBuffers& in,
                  const Buffers& out,
                  std::span<const Elements> to = {},
                  std::span<const Elements> from = {});

 private:
  // ---- one form of an operation: one buffer with the blocks (call_blocks.cpp)
  void scatter_one(const ConstBuffer& in, const Buffer& out, std::span<const Elements> counts);
  void gather_one(const ConstBuffer& in, const Buffer& out, std::span<const Elements> counts);
  void all_gather_one(const ConstBuffer& in, const Buffer& out, std::span<const Elements> counts);
  void reduce_scatter_one(const ConstBuffer& in,
                          const Buffer& out,
                          std::span<const Elements> counts);
  void all_to_all_one(const ConstBuffer& in,
                      const Buffer& out,
                      std::span<const Elements> to,
                      std::span<const Elements> from);

  // ---- a buffer for each rank, and several operations as one (call_lists.cpp)
  void scatter_list(std::span<const ConstBuffer> in, const Buffer& out);
  void gather_list(const ConstBuffer& in, std::span<const Buffer> out);
  void all_gather_list(const ConstBuffer& in, std::span<const Buffer> out);
  void all_gather_each(std::span<const ConstBuffer> in, std::span<const Buffer> out);
  void reduce_scatter_list(std::span<const ConstBuffer> in, const Buffer& out);
  void reduce_scatter_each(std::span<const ConstBuffer> in, std::span<const Buffer> out);
  void all_to_all_list(std::span<const ConstBuffer> in, std::span<const Buffer> out);
  /// The list must have one buffer for each rank.
  void check_one_buffer_each(std::size_t buffers) const;
  void refuse_counts_of_a_list(std::span<const Elements> counts) const;

  // ---- helpers; the ones that every call needs are here, the rest in call_checks.cpp
  void begin(Operation operation) {
    request_.operation = operation;
    if (!capabilities_.has(operation)) refuse_operation();
  }
  void use_root(Rank root) {
    if (root < 0 || root >= size_) refuse_root(root);
    request_.root = root;
  }
  void use_tag(Tag tag);
  void use_input(std::span<const ConstBuffer> buffers) {
    check(buffers);
    request_.input = buffers;
  }
  void use_output(std::span<const Buffer> buffers) {
    check(buffers);
    request_.output = buffers;
  }
  void use_input(const ConstBuffer& buffer) {
    one_input_[0] = buffer;
    use_input(std::span<const ConstBuffer>(one_input_));
  }
  void use_output(const Buffer& buffer) {
    one_output_[0] = buffer;
    use_output(std::span<const Buffer>(one_output_));
  }
  template <class AnyBuffer>
  void check(std::span<const AnyBuffer> buffers) {
    for (const AnyBuffer& buffer : buffers) {
      const bool is_same = !typed_ || buffer.dtype == request_.dtype;
      if (!is_same || !capabilities_.has(buffer.dtype)) refuse_type(buffer.dtype);
      request_.dtype = buffer.dtype;
      typed_ = true;
      const bool is_nowhere = buffer.data == nullptr && buffer.count.value > 0;
      if (is_nowhere || buffer.count.value < 0) refuse_memory(buffer.count);
    }
  }
  /// Call after the type is known.
  void use_op(ReduceOp op);
  void use_both(std::span<const Buffer> buffers);
  /// Blocks of sizes that every rank knows.
  void use_blocks(std::span<const Elements> counts);
  /// Blocks of which this rank may know only some.
  void use_own_blocks(std::vector<Elements> counts);
  void check_total(const char* which, Elements actual, Elements expected) const;
  struct Extent {
    const void* data;
    Elements count;
  };
  /// Notes whether `small`, this rank's block, lies in place (at `own`) inside `large`, or apart.
  void note_place(const void* small, Elements small_count, const void* own, const Extent& large);
  const void* end_of(const Extent& extent) const;
  bool overlap(const Extent& a, const Extent& b) const;
  /// The same for lists, after input and output are set. `in` and `out` are the buffers of this
  /// rank's block. In place, each buffer of `in` is the same memory as that of `out`. Apart from
  /// that, no output may overlap an input or another output.
  /// Cost: sorts the buffers by address.
  void note_places(std::span<const ConstBuffer> in, std::span<const Buffer> out);
  struct Use {
    Extent extent;
    enum class Kind : std::uint8_t { kRead, kWritten } kind;
  };
  void check_apart(std::vector<Use> uses) const;
  /// This rank's blocks in a list of blocks by rank.
  template <class AnyBuffer>
  std::span<const AnyBuffer> own_blocks(std::span<const AnyBuffer> blocks) const {
    const std::size_t each = blocks.size() / static_cast<std::size_t>(size_);
    return blocks.subspan(each * static_cast<std::size_t>(rank_), each);
  }
  const void* own_block(const void* large) const;
  Elements own_offset() const;
  static Elements total(std::span<const Elements> counts);
  template <class AnyBuffer>
  static Elements total_of(std::span<const AnyBuffer> buffers) {
    Elements sum;
    for (const AnyBuffer& buffer : buffers) sum += buffer.count;
    return sum;
  }
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse_operation() const;
  [[noreturn]] void refuse_root(Rank root) const;
  [[noreturn]] void refuse_type(DType dtype) const;
  [[noreturn]] void refuse_memory(Elements count) const;

  Rank rank_;
  int size_;
  const Capabilities& capabilities_;
  Request request_;
  bool typed_ = false;
  std::array<ConstBuffer, 1> one_input_;
  std::array<Buffer, 1> one_output_;
  std::vector<ConstBuffer> inputs_;
  std::vector<Buffer> outputs_;
  std::vector<Elements> counts_;
};

}  // namespace peal
