// What an operation on a tensor needs: its name, its request and its memory. Used by start.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "peal/named/named_operations.h"
#include "peal/train/horovod/operation_options.h"
#include "peal/train/horovod/pending.h"

namespace peal::hvd {

/// How the tensors of a call are given. The names of members of a group have an index.
enum class Form : std::uint8_t { kOne, kGroup };
enum class InPlace : std::uint8_t { kNo, kYes };

using Submission = named::NamedOperations::Submission;

// ---- names

struct Name {
  std::string text;
  bool is_given;  // by the caller; otherwise the name is used once
};

/// "allreduce.<name>", "grouped_allreduce.<name>", "allreduce.noname.<n>".
Name full_name(named::Kind kind, Form form, const std::string& name, ProcessSetState& set);

void set_name(named::Request& request, Name name);
/// The names of the requests of a call: with form kGroup, the members of a group.
void set_names(std::vector<Submission>& submissions, Form form, Name name);

// ---- requests

named::Request request_of(named::Kind kind, const Tensor& tensor);
named::Request reduction_of(named::Kind kind,
                            const Tensor& tensor,
                            const ReductionOptions& options);

// ---- memory

/// A part whose operation works in place on `dense`.
Pending::Part part_in_place(const Tensor& tensor, InPlace in_place);
/// A part whose operation reads `input`. Errors: usage (a tensor without dimensions).
Pending::Part part_with_input(const Tensor& tensor, named::Kind kind);
/// A tensor on the CPU of the rows of all ranks; a row is as in `like`.
Tensor rows_like(const Tensor& like, std::int64_t rows);

/// For an operation in place on the part.
named::Memory memory_in_place(const Pending::Part& part);
/// For an operation whose output has rows of all ranks. The part lives as long as the operation.
named::Memory gathering_memory(Pending::Part& part);
/// For an operation whose output is a part of the reduced input.
named::Memory scattering_memory(const Pending::Part& part);

}  // namespace peal::hvd
