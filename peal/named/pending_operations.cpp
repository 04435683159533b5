#include "peal/named/pending_operations.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "peal/named/stall_messages.h"

namespace peal::named {
namespace {

Error duplicate(const Request& request) {
  return Error(ErrorKind::kUsage,
               fmt::format("Requested to allreduce, allgather, or broadcast a tensor with the same "
                           "name as another tensor that is currently being processed. The name is "
                           "{}: wait for the first operation, or give another name",
                           request.name));
}

/// The error of one operation of a group that has ended.
std::exception_ptr error_of(const Request& request, const Error& error) {
  const std::string text = describe(request);
  ErrorDetails details = error.details();
  details.operation = text;
  return std::make_exception_ptr(
      Error(error.kind(), fmt::format("{} failed: {}", text, error.message()), std::move(details)));
}

}  // namespace

FlightNotes::Place PendingOperations::submitted(const std::string& text) const {
  return notes_ ? notes_->submitted(text) : 0;
}

void PendingOperations::add(std::span<const OperationPtr> operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::string& name = operations[i]->request().name;
    if (by_name_.try_emplace(name, Entry{.operation = operations[i]}).second) continue;
    const Error error = duplicate(operations[i]->request());
    for (std::size_t k = 0; k < i; ++k) by_name_.erase(operations[k]->request().name);
    throw error;
  }
  incoming_.reserve(incoming_.size() + operations.size());
  for (const OperationPtr& operation : operations) {
    Entry& entry = by_name_.find(operation->request().name)->second;
    if (notes_) entry.place = notes_->submitted(describe(operation->request()));
    incoming_.push_back(&entry);
  }
}

std::vector<OperationPtr> PendingOperations::take_incoming() {
  std::vector<OperationPtr> taken;
  taken.reserve(incoming_.size());
  for (Entry* const entry : incoming_) {
    entry->is_agreed = true;
    taken.push_back(entry->operation);
  }
  incoming_.clear();
  return taken;
}

Operation* PendingOperations::agreed(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() && found->second.is_agreed ? found->second.operation.get()
                                                            : nullptr;
}

void PendingOperations::started(const std::string& name) {
  if (!notes_) return;
  const auto found = by_name_.find(name);
  if (found != by_name_.end() && found->second.is_agreed) notes_->started(found->second.place);
}

void PendingOperations::complete(const std::string& name, const std::exception_ptr& error) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || !found->second.is_agreed) return;
  if (notes_) notes_->ended(found->second.place, FlightNotes::Ending::kWell);
  found->second.operation->complete(error);
  by_name_.erase(found);
}

void PendingOperations::join() {
  if (join_) return;
  join_ = std::make_unique<Join>(Join{submitted("join()")});
  join_is_incoming_ = true;
}

bool PendingOperations::take_join() { return std::exchange(join_is_incoming_, false); }

void PendingOperations::all_have_joined() {
  if (join_ && notes_) notes_->ended(join_->place, FlightNotes::Ending::kWell);
  join_.reset();
}

std::vector<OperationPtr> PendingOperations::fail(const Error& error) {
  std::vector<OperationPtr> agreed;
  for (auto& [name, entry] : by_name_) {
    if (notes_) notes_->ended(entry.place, FlightNotes::Ending::kFailed);
    if (entry.is_agreed) agreed.push_back(entry.operation);
    entry.operation->complete(error_of(entry.operation->request(), error));
  }
  if (join_ && notes_) notes_->ended(join_->place, FlightNotes::Ending::kFailed);
  join_.reset();
  join_is_incoming_ = false;
  incoming_.clear();
  by_name_.clear();
  return agreed;
}

TimePoint PendingOperations::oldest() const {
  TimePoint oldest = TimePoint::max();
  for (const auto& [name, entry] : by_name_) {
    oldest = std::min(oldest, entry.operation->submitted_at());
  }
  return oldest;
}

Stalled PendingOperations::stalled(TimePoint now, Duration limit) const {
  std::vector<const Operation*> late;
  for (const auto& [name, entry] : by_name_) {
    if (now - entry.operation->submitted_at() >= limit) late.push_back(entry.operation.get());
  }
  if (late.empty()) return {};
  std::ranges::sort(late, {}, [](const Operation* operation) {
    return std::pair(operation->submitted_at(), operation->request().name);
  });
  Stalled stalled{.names = {}, .waited = now - late.front()->submitted_at()};
  for (const Operation* const operation : late) stalled.names.push_back(operation->request().name);
  return stalled;
}

/// A question has only the beginning of a long name.
bool PendingOperations::has(const std::string& name) const {
  if (name.size() < kLongestNameOfQuestion) return by_name_.contains(name);
  return std::ranges::any_of(by_name_,
                             [&](const auto& entry) { return entry.first.starts_with(name); });
}

Standing PendingOperations::standing(const std::vector<std::string>& names) const {
  Standing standing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (has(names[i])) standing.has |= std::uint64_t{1} << i;
  }
  if (join_) standing.join = Standing::Join::kJoined;
  return standing;
}

}  // namespace peal::named
