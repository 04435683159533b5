// The reduction Adasum: adds gradients of ranks that differ, and averages gradients that are the
// same, so that the step of many ranks stays as stable as that of one.
#pragma once

#include "peal/base/clock.h"
#include "peal/group/buffer.h"
#include "peal/group/process_group.h"

namespace peal::named {

/// data = adasum of data_r over the ranks. For two vectors
///   adasum(a, b) = (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b
/// with a.b and the norms in f64. A factor is 1 if its norm is 0 or close to it. Orthogonal vectors
/// are added; equal vectors stay as they are.
/// Order: collective, in place; the same bits on all ranks. Ranks are paired by the binary digits
///   of their numbers: adasum(adasum(0, 1), adasum(2, 3)). If their number is not a power of two,
///   each rank from that power on is first combined with the rank that many below.
/// Errors: unsupported (the type is neither floating nor complex), and those of messages.
/// Cost: log2 n messages of S and passes over the data; allocates S.
/// Source: Maleki et al. 2021, Scaling Distributed Training with Adaptive Summation, section 3.
void adasum(ProcessGroup& group, const Buffer& data, Timeout timeout = kGroupTimeout);

}  // namespace peal::named
