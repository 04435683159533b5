// Horovod's API for C++: include this file alone. Programs link peal::train.
//
//   namespace hvd = peal::hvd;
//   hvd::init();
//   hvd::broadcast_parameters(*net, 0);
//   hvd::DistributedOptimizer optimizer(
//       torch::optim::SGD(net->parameters(), 0.01 * hvd::size()), net->named_parameters());
//   ... optimizer.zero_grad(); loss.backward(); optimizer.step();
//
// Ranks are started by `peal run` or any launcher that init_process_group knows.
#pragma once

#include "peal/train/horovod/compression.h"            // IWYU pragma: export
#include "peal/train/horovod/distributed_optimizer.h"  // IWYU pragma: export
#include "peal/train/horovod/elastic.h"                // IWYU pragma: export
#include "peal/train/horovod/errors.h"                 // IWYU pragma: export
#include "peal/train/horovod/functions.h"              // IWYU pragma: export
#include "peal/train/horovod/init.h"                   // IWYU pragma: export
#include "peal/train/horovod/operations.h"             // IWYU pragma: export
#include "peal/train/horovod/process_set.h"            // IWYU pragma: export
#include "peal/train/horovod/sync_batch_norm.h"        // IWYU pragma: export
