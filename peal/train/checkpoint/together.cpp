#include "peal/train/checkpoint/together.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/error_bytes.h"
#include "peal/base/serialize.h"
#include "peal/train/tensors/texts.h"

namespace peal::train {
namespace {

std::optional<Error> error_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (...) {
    return current_error("saving or opening a checkpoint");
  }
}

}  // namespace

void Ranks::together(const std::function<void()>& work) const {
  std::optional<Error> error = error_of(work);
  if (group_ == nullptr) {
    if (error) throw Error(*error);
    return;
  }
  std::vector<std::int32_t> first = {error ? group_->rank() : group_->size()};
  try {
    group_->all_reduce(first, {.op = ReduceOp::kMin, .timeout = timeout_});
  } catch (const Error&) {
    if (error) throw Error(*error);  // the cause; the others may have left because of it
    throw;
  }
  if (first[0] == group_->size()) return;
  ByteWriter writer;
  if (first[0] == group_->rank()) put(writer, *error);
  const std::string bytes = broadcast_text(*group_, std::string(writer.view()), first[0], timeout_);
  ByteReader reader(bytes, "error of a rank");
  const Error caused = get_error(reader);
  const Rank rank = group_->global_rank(first[0]);
  ErrorDetails details = caused.details();
  details.rank = rank;
  throw Error(caused.kind(),
              "rank " + std::to_string(rank) + ": " + std::string(caused.message()),
              std::move(details));
}

std::string Ranks::broadcast(const std::string& text) const {
  return group_ ? broadcast_text(*group_, text, 0, timeout_) : text;
}

std::vector<std::string> Ranks::gather(const std::string& text) const {
  return group_ ? gather_texts(*group_, text, timeout_) : std::vector{text};
}

}  // namespace peal::train
