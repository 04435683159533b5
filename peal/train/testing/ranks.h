// Ranks as threads of one test. Each thread has its own group object, over the real backend.
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <future>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/torch.h>

#include "peal/base/testing/temporary_folder.h"
#include "peal/init/init.h"

namespace peal::train::testing {

/// Long enough for a busy machine, short enough to end a test that hangs.
inline constexpr Timeout kLimit = std::chrono::seconds(60);

using peal::TemporaryFolder;

/// Calls body(group) on `ranks` threads and returns the results by rank. If a call throws, rethrows
/// the exception when all threads have ended.
template <class Body>
auto on_ranks(int ranks, Body&& body) {
  using Result = std::invoke_result_t<Body, ProcessGroupPtr>;
  torch::set_num_threads(1);
  const TemporaryFolder folder;
  std::vector<std::future<Result>> running;
  for (Rank rank = 0; rank < ranks; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      InitOptions options;
      options.init_method = "file://" + (folder.path() / "store").string();
      options.rank = rank;
      options.world_size = ranks;
      options.timeout = kLimit;
      return body(init_process_group(options));
    }));
  }
  std::vector<Result> results;
  for (auto& one : running) results.push_back(one.get());
  return results;
}

/// The text of the error that `call` throws, or "no error".
template <class Call>
std::string thrown_text(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace peal::train::testing
