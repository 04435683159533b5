// torch.distributed's backend "peal": torch's collectives on a ProcessGroup of peal's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "peal/group/process_group.h"

#include "python/c10d/operands.h"
#include "python/c10d/registration_cache.h"
#include "python/c10d/sparse.h"
#include "python/c10d/store_end.h"
#include "python/c10d/work.h"

namespace peal::python {

/// Makes the group when it is first needed: where all its ranks must come, be it for a send.
using MakeGroup = std::function<ProcessGroupPtr()>;

/// What a new group is made in: torch's store, in which the ranks may meet.
using MeetIn = std::function<ProcessGroupPtr(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, Timeout timeout)>;

/// What pg_options take, and dist.new_group's too.
struct TorchOptions final : c10d::Backend::Options {
  TorchOptions() : Options("peal") {}

  /// Whether ranks meet at the first operation, instead of when the group is made.
  bool lazy = false;
};

/// All operations of torch on tensors of the CPU, of any strides and type. Order, threads and
/// errors are those of ProcessGroup's operation of the same name (group/process_group.h), the roots
/// ranks of the group; torch's own argument checks keep their words (RuntimeError). A call with
/// asyncOp = false carries the operation out on its own thread and returns a null Work. Ends, as
/// its ProcessGroup, when the last reference goes; in a process that was forked from the one that
/// made it, it does nothing.
class TorchBackend final : public c10d::Backend {
 public:
  /// What a sub-group needs that torch asks of this one, as split and shrink.
  struct Parts {
    c10::intrusive_ptr<c10d::Store> store;
    c10::intrusive_ptr<TorchOptions> options;
    MakeGroup make_group;
    MeetIn meet_in;
  };

  /// `store_end`: what shutdown waits for at last, so that ranks may meet again at once.
  TorchBackend(int rank, int size, Parts parts, StoreEnd store_end = {});
  ~TorchBackend() override;
  TorchBackend(const TorchBackend&) = delete;
  TorchBackend& operator=(const TorchBackend&) = delete;

  /// The group, made now if it was not. Errors: as new_group; of whatever meets.
  ProcessGroupPtr shared_group();
  /// Whether the ranks meet at the first operation: then all of them must come to shared_group.
  bool is_lazy() const { return parts_.options->lazy; }

  using WorkRef = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;

