// What init() makes and shutdown() ends: the groups of the process sets. Used in this folder and by
// the module for Python.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/named/named_operations.h"
#include "peal/system/per_process.h"
#include "peal/train/horovod/init.h"
#include "peal/train/horovod/process_set_state.h"
#include "peal/train/horovod/settings.h"
#include "peal/train/horovod/topology.h"

namespace peal::hvd {

/// Threads: any number at once.
class Context final {
 public:
  /// Order: collective. Errors: those of init().
  Context(const InitOptions& options, Settings settings);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Settings& settings() const { return settings_; }
  const Topology& topology() const { return topology_; }
  const ProcessSetPtr& world() const { return world_; }
  /// The group of all ranks; null after close().
  ProcessGroupPtr group() const;
  /// A set whose operations this rank may call.
  /// Errors: usage (the set is not registered).
  ProcessSetPtr set(int id) const;
  std::vector<int> set_ids() const;
  int add_set(std::vector<Rank> ranks);
  bool remove_set(int id);
  named::TimelineSwitch& timeline() { return *named_options_.timeline; }
  void start_timeline(const std::string& path, named::Timeline::Rounds rounds);
  void report(std::string_view warning) const { named_options_.report(warning); }
  void leave_backward(const std::exception_ptr& error) const;
  /// Whether this process made the context, and is not a fork of that process.
  bool is_of_this_process() const { return owner_.is_current(); }

  void close();

 private:
  struct Sets {
    std::map<int, ProcessSetPtr> by_id;
    int next_id = 1;
  };

  ProcessGroupPtr meet(const InitOptions& options);
  void agree(const std::string& name, const std::string& detail);
  void require_new(const std::vector<Rank>& ranks) const;
  void require_dynamic(const char* change) const;
  int make_set(std::vector<Rank> ranks);
  void report_unknown_interfaces() const;
  void write_autotune_log() const;

  OwnerProcess owner_;
  Settings settings_;
  bool is_dynamic_ = false;
  std::function<void(const std::exception_ptr&)> leave_backward_;
  named::Options named_options_;
  mutable Guarded<ProcessGroupPtr> group_;
  Topology topology_;
  ProcessSetPtr world_;
  mutable Guarded<Sets> sets_;
};

using ContextPtr = std::shared_ptr<Context>;

/// Errors: usage, before init.
ContextPtr current();
/// Null before init.
ContextPtr try_current();

}  // namespace peal::hvd
