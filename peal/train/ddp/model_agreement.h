// Checks that all ranks have the same model. Used by GradientReducer.
#pragma once

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/train/ddp/model_tensors.h"
#include "peal/train/ddp/module_snapshot.h"

namespace peal::train {

/// Returns if all ranks have parameters and buffers with the same names, types and shapes, and have
/// replaced the same ones since `agreed`.
/// Order: collective.
/// Errors, on every rank: mismatch (names the first difference), those of require_sendable,
///   unsupported (parameters on several devices: backward would run on several threads).
/// Cost: some small operations.
void require_same_layout(ProcessGroup& group,
                         const ModelTensors& model,
                         const ModuleSnapshot& agreed,
                         Timeout timeout);

/// Returns if the parameters of all ranks have the same bits.
/// Order: collective.
/// Errors, on every rank: mismatch (names the first difference), unsupported (a parameter that is
///   not dense).
/// Cost: reads all values, and some small operations.
void require_same_values(ProcessGroup& group, const ModelTensors& model, Timeout timeout);

}  // namespace peal::train
