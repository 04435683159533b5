// Ranks from one program: calls a function in several new processes of this machine, as
// torch.multiprocessing.spawn does. For programs that start without `peal run`.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/report.h"
#include "peal/base/serialize.h"
#include "peal/base/units.h"
#include "peal/launch/options.h"
#include "peal/launch/result_bytes.h"

namespace peal {

struct SpawnOptions {
  /// Whether each rank is bound to its share of the cores.
  launch::Binding binding = launch::Binding::kCores;
  /// Whether each line of a rank begins with "[rank] ".
  launch::Labels labels = launch::Labels::kNone;
  /// The time between the request to end and the kill. A Trainer needs enough for its longest step
  /// and a checkpoint: ranks that are killed earlier lose the steps since their last checkpoint.
  Timeout grace = std::chrono::seconds(5);
  /// Receives warnings: ranks that did not end within the grace and were killed; output or records
  /// that could not be written. It is called after the end of the ranks, also if a signal to this
  /// process has ended them.
  Report report = silent_report();
};

/// A rank of `spawn` failed. The kind and the details are those of the first rank that failed by
/// itself, and the message names this rank. If one rank cannot write its part of a checkpoint, all
/// ranks throw its error; then this rank is named. Where the details name no rank or no cause, they
/// name this rank, and that the rank threw, exited or was killed.
class SpawnError final : public Error {
 public:
  SpawnError(const Error& error, std::vector<std::optional<Error>> errors);

  /// The error of each rank; nothing for a rank that succeeded.
  const std::vector<std::optional<Error>>& errors() const { return errors_; }

 private:
  std::vector<std::optional<Error>> errors_;
};

namespace launch {

/// What a rank must give back.
enum class Returns : unsigned char { kValue, kNothing };

/// The part of `spawn` that does not depend on the type of the result. Returns the bytes of each
/// rank's result.
std::vector<std::string> run_function(int ranks,
                                      const std::function<std::string(Rank)>& function,
                                      Returns returns,
                                      const SpawnOptions& options);

}  // namespace launch

/// results[r] = function(r) for r = 0 .. ranks - 1, each in a process of its own.
///
///   const auto sums = peal::spawn(4, [](peal::Rank rank) {
///     const auto group = peal::init_process_group();
///     float value = static_cast<float>(rank);
///     group->all_reduce(std::span(&value, 1));
///     return value;
///   });
///
/// In these processes init_process_group() needs no arguments. A rank has the environment and the
/// cores that `peal run` would give it, and so has OpenMP.
///
/// A result is a trivially copyable value without pointers, a std::string, or a std::vector of
/// results. Without a result, spawn returns nothing.
///
/// The processes are forks of this process: the function may use all that it captures, but changes
/// only copies. They end without the exit handlers and static destructors of the program; buffers
/// of std::cout and stdio are flushed. std::exit(0) ends a rank well if the function returns
/// nothing. Rank 0 reads this process's standard input, the others read nothing. The output of the
/// ranks goes to this process's output, in whole lines.
///
/// After the first failure the other ranks have three seconds to fail by themselves. Then they get
/// SIGTERM, and SIGKILL after the grace. No process is left behind, even if this process is killed.
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT to this process go to all ranks, which are killed if they do
/// not end within the grace. When all have ended, this process gets the signal too: unless the
/// program handles the signal, spawn does not return. A signal to one rank reaches no other rank.
/// Inside a rank of another job, the new ranks are a job of their own.
/// Threads: this process must have one thread, because a fork copies only one. So call spawn before
///   the first tensor operation and outside of a group. One spawn at a time.
/// Errors: SpawnError. Its kind is that of the Error that the function threw; resource for
///   std::bad_alloc and std::system_error; aborted for any other exception; peer_lost if the
///   process of the rank was killed or exited. Error: usage (fewer ranks than 1, several threads),
///   resource, aborted (a signal that this process handles).
/// Cost: a fork for each rank, some 10 ms to look at the machine, copies of the results.
template <std::invocable<Rank> Function>
auto spawn(int ranks, Function&& function, const SpawnOptions& options = {}) {
  using Result = std::remove_cvref_t<std::invoke_result_t<Function&, Rank>>;
  if constexpr (std::is_void_v<Result>) {
    const auto call = [&](Rank rank) {
      std::invoke(function, rank);
      return std::string();
    };
    launch::run_function(ranks, call, launch::Returns::kNothing, options);
  } else {
    static_assert(launch::ResultValue<Result>,
                  "the function of peal::spawn returns nothing, a trivially copyable value without "
                  "pointers, a std::string, or a std::vector of these");
    const auto call = [&](Rank rank) {
      ByteWriter writer;
      launch::put_result<Result>(writer, std::invoke(function, rank));
      return std::move(writer).take();
    };
    std::vector<Result> results;
    for (const std::string& bytes :
         launch::run_function(ranks, call, launch::Returns::kValue, options)) {
      ByteReader reader(bytes, "result of a rank");
      results.push_back(launch::get_result<Result>(reader));
    }
    return results;
  }
}

}  // namespace peal
