#include "python/common/errors.h"

#include <exception>
#include <string>

#include "python/common/gil.h"

namespace peal::python {
namespace {

const char* error_module = nullptr;
const char* error_name = nullptr;

void translate(std::exception_ptr caught) {
  if (!caught) return;
  try {
    std::rethrow_exception(caught);
  } catch (const Error& error) {
    call_unless_ended([&] {
      const pybind11::object value = error_to_python(error);
      PyErr_SetObject(pybind11::type::of(value).ptr(), value.ptr());
    });
  }
}

}  // namespace

pybind11::object error_to_python(const Error& error) {
  return pybind11::module_::import(error_module)
      .attr(error_name)(std::string(error.message()), std::string(name_of(error.kind())));
}

void translate_errors_to(const char* module, const char* name) {
  error_module = module;
  error_name = name;
  pybind11::register_exception_translator(translate);
}

}  // namespace peal::python
