// Measures operations by name beside the collectives below them (from build/release/bin):
//   peal run -n 2 ./horovod_bench
// Columns, in microseconds, medians:
// - "collective": an all_reduce of a group
// - "named": the blocking all_reduce by a name that the ranks remember
// - "unnamed": the same by a name that is used once
// The last line is one step of 200 tensors of 4 KiB, which each rank submits in a random order.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/base/size_text.h"
#include "peal/init/init.h"
#include "peal/named/named_operations.h"

namespace {

using peal::named::NamedOperations;

/// The median time of a call.
template <class Call>
double time_of(int calls, Call&& call) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (i >= calls / 5) times.push_back(time.count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

NamedOperations::Submission sum_of(std::vector<float>& values, std::string name) {
  NamedOperations::Submission submission;
  submission.request.name = std::move(name);
  submission.request.shape = {static_cast<std::int64_t>(values.size())};
  submission.memory.output = values;
  return submission;
}

void compare(peal::ProcessGroup& group, NamedOperations& named) {
  using Waits = NamedOperations::Waits;
  int number = 0;
  for (const std::size_t bytes : {4ul, 4096ul, 65536ul, 1048576ul, 4194304ul, 67108864ul}) {
    std::vector<float> values(bytes / sizeof(float), 1);
    const int calls = bytes <= 65536 ? 5000 : bytes <= 4194304 ? 200 : 20;
    const double collective = time_of(calls, [&] { group.all_reduce(values); });
    const double by_name = time_of(
        calls, [&] { named.wait(*named.submit(sum_of(values, "values"), Waits::kAtOnce)); });
    const double unnamed = time_of(calls, [&] {
      auto submission = sum_of(values, fmt::format("values {}", number++));
      submission.request.remembered = false;
      named.wait(*named.submit(std::move(submission), Waits::kAtOnce));
    });
    if (group.rank() != 0) continue;
    fmt::print(
        "all_reduce of {:8} collective {:9.1f} us  named {:9.1f} us  unnamed {:9.1f} us\n",
        peal::size_text(peal::Bytes(static_cast<std::int64_t>(bytes)), peal::SizeStyle::kLong),
        collective,
        by_name,
        unnamed);
  }
}

void shuffled(peal::ProcessGroup& group, NamedOperations& named) {
  std::vector<std::vector<float>> tensors(200, std::vector<float>(1024, 1));
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(static_cast<unsigned>(group.rank()));
  const double step = time_of(100, [&] {
    std::ranges::shuffle(order, random);
    std::vector<peal::named::OperationPtr> operations;
    for (const std::size_t i : order) {
      operations.push_back(named.submit(sum_of(tensors[i], fmt::format("tensor {}", i))));
    }
    for (const auto& operation : operations) named.wait(*operation);
  });
  if (group.rank() == 0) fmt::print("200 tensors of 4 KiB in random order: {:.1f} us\n", step);
}

}  // namespace

int main() {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  NamedOperations named(group->split(/*color=*/0), {});
  compare(*group, named);
  shuffled(*group, named);
  return 0;
}
