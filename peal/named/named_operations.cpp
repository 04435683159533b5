#include "peal/named/named_operations.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/named/engine.h"
#include "peal/named/execution.h"

namespace peal::named {
namespace {

void check_length(const char* what, const std::string& text) {
  const Bytes size(static_cast<std::int64_t>(text.size()));
  if (size <= kLongestText) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("the {} {} has {} bytes, but the limit is {}",
                          what,
                          quoted_beginning(text),
                          size.value,
                          kLongestText.value));
}

void require_meaning(const Request& request) {
  if (request.kind != Kind::kAllReduce && request.kind != Kind::kReduceScatter) return;
  if (request.kind == Kind::kReduceScatter && request.reduction == Reduction::kAdasum) {
    throw Error(ErrorKind::kUnsupported, "reducescatter cannot use Adasum: use allreduce");
  }
  if (has_meaning(request.reduction, request.dtype)) return;
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}: {} has no meaning for {}",
                          request.name,
                          name_of(request.reduction),
                          name_of(request.dtype)));
}

/// What this rank knows to be wrong without the other ranks.
void check(const Request& request) {
  check_length("name", request.name);
  check_length("group name", request.group);
  check_length("detail", request.detail);
  require_meaning(request);
}

}  // namespace

NamedOperations::NamedOperations(ProcessGroupPtr group, Options options)
    : engine_(std::make_unique<Engine>(std::move(group), std::move(options))) {}

NamedOperations::~NamedOperations() = default;

ProcessGroup& NamedOperations::group() const { return engine_->group(); }

OperationPtr NamedOperations::submit(Submission submission, Waits waits) {
  check(submission.request);
  auto operation =
      std::make_shared<Operation>(std::move(submission.request), std::move(submission.memory));
  engine_->submit(std::span(&operation, 1), waits);
  return operation;
}

std::vector<OperationPtr> NamedOperations::submit(std::vector<Submission> submissions,
                                                  Waits waits) {
  for (const Submission& submission : submissions) check(submission.request);
  std::vector<OperationPtr> operations;
  operations.reserve(submissions.size());
  for (Submission& submission : submissions) {
    operations.push_back(
        std::make_shared<Operation>(std::move(submission.request), std::move(submission.memory)));
  }
  engine_->submit(operations, waits);
  return operations;
}

void NamedOperations::wait(const Operation& operation) { engine_->wait(operation); }

bool NamedOperations::poll(const Operation& operation) { return engine_->poll(operation); }

Rank NamedOperations::join() { return engine_->join(); }

std::uint64_t NamedOperations::joins() const { return engine_->joins(); }

std::exception_ptr NamedOperations::ended_by() const { return engine_->ended_by(); }

}  // namespace peal::named
