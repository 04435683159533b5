// Ranks as threads of a test, each with NamedOperations, and submissions for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/testing/temporary_folder.h"
#include "peal/init/init.h"
#include "peal/named/named_operations.h"

namespace peal::named {

/// A rank as a thread of the test.
struct Here {
  ProcessGroupPtr group;
  NamedOperations& named;
  Rank rank;
  int size;
};

/// The group of a rank that meets the others in the folder.
inline ProcessGroupPtr join_group(const std::filesystem::path& folder,
                                  Rank rank,
                                  int ranks,
                                  std::chrono::seconds timeout = std::chrono::seconds(60)) {
  InitOptions init;
  init.init_method = "file://" + (folder / "store").string();
  init.rank = rank;
  init.world_size = ranks;
  init.timeout = timeout;
  return init_process_group(init);
}

/// The results of body(here) of all ranks. `options_of`: the options of a rank.
template <class OptionsOf, class Body>
auto on_ranks_with(int ranks, OptionsOf options_of, Body body) {
  using Result = std::invoke_result_t<Body, const Here&>;
  const TemporaryFolder folder;
  std::vector<std::future<Result>> running;
  for (Rank rank = 0; rank < ranks; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      const ProcessGroupPtr group = join_group(folder.path(), rank, ranks);
      NamedOperations named(group, options_of(rank));
      return body(Here{group, named, rank, ranks});
    }));
  }
  std::vector<Result> results;
  for (auto& one : running) results.push_back(one.get());
  return results;
}

template <class Body>
auto on_ranks(int ranks, const Options& options, Body body) {
  return on_ranks_with(
      ranks, [&](Rank) { return options; }, std::move(body));
}

template <class T>
NamedOperations::Submission all_reduce(std::string name, std::vector<T>& data, Reduction op) {
  NamedOperations::Submission submission;
  submission.request.name = std::move(name);
  submission.request.dtype = dtype_of<T>;
  submission.request.reduction = op;
  submission.request.shape = {static_cast<std::int64_t>(data.size())};
  submission.memory.output = data;
  return submission;
}

template <class T>
NamedOperations::Submission with_kind(Kind kind,
                                      std::string name,
                                      std::vector<T>& in,
                                      std::vector<T>& out) {
  NamedOperations::Submission submission;
  submission.request.name = std::move(name);
  submission.request.kind = kind;
  submission.request.dtype = dtype_of<T>;
  submission.request.shape = {static_cast<std::int64_t>(in.size())};
  submission.memory.input = in;
  submission.memory.output = out;
  submission.memory.allocate = [&out](std::span<const std::int64_t> rows) {
    out.resize(
        static_cast<std::size_t>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0})));
    return Buffer(out);
  };
  return submission;
}

/// The kind and the text of the error that `call` throws.
template <class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace peal::named
