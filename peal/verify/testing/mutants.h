// Makes schedules with one small change each, from a part of a schedule.
#pragma once

#include <functional>
#include <string_view>

#include "peal/schedule/schedule.h"

namespace peal::verify {

/// Called after each change, before it is undone. Receives the name of the field or kind of step.
using Attempt = std::function<void(std::string_view what)>;

/// Changes each field of each step: a number by -1 and by +1, other fields to each other value.
void mutate_fields(schedule::Part&, const Attempt&);

/// Deletes each step.
void delete_steps(schedule::Part&, const Attempt&);

}  // namespace peal::verify
