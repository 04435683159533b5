// The container of a rank as a value. Made by `peal run --image` and for the roles of a job.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/job_label.h"

namespace peal::launch::containers {

/// What becomes of the image's entrypoint.
enum class Entrypoint : unsigned char {
  kReplaced,  // by the command of the rank
  kKept,      // it gets the rank's arguments
};

struct Container {
  std::string image;
  Entrypoint entrypoint = Entrypoint::kReplaced;
  std::string directory{};        // where the command starts; empty: as the image says
  std::optional<Bytes> memory{};  // the limit; nothing: no limit
  std::optional<double> cpus{};   // the same
  std::optional<Bytes> shm{};     // of /dev/shm; nothing: half of the memory
  bool has_gpus = false;          // all GPUs of the host; a rank chooses its own by LOCAL_RANK
  std::string network = "host";   // ranks meet by the addresses of the hosts
  int attempt = 0;                // of the job: containers of all attempts have different names
  /// In a submitted job, kJobLabel is one of them, with the id of the job. Otherwise peal adds
  /// kJobLabel with the value of PEAL_JOB.
  std::map<std::string, std::string> labels{};
  std::vector<std::string> options{};  // for the engine, such as --volume=/data:/data
  friend bool operator==(const Container&, const Container&) = default;
};

}  // namespace peal::launch::containers
