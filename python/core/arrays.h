// Memory of Python's objects as peal's buffers: NumPy arrays, torch tensors, whatever has the
// buffer protocol or DLPack.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "peal/group/buffer.h"

namespace peal::python {

/// An object whose memory an operation uses, and which lives as long as this. Made and destroyed
/// with the GIL held.
class Array {
 public:
  enum class Use : unsigned char { kRead, kWrite };

  /// Errors: usage (no array, not contiguous in row-major order, read-only where it is to be
  /// written), unsupported (not on the CPU, a type that is none of DType, another byte order).
  Array(pybind11::object object, Use use);
  ~Array();
  Array(Array&& other) noexcept;
  Array& operator=(Array&&) = delete;

  Buffer buffer() const { return buffer_; }

 private:
  Array() = default;  // whose destructor runs where the rest of a constructor throws
  bool take_buffer(const pybind11::object& object, Use use);
  bool take_dlpack(const pybind11::object& object);

  pybind11::object keeper_;  // a DLPack capsule
  Py_buffer view_ = {};      // its obj is null where there is none
  Buffer buffer_;
};

/// What an argument that takes one array or several was given.
struct Arrays {
  /// A list or tuple is a list, anything else one array. Errors: as Array.
  Arrays(const pybind11::object& objects, Array::Use use);

  bool is_list;
  std::vector<Array> all;

  const Array& one() const { return all.front(); }
  std::vector<Buffer> buffers() const;
  std::vector<ConstBuffer> const_buffers() const;
};

}  // namespace peal::python
