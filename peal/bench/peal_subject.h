// peal, measured through its public API. Made by `work` (worker.h).
#pragma once

#include <memory>
#include <string>

#include "peal/bench/subject.h"

namespace peal::bench {

/// Joins the group that the environment names. Variants: "registered", memory of
/// ProcessGroup::allocate; "foreign", memory of this process. `transport`: the words of
/// transport_words (fleet.h), for the note.
/// Errors: those of init_process_group.
std::unique_ptr<Subject> make_peal_subject(const std::string& transport);

}  // namespace peal::bench
