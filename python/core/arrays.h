// Memory of Python objects as peal buffers: NumPy arrays, torch tensors, and other objects with the
// buffer protocol or DLPack.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "peal/group/buffer.h"

namespace peal::python {

/// Keeps a Python object alive while an operation uses the object's memory. Constructed and
/// destroyed with the GIL held.
class Array {
 public:
  enum class Use : unsigned char { kRead, kWrite };

  /// Errors: usage (not an array, not contiguous in row-major order, read-only but used for
  ///   output), unsupported (not on the CPU, a type outside DType, another byte order).
  Array(pybind11::object object, Use use);
  ~Array();
  Array(Array&& other) noexcept;
  Array& operator=(Array&&) = delete;

  Buffer buffer() const { return buffer_; }

 private:
  Array() = default;  // delegated to, so that the destructor runs if the public constructor throws
  bool take_buffer(const pybind11::object& object, Use use);
  bool take_dlpack(const pybind11::object& object);

  pybind11::object keeper_;  // a DLPack capsule
  Py_buffer view_ = {};      // obj is null without a buffer
  Buffer buffer_;
};

/// The value of an argument that takes one array or several.
struct Arrays {
  /// A list or tuple means several arrays, any other object one array. Errors: as Array.
  Arrays(const pybind11::object& objects, Array::Use use);

  BufferForm form;
  std::vector<Array> all;

  const Array& one() const { return all.front(); }
  std::vector<Buffer> buffers() const;
  std::vector<ConstBuffer> const_buffers() const;
};

}  // namespace peal::python
