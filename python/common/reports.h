// What peal reports, on stderr.
#pragma once

#include "peal/base/report.h"

namespace peal::python {

/// Writes warnings to stderr as "peal: ...", each text once in this process.
Report report_on_stderr();

}  // namespace peal::python
