// peal's gradient reducer for modules of Python: what peal.DistributedDataParallel calls.
#pragma once

#include <pybind11/pybind11.h>

namespace peal::python {

/// Adds the class `Reducer` to the module.
void bind_reducer(pybind11::module_& module);

}  // namespace peal::python