  const std::string getBackendName() const override { return "peal"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;

  // ---- all ranks
  WorkRef broadcast(Tensors& data, const c10d::BroadcastOptions& options) override;
  /// Of sparse tensors too, as allreduce_sparse.
  WorkRef allreduce(Tensors& data, const c10d::AllreduceOptions& options) override;
  WorkRef allreduce_sparse(Tensors& data, const c10d::AllreduceOptions& options) override;
  WorkRef allreduce_coalesced(Tensors& data,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkRef reduce(Tensors& data, const c10d::ReduceOptions& options) override;
  WorkRef allgather(TensorLists& out, Tensors& in, const c10d::AllgatherOptions& options) override;
  WorkRef _allgather_base(at::Tensor& out,
                          at::Tensor& in,
                          const c10d::AllgatherOptions& options) override;
  WorkRef allgather_coalesced(TensorLists& out,
                              Tensors& in,
                              const c10d::AllgatherOptions& options) override;
  WorkRef allgather_into_tensor_coalesced(Tensors& out,
                                          Tensors& in,
                                          const c10d::AllgatherOptions& options) override;
  WorkRef gather(TensorLists& out, Tensors& in, const c10d::GatherOptions& options) override;
  WorkRef scatter(Tensors& out, TensorLists& in, const c10d::ScatterOptions& options) override;
  WorkRef reduce_scatter(Tensors& out,
                         TensorLists& in,
                         const c10d::ReduceScatterOptions& options) override;
  WorkRef _reduce_scatter_base(at::Tensor& out,
                               at::Tensor& in,
                               const c10d::ReduceScatterOptions& options) override;
  WorkRef reduce_scatter_tensor_coalesced(Tensors& out,
                                          Tensors& in,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkRef alltoall_base(at::Tensor& out,
                        at::Tensor& in,
                        std::vector<std::int64_t>& out_splits,
                        std::vector<std::int64_t>& in_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkRef alltoall(Tensors& out, Tensors& in, const c10d::AllToAllOptions& options) override;
  WorkRef barrier(const c10d::BarrierOptions& options) override;
  /// Errors: begin with the words of gloo's monitoredBarrier. Every missing rank is named, whatever
  /// `wait_all_ranks` says.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  // ---- two ranks
  WorkRef send(Tensors& data, int to, int tag) override;
  WorkRef recv(Tensors& data, int from, int tag) override;
  WorkRef recvAnysource(Tensors& data, int tag) override;

  // ---- several calls as one Work
  void startCoalescing() override;
  WorkRef endCoalescing() override;

  // ---- the group
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override;
  c10::intrusive_ptr<Backend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                    const c10::intrusive_ptr<Options>& options,
                                    const int& rank,
                                    const int& size) override;
  bool supportsShrinking() const override { return true; }
  /// The ranks that are left meet anew, in torch's store: this group may have failed.
  c10::intrusive_ptr<Backend> shrink(const std::vector<std::int64_t>& without,
                                     int flags,
                                     const c10::intrusive_ptr<Options>& options) override;
  void abort() override;
  void shutdown() override;

  /// When the last strong reference goes: the destructor waits for the weak ones too.
  void release_resources() override;

 private:
  /// What all calls have in common.
  struct Asked {
    Kind kind;
    Timeout timeout;
    bool is_async = true;
  };

  ProcessGroup& group();
  /// It may hold the last reference to another group, of which this one was to be made.
  void let_go_of_maker();
  /// Made when it is first needed, as the group. Order: a collective then.
  SparseSum& sparse(Timeout timeout);
  void leave();
  void leave_in_order(Deadline deadline);
  /// The groups that there are by now.
  std::vector<ProcessGroup*> made() const;
  Timeout resolve(std::chrono::milliseconds timeout) const;
  /// Runs `run(group, operands)`, or starts `start(group, operands)`, whose results are
  /// `results()`.
  template <class MakeResults, class Run, class Start>
  WorkRef carry_out(
      const Asked& asked, Operands operands, MakeResults results, Run run, Start start);
  /// All of them, in one operation where they are of one type.
  template <class Run, class Start>
  WorkRef carry_out_each(const Asked& asked, Tensors& out, Tensors& in, Run run, Start start);
  /// One all_gather for each input. Input k of rank r goes to output r * (number of inputs) + k.
  WorkRef gather_each(const Asked& asked, Operands operands, const TensorLists& results);
  WorkRef receive(Tensors& data, Rank from, int tag, c10d::OpType type);
  c10::intrusive_ptr<TorchOptions> options_for(const c10::intrusive_ptr<Options>& options) const;
  c10::intrusive_ptr<Backend> meet_anew(const c10::intrusive_ptr<c10d::Store>& store,
                                        int rank,
                                        int size,
                                        const c10::intrusive_ptr<Options>& options);

  Parts parts_;
  StoreEnd store_end_;
  std::atomic<std::int64_t> timeout_ms_;
  std::atomic<ProcessGroup*> made_ = nullptr;  // once group_ is
  std::mutex making_;
  ProcessGroupPtr group_;
  std::atomic<SparseSum*> made_sparse_ = nullptr;  // once sparse_ is
  std::shared_ptr<SparseSum> sparse_;
  RegistrationCache registrations_;
  std::atomic<std::uint64_t> sequence_ = 0;
  std::atomic<int> shrunk_ = 0;
  const int generation_;  // of processes: it differs where this was forked
  bool is_coalescing_ = false;
  std::vector<WorkRef> coalesced_;
};

}  // namespace peal::python
