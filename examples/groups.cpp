// The code of docs/guide/groups.md, in the same order; a test compares the two.
//   build/release/bin/peal run -n 2 build/release/bin/groups
#include <chrono>
#include <cstddef>
#include <iostream>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

namespace {

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("the check failed: ") + what);
}

/// Rank, size and address come from the environment, or from the arguments METHOD RANK WORLD_SIZE.
peal::InitOptions options_of(const std::vector<std::string>& arguments) {
  peal::InitOptions options;
  if (arguments.size() == 3) {
    options.init_method = arguments[0];  // "tcp://10.0.0.5:29500", "file:///shared/folder/meeting"
    options.rank = std::stoi(arguments[1]);
    options.world_size = std::stoi(arguments[2]);
  }
  options.timeout = std::chrono::seconds(30);
  options.report = [](std::string_view message) { std::cerr << std::string(message) + "\n"; };
  return options;
}

void whole_buffers(peal::ProcessGroup& group) {
  std::vector<float> values(1000, static_cast<float>(group.rank()));
  group.broadcast(values, 0);                              // all ranks have rank 0's values
  group.all_reduce(values, {.op = peal::ReduceOp::kAvg});  // all ranks have the mean over ranks
  group.reduce(values, 0, {.op = peal::ReduceOp::kMax});   // only rank 0 has the maximum
  expect(values.front() == 0, "all ranks have rank 0's values");
}

void blocks(peal::ProcessGroup& group) {
  const auto n = static_cast<std::size_t>(group.size());
  std::vector<int> mine(3, group.rank()), all(3 * n), other(3 * n);
  group.all_gather(mine, all);      // all: rank 0's three, rank 1's three, ...
  group.gather(mine, all, 0);       // the same, at rank 0 only
  group.scatter(all, mine, 0);      // mine: my three of rank 0's all
  group.all_to_all(all, other);     // block r of other: my block of rank r's all
  group.reduce_scatter(all, mine);  // mine: my three of the sum over ranks of all
  expect(mine[2] == group.rank() * group.size(), "each rank has the sum of its blocks");
}

void unequal_blocks(peal::ProcessGroup& group) {
  const auto own = static_cast<std::size_t>(group.rank()) + 1;
  const auto total = static_cast<std::size_t>(group.size() * (group.size() + 1) / 2);
  std::vector<int> mine(own, group.rank()), all(total);
  std::vector<peal::Elements> counts;
  for (int r = 0; r < group.size(); ++r) counts.emplace_back(r + 1);  // rank r has r + 1 numbers
  group.all_gather(mine, all, {.counts = counts});
  expect(all.back() == group.size() - 1, "the last block is the last rank's");
}

void a_buffer_for_each_rank(peal::ProcessGroup& group) {
  std::vector<int> mine = {group.rank()};
  std::vector<std::vector<int>> rows(static_cast<std::size_t>(group.size()), std::vector<int>(1));
  const std::vector<peal::Buffer> out(rows.begin(), rows.end());
  group.all_gather(mine, out);  // rows[r] has the values of rank r
  expect(rows.back().front() == group.size() - 1, "the last row is the last rank's");
}

void several_buffers_at_once(peal::ProcessGroup& group) {
  std::vector<float> weight(6, 1), bias(2, 1);
  group.all_reduce({weight, bias});  // one operation, at the cost of one
  expect(bias[1] == static_cast<float>(group.size()), "each of them is the sum");
}

void messages(peal::ProcessGroup& group) {
  std::vector<float> values = {static_cast<float>(group.rank())};
  if (group.rank() == 0) group.send(values, 1);
  if (group.rank() == 1) group.recv(values, 0);
  expect(group.rank() != 1 || values[0] == 0, "rank 1 has rank 0's value");
}

void any_source(peal::ProcessGroup& group) {
  std::vector<double> answer = {1.0 * group.rank()};
  std::vector<double> answers(static_cast<std::size_t>(group.size()));
  if (group.rank() == 0) {
    for (int i = 1; i < group.size(); ++i) {
      const peal::Rank from = group.recv(answer, peal::kAnySource, {.tag = peal::Tag{7}});
      answers[static_cast<std::size_t>(from)] = answer[0];
    }
    expect(answers.back() == group.size() - 1, "each answer is its rank's");
  } else {
    group.send(answer, 0, {.tag = peal::Tag{7}});
  }
}

