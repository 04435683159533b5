// The arguments of `peal run` that make a job elastic: ranges such as -n 2:4 and --nnodes 1:3, and
// horovodrun's options. Pure, but for the environment. Called by run_command.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/base/count_range.h"
#include "peal/cli/horovod_settings.h"
#include "peal/cli/torchrun_options.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/host_list.h"
#include "peal/launch/wording.h"

namespace peal::cli {

class ElasticArguments final {
 public:
  /// `counts`: all values of -n. The arguments must outlive this object.
  ElasticArguments(const std::vector<std::string>& counts,
                   const launch::Wording& wording,
                   const TorchrunValues& torchrun)
      : counts_(counts), wording_(wording), torchrun_(torchrun) {}

  /// Expresses ranges by horovodrun's options:
  ///   -n 2:4             --min-np 2 --max-np 4
  ///   --nnodes 1:3 -n 2  --min-np 2 --max-np 6 --slots-per-host 2
  /// Errors: usage, also if the number of ranks is given twice.
  void take_ranges(HorovodSettings& settings) const;
  /// Nothing if the job is not elastic. Errors: usage.
  std::optional<launch::ElasticOptions> options(const HorovodSettings& settings) const;
  /// The hosts of a job without a discovery script. With --nnodes, each host has -n slots. Without
  /// hosts, a range of -n means slots of this machine; nothing is returned if -n has no range.
  /// Errors: usage if --nnodes has no hosts.
  std::vector<launch::HostSlots> hosts(std::vector<launch::HostSlots> named,
                                       const launch::ElasticOptions& options) const;

 private:
  /// "--nnodes 1:3"
  std::string name_of(const CountRange& nodes) const;
  int ranks_on_each_host(const CountRange& nodes) const;

  const std::vector<std::string>& counts_;
  const launch::Wording& wording_;
  const TorchrunValues& torchrun_;
};

/// Rejects an option that is given. `instead`: what the user can do. Errors: usage.
void refuse_in_elastic_job(const std::string& option,
                           const std::string& value,
                           const std::string& instead);

}  // namespace peal::cli
