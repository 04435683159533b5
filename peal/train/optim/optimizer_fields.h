// The options and state fields of LibTorch's optimizers by name, since LibTorch has no list of
// them. Used by optimizer_state.cpp.
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

namespace peal::train {

/// T or const T is one of `Types`.
template <class T, class... Types>
concept OneOf = (std::same_as<std::remove_const_t<T>, Types> || ...);

// each_option calls visit(name, value) for each option; a value is a double or a bool.

template <class Visit>
void each_option(OneOf<torch::optim::SGDOptions> auto& options, Visit visit) {
  visit("lr", options.lr());
  visit("momentum", options.momentum());
  visit("dampening", options.dampening());
  visit("weight_decay", options.weight_decay());
  visit("nesterov", options.nesterov());
}

template <class Visit>
void each_option(OneOf<torch::optim::AdamOptions, torch::optim::AdamWOptions> auto& options,
                 Visit visit) {
  visit("lr", options.lr());
  visit("beta1", std::get<0>(options.betas()));
  visit("beta2", std::get<1>(options.betas()));
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("amsgrad", options.amsgrad());
}

template <class Visit>
void each_option(OneOf<torch::optim::AdagradOptions> auto& options, Visit visit) {
  visit("lr", options.lr());
  visit("lr_decay", options.lr_decay());
  visit("weight_decay", options.weight_decay());
  visit("initial_accumulator_value", options.initial_accumulator_value());
  visit("eps", options.eps());
}

template <class Visit>
void each_option(OneOf<torch::optim::RMSpropOptions> auto& options, Visit visit) {
  visit("lr", options.lr());
  visit("alpha", options.alpha());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("momentum", options.momentum());
  visit("centered", options.centered());
}

/// Whether every state has the field, or only with some options.
enum class Presence : unsigned char { kAlways, kByOption };

// each_field calls visit(name, value, presence) for each field; a value is a Tensor, which is
// undefined if absent, or an std::int64_t.

template <class Visit>
void each_field(OneOf<torch::optim::SGDParamState> auto& state, Visit visit) {
  visit("momentum_buffer", state.momentum_buffer(), Presence::kAlways);
}

template <class Visit>
void each_field(OneOf<torch::optim::AdamParamState, torch::optim::AdamWParamState> auto& state,
                Visit visit) {
  visit("step", state.step(), Presence::kAlways);
  visit("exp_avg", state.exp_avg(), Presence::kAlways);
  visit("exp_avg_sq", state.exp_avg_sq(), Presence::kAlways);
  visit("max_exp_avg_sq", state.max_exp_avg_sq(), Presence::kByOption);
}

template <class Visit>
void each_field(OneOf<torch::optim::AdagradParamState> auto& state, Visit visit) {
  visit("step", state.step(), Presence::kAlways);
  visit("sum", state.sum(), Presence::kAlways);
}

template <class Visit>
void each_field(OneOf<torch::optim::RMSpropParamState> auto& state, Visit visit) {
  visit("step", state.step(), Presence::kAlways);
  visit("square_avg", state.square_avg(), Presence::kAlways);
  visit("momentum_buffer", state.momentum_buffer(), Presence::kByOption);
  visit("grad_avg", state.grad_avg(), Presence::kByOption);
}

}  // namespace peal::train
