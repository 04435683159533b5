#include "peal/bench/peal_subject.h"

#include <fstream>
#include <new>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/group/process_group.h"
#include "peal/init/init.h"

namespace peal::bench {
namespace {

constexpr std::align_val_t kLine{64};

/// Allocates as a tensor library does.
Memory allocate_foreign(Bytes size) {
  auto* const data =
      static_cast<std::byte*>(::operator new[](static_cast<std::size_t>(size.value), kLine));
  return Memory(data, [](std::byte* memory) { ::operator delete[](memory, kLine); });
}

Memory allocate(ProcessGroup& group, const std::string& variant, Bytes size) {
  if (size == 0_B) return {};
  if (variant == "registered") return group.allocate(size);
  if (variant == "foreign") return allocate_foreign(size);
  throw Error(ErrorKind::kUsage, fmt::format("peal is not measured with memory \"{}\"", variant));
}

class PealTrial final : public Trial {
 public:
  PealTrial(ProcessGroup& group, const Case& c, const std::string& variant)
      : group_(group), case_(c) {
    const Placement where = placement(c, group.rank());
    const Elements in = input_count(c, group.rank());
    const Elements out = output_count(c, group.rank());
    if (where.sharing == Sharing::kOneMemory) {
      input_memory_ = output_memory_ =
          allocate(group, variant, peal::bytes_of(std::max(in, out), c.dtype));
    } else {
      input_memory_ = allocate(group, variant, peal::bytes_of(in, c.dtype));
      output_memory_ = allocate(group, variant, peal::bytes_of(out, c.dtype));
    }
    input_ = buffer(input_memory_, where.input, in);
    output_ = buffer(output_memory_, where.output, out);
  }

  std::span<std::byte> input() override { return bytes(input_); }
  std::span<std::byte> output() override { return bytes(output_); }

  void run() override {
    switch (case_.op) {
      case Op::kAllReduce:
        return group_.all_reduce(output_);
      case Op::kReduceScatter:
        return group_.reduce_scatter(input_, output_);
      case Op::kAllGather:
        return group_.all_gather(input_, output_);
      case Op::kBroadcast:
        return group_.broadcast(output_, kRoot);
      case Op::kReduce:
        return group_.reduce(input_, kRoot);
      case Op::kGather:
        return group_.gather(input_, output_, kRoot);
      case Op::kScatter:
        return group_.scatter(input_, output_, kRoot);
      case Op::kAllToAll:
        return group_.all_to_all(input_, output_);
      case Op::kSendRecv:
        return ping_pong();
      case Op::kBarrier:
        return group_.barrier();
    }
  }

 private:
  Buffer buffer(const Memory& memory, Elements begin, Elements count) const {
    if (count == Elements(0)) return {nullptr, count, case_.dtype};
    return {memory.get() + peal::bytes_of(begin, case_.dtype).value, count, case_.dtype};
  }
  static std::span<std::byte> bytes(const Buffer& buffer) {
    return {static_cast<std::byte*>(buffer.data),
            static_cast<std::size_t>(peal::bytes_of(buffer.count, buffer.dtype).value)};
  }
  void ping_pong() {
    const Rank last = group_.size() - 1;
    if (group_.rank() == 0) {
      group_.send(input_, last);
      group_.recv(output_, last);
    } else if (group_.rank() == last) {
      group_.recv(output_, 0);
      group_.send(input_, 0);
    }
  }

  ProcessGroup& group_;
  Case case_;
  Memory input_memory_, output_memory_;
  Buffer input_, output_;
};

class PealSubject final : public Subject {
 public:
  explicit PealSubject(std::string transport) : transport_(std::move(transport)) {}

  std::string note() const override {
    if (transport_ == "shm") return "shared memory";
    const Config config = config_from(process_environment());
    std::string congestion = config.congestion;
    if (congestion.empty())
      std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> congestion;
    const LinkProtection protection = link_protection_of(config);
    return fmt::format("congestion control {}{}{}",
                       congestion,
                       protection == LinkProtection::kPlain ? "" : ", ",
                       protection == LinkProtection::kPlain ? "" : settings_of(protection));
  }
  bool can(const Case&, const std::string&) const override { return true; }
  std::unique_ptr<Trial> prepare(const Case& c, const std::string& variant) override {
    return std::make_unique<PealTrial>(*group_, c, variant);
  }

 private:
  std::string transport_;
  ProcessGroupPtr group_ = init_process_group();
};

}  // namespace

std::unique_ptr<Subject> make_peal_subject(const std::string& transport) {
  return std::make_unique<PealSubject>(transport);
}

}  // namespace peal::bench
