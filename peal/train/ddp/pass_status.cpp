#include "peal/train/ddp/pass_status.h"

#include <algorithm>
#include <bit>

namespace peal::train {

PassStatus::PassStatus(std::size_t parameters, int ranks)
    : ranks_(ranks),
      first_parameter_(kFirstRanks + static_cast<std::size_t>((ranks - 1) / kRanksOfWord + 1)),
      words_(first_parameter_ + parameters) {}

void PassStatus::clear() { std::ranges::fill(words_, 0); }

void PassStatus::set_active(Rank rank, std::int64_t samples) {
  words_[kSamples] = samples;
  words_[kFirstRanks + static_cast<std::size_t>(rank / kRanksOfWord)] |= std::int64_t{1}
                                                                         << rank % kRanksOfWord;
}

void PassStatus::set_reached(std::size_t parameter, Gradient gradient) {
  words_[first_parameter_ + parameter] = gradient == Gradient::kSparse ? kSparseUnit + 1 : 1;
}

int PassStatus::active_ranks() const {
  int count = 0;
  for (std::size_t i = kFirstRanks; i < first_parameter_; ++i) {
    count += std::popcount(static_cast<std::uint64_t>(words_[i]));
  }
  return count;
}

Rank PassStatus::first_active() const {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const std::int64_t word = words_[kFirstRanks + static_cast<std::size_t>(rank / kRanksOfWord)];
    if ((word >> rank % kRanksOfWord & 1) != 0) return rank;
  }
  return 0;
}

int PassStatus::reached(std::size_t parameter) const {
  return static_cast<int>(words_[first_parameter_ + parameter] % kSparseUnit);
}

bool PassStatus::is_sparse(std::size_t parameter) const {
  return words_[first_parameter_ + parameter] >= kSparseUnit;
}

}  // namespace peal::train
