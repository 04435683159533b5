#include "peal/launch/elastic/elastic_options.h"

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {

void check(const ElasticOptions& options) {
  const auto reject = [](const std::string& why) { throw Error(ErrorKind::kUsage, why); };
  if (options.discovery_script.empty() && options.hosts.empty()) {
    reject(
        "an elastic job needs hosts: name them by -H or --hostfile, or give "
        "--host-discovery-script, a program that prints a line for each host, such as localhost:2");
  }
  if (options.min_ranks < 1) {
    reject(fmt::format("--min-np {}: it takes the least number of ranks, 1 or more",
                       options.min_ranks));
  }
  if (options.max_ranks && *options.max_ranks < options.min_ranks) {
    reject(fmt::format(
        "--min-np {0} is more than --max-np {1}: give a smaller --min-np or a larger --max-np",
        options.min_ranks,
        *options.max_ranks));
  }
  if (options.slots < 1) {
    reject(fmt::format("--slots-per-host {}: it takes a number of 1 or more", options.slots));
  }
  if (options.timeout <= Timeout(0)) reject("--elastic-timeout takes seconds, more than 0");
  if (options.reset_limit && *options.reset_limit < 0) {
    reject(fmt::format("--reset-limit {}: it takes a number of 0 or more", *options.reset_limit));
  }
  if (options.cooldown && (options.cooldown->low < std::chrono::seconds(0) ||
                           options.cooldown->high < options.cooldown->low)) {
    reject("--blacklist-cooldown-range takes two numbers of seconds: put the smaller number first");
  }
}

}  // namespace peal::launch