void exchange(peal::ProcessGroup& group) {
  const peal::Rank next = (group.rank() + 1) % group.size();
  const peal::Rank before = (group.rank() + group.size() - 1) % group.size();
  std::vector<int> out = {group.rank()}, in(1);
  using Kind = peal::PointToPoint::Kind;
  const std::vector<peal::PointToPoint> both = {{Kind::kSend, out, next, {}},
                                                {Kind::kRecv, in, before, {}}};
  group.batch_isend_irecv(both)->wait();
  expect(in[0] == before, "the value of the rank before has arrived");
}

double compute() { return 1; }

void asynchronous(peal::ProcessGroup& group) {
  std::vector<float> values(1000, 1);
  const peal::WorkPtr work = group.all_reduce_async(values);
  compute();     // must not use `values`
  work->wait();  // throws if the operation has failed
  expect(values[999] == static_cast<float>(group.size()), "the sum is complete");
}

void groups_of_some(peal::ProcessGroup& group) {
  const peal::ProcessGroupPtr half = group.split(group.rank() % 2);  // the even ranks, the odd ones
  half->barrier();

  const std::vector<peal::Rank> members = {1, 0};  // rank 1 of `group` is rank 0 of `pair`
  if (group.rank() < 2) {
    const peal::ProcessGroupPtr pair = group.new_group(members);
    expect(pair->global_rank(0) == 1, "ranks are in the order of the list");
  }
}

void meet(peal::ProcessGroup& group) {
  group.barrier();
  group.monitored_barrier({.timeout = std::chrono::seconds(10)});
}

void registered_memory(peal::ProcessGroup& group) {
  const std::size_t count = 1 << 20;
  const peal::Memory memory = group.allocate(peal::Bytes(count * sizeof(float)));  // zeros
  const std::span<float> values(reinterpret_cast<float*>(memory.get()), count);
  group.all_reduce(values);
  expect(values.back() == 0, "the sum of zeros is zero");

  std::vector<float> gradients(count, 1);
  const peal::Registration registration =
      group.register_memory(gradients.data(), peal::Bytes(count * sizeof(float)));
  group.all_reduce(gradients);
  expect(gradients.back() == static_cast<float>(group.size()), "the sum of ones is the size");
}

void a_timeout_of_its_own(peal::ProcessGroup& group) {
  std::vector<int> values = {1};
  group.all_reduce(values, {.timeout = std::chrono::seconds(5)});
  expect(values[0] == group.size(), "the sum of ones is the size");
}

/// Ends the group, as the last step of this program. The end of the group ends every call that has
/// not returned, so rank 0 first waits until the other ranks have returned from their calls.
void fail(peal::ProcessGroup& group) {
  std::vector<int> values(4);
  if (group.rank() != 0) group.send(values, 0);
  for (int i = 1; group.rank() == 0 && i < group.size(); ++i) group.recv(values);
  try {
    if (group.rank() == 0) throw std::runtime_error("cannot read batch 17");
    group.all_reduce(values);
  } catch (const peal::Error& error) {
    if (!peal::is_loss(error.kind())) throw;
    std::cerr << std::string(error.message()) + "\n";  // the rank, the operation, the reason
  } catch (const std::exception& error) {
    group.abort(error.what());  // the other ranks throw this text at once, without a timeout
  }
}

void run(peal::ProcessGroup& group) {
  whole_buffers(group);
  blocks(group);
  unequal_blocks(group);
  a_buffer_for_each_rank(group);
  several_buffers_at_once(group);
  messages(group);
  any_source(group);
  exchange(group);
  asynchronous(group);
  groups_of_some(group);
  meet(group);
  registered_memory(group);
  a_timeout_of_its_own(group);
  fail(group);
}

}  // namespace

int main(int argc, char** argv) try {
  const peal::InitOptions options = options_of({argv + 1, argv + argc});
  const peal::ProcessGroupPtr group = peal::init_process_group(options);
  if (group->size() < 2) {
    std::cout << "This program needs two ranks: start it with peal run -n 2.\n";
    return 0;
  }
  run(*group);
  if (group->rank() == 0) std::cout << "All results are right, and the abort worked.\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
