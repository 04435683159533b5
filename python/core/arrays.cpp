#include "python/core/arrays.h"

#include <dlpack/dlpack.h>

#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "peal/base/error.h"

namespace peal::python {
namespace {

namespace py = pybind11;

std::string type_name(const py::object& object) {
  return py::type::of(object).attr("__name__").cast<std::string>();
}

[[noreturn]] void refuse(ErrorKind kind, const py::object& object, const std::string& why) {
  throw Error(kind, "an object of type " + type_name(object) + " " + why);
}

/// For a format of Python's struct module, in this machine's byte order.
std::optional<DType> dtype_of_format(std::string format, Py_ssize_t size) {
  static_assert(std::endian::native == std::endian::little);
  if (!format.empty() && std::string("@=<").find(format.front()) != std::string::npos) {
    format.erase(0, 1);
  }
  if (format == "?") return DType::kBool;
  if (format == "e") return DType::kF16;
  if (format == "f") return DType::kF32;
  if (format == "d") return DType::kF64;
  if (format == "Zf") return DType::kC64;
  if (format == "Zd") return DType::kC128;
  if (format == "B") return DType::kU8;
  if (format.size() == 1 && std::string("bhilqn").find(format) != std::string::npos) {
    switch (size) {
      case 1:
        return DType::kI8;
      case 2:
        return DType::kI16;
      case 4:
        return DType::kI32;
      case 8:
        return DType::kI64;
      default:
        break;
    }
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_dlpack(const DLDataType& type) {
  constexpr std::uint8_t kBoolCode = 6;  // DLPack 0.8
  if (type.lanes != 1) return std::nullopt;
  const auto is = [&](std::uint8_t code, std::uint8_t bits) {
    return type.code == code && type.bits == bits;
  };
  if (is(kBoolCode, 8)) return DType::kBool;
  if (is(kDLUInt, 8)) return DType::kU8;
  if (is(kDLInt, 8)) return DType::kI8;
  if (is(kDLInt, 16)) return DType::kI16;
  if (is(kDLInt, 32)) return DType::kI32;
  if (is(kDLInt, 64)) return DType::kI64;
  if (is(kDLFloat, 16)) return DType::kF16;
  if (is(kDLBfloat, 16)) return DType::kBF16;
  if (is(kDLFloat, 32)) return DType::kF32;
  if (is(kDLFloat, 64)) return DType::kF64;
  if (is(kDLComplex, 64)) return DType::kC64;
  if (is(kDLComplex, 128)) return DType::kC128;
  return std::nullopt;
}

std::int64_t elements_of(const DLTensor& tensor) {
  std::int64_t count = 1;
  for (int d = 0; d < tensor.ndim; ++d) count *= tensor.shape[d];
  return count;
}

bool is_row_major(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t stride = 1;
  for (int d = tensor.ndim - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return elements_of(tensor) == 0;
    stride *= tensor.shape[d];
  }
  return true;
}

constexpr const char* kContiguous =
    "is not contiguous in row-major order: pass a contiguous copy, for example "
    "numpy.ascontiguousarray(x) or x.contiguous()";

bool has_dlpack(const py::object& object) {
  return py::hasattr(object, "__dlpack__") && py::hasattr(object, "__dlpack_device__");
}

bool can_be_read(const py::object& object) {
  Py_buffer view = {};
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return false;
  }
  PyBuffer_Release(&view);
  return true;
}

/// Rejects elements that the protocols cannot describe, such as NumPy's datetime64.
[[noreturn]] void refuse_access(const py::object& object, const py::error_already_set& why) {
  const std::string type = py::hasattr(object, "dtype")
                               ? " of " + py::str(object.attr("dtype")).cast<std::string>()
                               : "";
  refuse(
      ErrorKind::kUnsupported,
      object,
      "gives no access to its elements" + type + ": " + why.what() +
          ". peal's types are bool, uint8, int8 to int64, float16 to float64, bfloat16, complex64 "
          "and complex128");
}

}  // namespace

Array::Array(py::object object, Use use) : Array() {
  if (take_buffer(object, use) || take_dlpack(object)) return;
  refuse(ErrorKind::kUsage,
         object,
         "is not an array: it has neither the buffer protocol nor DLPack. Convert it, for example "
         "with numpy.array; a list means one array for each item");
}

Array::Array(Array&& other) noexcept
    : keeper_(std::move(other.keeper_)),
      view_(std::exchange(other.view_, {})),
      buffer_(other.buffer_) {}

Array::~Array() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

bool Array::take_buffer(const py::object& object, Use use) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  const int wanted = PyBUF_FORMAT | PyBUF_STRIDES | (use == Use::kWrite ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view_, wanted) != 0) {
    const py::error_already_set why;
    view_ = {};
    if (use == Use::kRead && has_dlpack(object)) return false;
    if (use == Use::kWrite && can_be_read(object)) {
      refuse(ErrorKind::kUsage, object, "cannot be written: " + std::string(why.what()));
    }
    refuse_access(object, why);
  }
  if (PyBuffer_IsContiguous(&view_, 'C') == 0) refuse(ErrorKind::kUsage, object, kContiguous);
  const std::string format = view_.format == nullptr ? "B" : view_.format;
  const auto dtype = dtype_of_format(format, view_.itemsize);
  if (!dtype) {
    refuse(ErrorKind::kUnsupported,
           object,
           "has elements of the format \"" + format + "\", which peal does not support");
  }
  const auto count = view_.itemsize > 0 ? view_.len / view_.itemsize : 0;
  buffer_ = {view_.buf, Elements(count), *dtype};
  return true;
}

bool Array::take_dlpack(const py::object& object) {
  if (!has_dlpack(object)) return false;
  const auto device = object.attr("__dlpack_device__")().cast<py::tuple>();
  if (device[0].cast<int>() != kDLCPU) {
    refuse(ErrorKind::kUnsupported, object, "is not on the CPU: copy it there first");
  }
  try {
    keeper_ = object.attr("__dlpack__")();
  } catch (const py::error_already_set& why) {
    if (!why.matches(PyExc_BufferError)) throw;
    refuse_access(object, why);
  }
  auto* const managed =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(keeper_.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  const DLTensor& tensor = managed->dl_tensor;
  if (!is_row_major(tensor)) refuse(ErrorKind::kUsage, object, kContiguous);
  const auto dtype = dtype_of_dlpack(tensor.dtype);
  if (!dtype)
    refuse(ErrorKind::kUnsupported, object, "has elements of a type that peal does not support");
  buffer_ = {static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
             Elements(elements_of(tensor)),
             *dtype};
  return true;
}

Arrays::Arrays(const py::object& objects, Array::Use use)
    : form(py::isinstance<py::list>(objects) || py::isinstance<py::tuple>(objects)
               ? BufferForm::kList
               : BufferForm::kOne) {
  if (form == BufferForm::kOne) {
    all.emplace_back(objects, use);
    return;
  }
  for (const py::handle object : objects) {
    all.emplace_back(py::reinterpret_borrow<py::object>(object), use);
  }
}

std::vector<Buffer> Arrays::buffers() const {
  std::vector<Buffer> list;
  list.reserve(all.size());
  for (const Array& array : all) list.push_back(array.buffer());
  return list;
}

std::vector<ConstBuffer> Arrays::const_buffers() const {
  std::vector<ConstBuffer> list;
  list.reserve(all.size());
  for (const Array& array : all) list.emplace_back(array.buffer());
  return list;
}

}  // namespace peal::python
