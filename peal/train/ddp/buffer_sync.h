// Makes the buffers of a model equal on all ranks. Used by GradientReducer.
#pragma once

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/train/ddp/data_parallel_options.h"
#include "peal/train/ddp/model_tensors.h"

namespace peal::train {

/// The ranks whose buffers count.
struct BufferSources {
  Rank first = 0;      // its buffers are broadcast
  int count = 1;       // the ranks that contribute to an average
  bool is_one = true;  // whether this rank is one of them
};

/// Does what `how` says; in a group of one, nothing. Does not increase version counters: batch norm
/// saves its statistics for backward, but does not read them there in training, so a second
/// backward pass may find them changed.
/// Order: collective.
/// Errors: those of broadcast and all_reduce.
/// Cost: one operation for each type of buffers.
void sync_buffers(ProcessGroup& group,
                  const ModelTensors& model,
                  BufferSync how,
                  BufferSources sources,
                  Timeout timeout);

}  // namespace peal::train
