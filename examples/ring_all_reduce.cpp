// A collective in user code: the ring all-reduce of DeepSpeech, from isend and recv, in chunks.
//   build/release/bin/peal run -n 4 build/release/bin/ring_all_reduce
//
// The data is cut into n chunks for n ranks, and ranks send chunks to the right.
//   Reduce: in each of n - 1 rounds a rank sends a chunk and adds its part to the chunk that it
//           receives. Then rank r has the complete sum of chunk r + 1.
//   Share:  in n - 1 more rounds the complete chunks go around the ring once.
// Each rank sends 2 (n - 1) / n of the data. No algorithm can send less.
// Source: Patarasuk and Yuan 2009; Gibiansky 2017 (Baidu's DeepSpeech).
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

namespace {

class Ring {
 public:
  Ring(peal::ProcessGroup& group, std::span<float> data)
      : group_(group), data_(data), incoming_(data.size() / size() + 1) {}

  /// data[i] = data_0[i] + data_1[i] + ... on every rank
  void all_reduce() {
    for (std::size_t round = 0; round + 1 < size(); ++round) {
      const std::span<float> mine = chunk(rank() + size() - round);
      const std::span<float> sum = chunk(rank() + size() - round - 1);
      const std::span<float> part = std::span(incoming_).first(sum.size());
      exchange(mine, part);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    for (std::size_t round = 0; round + 1 < size(); ++round) {
      exchange(chunk(rank() + size() - round + 1), chunk(rank() + size() - round));
    }
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(group_.rank()); }
  std::size_t size() const { return static_cast<std::size_t>(group_.size()); }

  /// Chunk `index` modulo n; the chunks differ by one element at most.
  std::span<float> chunk(std::size_t index) const {
    const std::size_t which = index % size();
    const std::size_t begin = data_.size() * which / size();
    const std::size_t end = data_.size() * (which + 1) / size();
    return data_.subspan(begin, end - begin);
  }

  /// Sends to the right and receives from the left at once. If all ranks sent first, all ranks
  /// might wait for each other.
  void exchange(std::span<float> to_right, std::span<float> from_left) {
    const auto right = static_cast<peal::Rank>((rank() + 1) % size());
    const auto left = static_cast<peal::Rank>((rank() + size() - 1) % size());
    const peal::WorkPtr sent = group_.isend(to_right, right);
    group_.recv(from_left, left);
    sent->wait();
  }

  peal::ProcessGroup& group_;
  std::span<float> data_;
  std::vector<float> incoming_;
};

}  // namespace

int main() try {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  std::vector<float> by_hand(1'000'003);
  for (std::size_t i = 0; i < by_hand.size(); ++i) {
    by_hand[i] = static_cast<float>((group->rank() + 1) * static_cast<int>(i % 1000));
  }
  std::vector<float> by_peal = by_hand;

  Ring(*group, by_hand).all_reduce();
  group->all_reduce(by_peal);

  const bool same = by_hand == by_peal;  // sums of whole numbers do not depend on the order
  std::cout << "Rank " + std::to_string(group->rank()) + ": the ring and all_reduce " +
                   (same ? "agree" : "DISAGREE") + " on " + std::to_string(by_hand.size()) +
                   " sums\n";
  return same ? 0 : 1;
} catch (const peal::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
