#include "peal/group/block_collectives.h"

#include "peal/group/state.h"

namespace peal {

// ---- several buffers as one

void BlockCollectives::all_gather(std::span<const ConstBuffer> in,
                                  std::span<const Buffer> out,
                                  Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.all_gather(in, out); });
}
WorkPtr BlockCollectives::all_gather_async(std::span<const ConstBuffer> in,
                                           std::span<const Buffer> out,
                                           Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.all_gather(in, out); });
}
void BlockCollectives::reduce_scatter(std::span<const ConstBuffer> in,
                                      std::span<const Buffer> out,
                                      ReduceOp op,
                                      Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.reduce_scatter(in, out, op); });
}
WorkPtr BlockCollectives::reduce_scatter_async(std::span<const ConstBuffer> in,
                                               std::span<const Buffer> out,
                                               ReduceOp op,
                                               Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.reduce_scatter(in, out, op); });
}

// ---- a block for each rank

void BlockCollectives::scatter(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.scatter(in, out, root, counts); });
}
WorkPtr BlockCollectives::scatter_async(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.scatter(in, out, root, counts); });
}
void BlockCollectives::gather(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.gather(in, out, root, counts); });
}
WorkPtr BlockCollectives::gather_async(
    ConstBuffer in, Buffer out, Rank root, std::span<const Elements> counts, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.gather(in, out, root, counts); });
}
void BlockCollectives::all_gather(ConstBuffer in,
                                  Buffer out,
                                  std::span<const Elements> counts,
                                  Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.all_gather(in, out, counts); });
}
WorkPtr BlockCollectives::all_gather_async(ConstBuffer in,
                                           Buffer out,
                                           std::span<const Elements> counts,
                                           Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.all_gather(in, out, counts); });
}
void BlockCollectives::reduce_scatter(
    ConstBuffer in, Buffer out, ReduceOp op, std::span<const Elements> counts, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.reduce_scatter(in, out, op, counts); });
}
WorkPtr BlockCollectives::reduce_scatter_async(
    ConstBuffer in, Buffer out, ReduceOp op, std::span<const Elements> counts, Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.reduce_scatter(in, out, op, counts); });
}
void BlockCollectives::all_to_all(ConstBuffer in,
                                  Buffer out,
                                  std::span<const Elements> to,
                                  std::span<const Elements> from,
                                  Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.all_to_all(in, out, to, from); });
}
WorkPtr BlockCollectives::all_to_all_async(ConstBuffer in,
                                           Buffer out,
                                           std::span<const Elements> to,
                                           std::span<const Elements> from,
                                           Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.all_to_all(in, out, to, from); });
}

// ---- a buffer for each rank

void BlockCollectives::scatter(std::span<const ConstBuffer> in,
                               Buffer out,
                               Rank root,
                               Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.scatter_list(in, out, root); });
}
WorkPtr BlockCollectives::scatter_async(std::span<const ConstBuffer> in,
                                        Buffer out,
                                        Rank root,
                                        Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.scatter_list(in, out, root); });
}
void BlockCollectives::gather(ConstBuffer in,
                              std::span<const Buffer> out,
                              Rank root,
                              Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.gather_list(in, out, root); });
}
WorkPtr BlockCollectives::gather_async(ConstBuffer in,
                                       std::span<const Buffer> out,
                                       Rank root,
                                       Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.gather_list(in, out, root); });
}
void BlockCollectives::all_gather(ConstBuffer in, std::span<const Buffer> out, Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.all_gather_list(in, out); });
}
WorkPtr BlockCollectives::all_gather_async(ConstBuffer in,
                                           std::span<const Buffer> out,
                                           Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.all_gather_list(in, out); });
}
void BlockCollectives::reduce_scatter(std::span<const ConstBuffer> in,
                                      Buffer out,
                                      ReduceOp op,
                                      Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.reduce_scatter_list(in, out, op); });
}
WorkPtr BlockCollectives::reduce_scatter_async(std::span<const ConstBuffer> in,
                                               Buffer out,
                                               ReduceOp op,
                                               Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.reduce_scatter_list(in, out, op); });
}
void BlockCollectives::all_to_all(std::span<const ConstBuffer> in,
                                  std::span<const Buffer> out,
                                  Timeout timeout) {
  state_.run(timeout, [&](Call& call) { call.all_to_all_list(in, out); });
}
WorkPtr BlockCollectives::all_to_all_async(std::span<const ConstBuffer> in,
                                           std::span<const Buffer> out,
                                           Timeout timeout) {
  return state_.start(timeout, [&](Call& call) { call.all_to_all_list(in, out); });
}

}  // namespace peal
