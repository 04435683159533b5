// The random generator of LibTorch's CPU in a checkpoint.
#pragma once

#include "peal/base/units.h"
#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/checkpoint_reader.h"

namespace peal::train {

/// Adds the state of this process's default generator to `checkpoint`: to its rank_tensors and
/// values, as "random.state" and "random.seed".
void save_random_state(Checkpoint& checkpoint);

/// Sets this process's default generator. On as many ranks as at the save, each rank continues its
/// random numbers. On another number of ranks there is no such state, and the generator gets a new
/// seed, a function of (the seed of rank 0 at the save, rank, step). Generators of devices are not
/// touched.
/// Errors: resource (the checkpoint has no random state of this rank), those of CheckpointReader.
void load_random_state(const CheckpointReader& checkpoint, Rank rank, int ranks);

}  // namespace peal::train
