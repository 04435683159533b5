// The backend "peal" of torch.distributed: torch's collectives on a peal::ProcessGroup.
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

/// Makes the group at its first use. All its ranks must call this, even for a send.
using MakeGroup = std::function<ProcessGroupPtr()>;

/// Makes a new group by a rendezvous of its ranks in torch's store.
using MeetIn = std::function<ProcessGroupPtr(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, Timeout timeout)>;

/// The pg_options of init_process_group and dist.new_group.
struct TorchOptions final : c10d::Backend::Options {
  TorchOptions() : Options("peal") {}

  /// Whether the ranks connect at the first operation instead of at the construction of the group.
  bool lazy = false;
};

/// The blocking and the asynchronous form of an operation of ProcessGroup.
template <class Run, class Start>
struct Forms {
  Run run;
  Start start;
};

/// All operations of torch on CPU tensors, of any strides and type. Order, threads and errors are
/// as for the ProcessGroup operation of the same name (group/process_group.h). Roots are ranks of
/// the group. torch's argument checks keep their texts (RuntimeError). A call with asyncOp = false
/// runs the operation on the calling thread and returns a null Work. The release of the last
/// reference ends the backend, as it ends a ProcessGroup. In a forked process the backend does
/// nothing.
class TorchBackend final : public c10d::Backend {
 public:
  /// The parts of a backend that its subgroups need, as for split and shrink.
  struct Parts {
    c10::intrusive_ptr<c10d::Store> store;
    c10::intrusive_ptr<TorchOptions> options;
    MakeGroup make_group;
    MeetIn meet_in;
  };

  /// `store_end`: shutdown finally waits for it, so that the ranks may make a new group at once.
  TorchBackend(int rank, int size, Parts parts, StoreEnd store_end = {});
  ~TorchBackend() override;
  TorchBackend(const TorchBackend&) = delete;
  TorchBackend& operator=(const TorchBackend&) = delete;

  /// The group; the first call makes it. Errors: as new_group and init_process_group.
  ProcessGroupPtr shared_group();
  /// Whether the ranks connect at the first operation: then all ranks must call shared_group.
  bool is_lazy() const { return parts_.options->lazy; }

  using WorkRef = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;

  const std::string getBackendName() const override { return "peal"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;

  // ---- all ranks
  WorkRef broadcast(Tensors& data, const c10d::BroadcastOptions& options) override;
  /// Accepts sparse tensors too, as allreduce_sparse.
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
  /// Errors: the text begins with that of gloo's monitoredBarrier. It names every missing rank, for
  ///   any `wait_all_ranks`.
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
  /// The remaining ranks meet again in torch's store, because this group may have failed.
  c10::intrusive_ptr<Backend> shrink(const std::vector<std::int64_t>& without,
                                     int flags,
                                     const c10::intrusive_ptr<Options>& options) override;
  void abort() override;
  void shutdown() override;

  /// Runs at the release of the last strong reference; the destructor also waits for weak ones.
  void release_resources() override;

 private:
  /// The common arguments of all calls.
  struct Asked {
    Kind kind;
    Timeout timeout;
    bool is_async = true;
  };

  ProcessGroup& group();
  /// Releases make_group, which may hold the last reference to the parent group.
  void release_maker();
  /// Made at its first use, as the group. Order: the first use is a collective.
  SparseSum& sparse(Timeout timeout);
  void leave();
  void leave_normally(Deadline deadline);
  /// The groups that have been made so far.
  std::vector<ProcessGroup*> made() const;
  Timeout resolve(std::chrono::milliseconds timeout) const;
  /// Runs `run(group, operands)`, or starts `start(group, operands)`; the results of its Work are
  /// `results()`.
  template <class MakeResults, class Run, class Start>
  WorkRef carry_out(
      const Asked& asked, TensorOperands operands, MakeResults results, Run run, Start start);
  /// The same for both forms of one operation of ProcessGroup. `call(operation, operands)` calls
  /// either form with its arguments.
  template <class MakeResults, class Run, class Start, class Call>
  WorkRef carry_out(const Asked& asked,
                    TensorOperands operands,
                    MakeResults results,
                    const Forms<Run, Start>& forms,
                    Call call);
  /// Uses one operation for all tensors if they have one type, else one for each.
  /// `call(operation, inputs, outputs)`.
  template <class Run, class Start, class Call>
  WorkRef carry_out_each(
      const Asked& asked, Tensors& out, Tensors& in, const Forms<Run, Start>& forms, Call call);
  /// One all_gather for each input. Input k of rank r goes to output r * (number of inputs) + k.
  WorkRef gather_each(const Asked& asked, TensorOperands operands, const TensorLists& results);
  WorkRef receive(Tensors& data, Rank from, int tag, c10d::OpType type);
  c10::intrusive_ptr<TorchOptions> options_for(const c10::intrusive_ptr<Options>& options) const;
  c10::intrusive_ptr<Backend> meet_anew(const c10::intrusive_ptr<c10d::Store>& store,
                                        int rank,
                                        int size,
                                        const c10::intrusive_ptr<Options>& options);

  Parts parts_;
  StoreEnd store_end_;
  std::atomic<std::int64_t> timeout_ms_;
  std::atomic<ProcessGroup*> made_ = nullptr;  // group_, once that is made
  std::mutex making_;
  ProcessGroupPtr group_;
  std::atomic<SparseSum*> made_sparse_ = nullptr;  // sparse_, once that is made
  std::shared_ptr<SparseSum> sparse_;
  RegistrationCache registrations_;
  std::atomic<std::uint64_t> sequence_ = 0;
  std::atomic<int> shrunk_ = 0;
  const int generation_;  // differs from generation() in a forked process
  bool is_coalescing_ = false;
  std::vector<WorkRef> coalesced_;
};

}  // namespace peal::python
