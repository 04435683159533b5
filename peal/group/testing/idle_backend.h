// A backend that executes nothing and records the requests: for tests of requests, and of calls
// that are rejected before any request.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/group/backend.h"

namespace peal::testing {

/// Every operation and type.
inline Capabilities everything() {
  Capabilities capabilities;
  capabilities.name = "test";
  capabilities.operations = EnumSet<Operation>::of(kAllCollectives);
  capabilities.operations.insert(Operation::kSend);
  capabilities.operations.insert(Operation::kRecv);
  capabilities.dtypes = EnumSet<DType>::of(kAllDTypes);
  return capabilities;
}

/// An operation and the size of its buffer.
struct Asked {
  Operation operation;
  Bytes size;
  friend bool operator==(const Asked&, const Asked&) = default;
};

/// Rank 0 of a group. Threads: one.
class IdleBackend final : public Backend {
 public:
  /// When a Work ends: before the first wait, or between the timeout of a wait and the next check.
  enum class Ends : std::uint8_t { kBeforeTheWait, kJustAfterTheWait };

  explicit IdleBackend(int size,
                       Capabilities capabilities = everything(),
                       Ends ends = Ends::kBeforeTheWait)
      : size_(size), capabilities_(std::move(capabilities)), ends_(ends) {}

  const std::vector<Asked>& asked() const { return asked_; }

  Rank rank() const override { return 0; }
  int size() const override { return size_; }
  const Capabilities& capabilities() const override { return capabilities_; }

  Rank run(const Request& request, Timeout) override {
    note(request);
    return request.root;
  }

  WorkPtr start(std::span<const Request> requests, Timeout) override {
    for (const Request& request : requests) note(request);
    return std::make_shared<Ended>(ends_);
  }

  std::unique_ptr<Backend> subgroup(std::span<const Rank> members,
                                    const std::string&,
                                    Timeout) override {
    return std::make_unique<IdleBackend>(static_cast<int>(members.size()), capabilities_);
  }

  Memory allocate(Bytes size) override {
    return Memory(new std::byte[static_cast<std::size_t>(size.value)]());
  }

  Registration register_memory(std::span<std::byte>) override { return {}; }

  std::shared_ptr<FlightNotes> flight_notes() override { return nullptr; }
  void ask_interrupt() override {}
  void abort(const Error&, Departure) noexcept override {}
  void check_may_end() const override {}
  void shutdown(Departure, Deadline, Interrupts) override {}

 private:
  struct Ended final : Work {
    explicit Ended(Ends ends) : gives_up(ends == Ends::kJustAfterTheWait) {}
    void wait(Timeout) override {
      if (std::exchange(gives_up, false)) throw Error(ErrorKind::kTimeout, "has not ended yet");
    }
    bool is_completed() const override { return true; }
    void when_completed(std::function<void()> then) override { then(); }
    std::exception_ptr exception() const override { return nullptr; }
    Rank source() const override { return 0; }

    bool gives_up;
  };

  void note(const Request& request) {
    Elements count;
    for (const ConstBuffer& buffer : request.input) count += buffer.count;
    asked_.push_back({request.operation, bytes_of(count, request.dtype)});
  }

  int size_;
  Capabilities capabilities_;
  Ends ends_;
  std::vector<Asked> asked_;
};

}  // namespace peal::testing
