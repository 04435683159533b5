// The stack machine that a pickle is a program for, restricted to data. Used by pickle.cpp.
// Source: Python's Lib/pickletools.py, protocols 2 to 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace peal::train {

/// A value of a pickle. Values belong to the machine, and may contain themselves.
struct PickleValue {
  enum class Kind : unsigned char {
    kOpaque,   // none of the others: None, floats, objects of other classes
    kNumber,   // integers and booleans
    kText,     // strings
    kList,     // also tuples: their items
    kDict,     // its keys and values by turns
    kGlobal,   // a class or function: "torch FloatStorage"
    kStorage,  // items: the tuple that names it
    kTensor,   // items: storage, offset, shape, strides, ...; text: the function that makes it
  };

  Kind kind = Kind::kOpaque;
  std::int64_t number = 0;
  std::string text = {};
  std::vector<const PickleValue*> items = {};
};

class PickleMachine final {
 public:
  /// Borrows the bytes.
  explicit PickleMachine(std::string_view bytes) : bytes_(bytes) {}

  /// Runs the program. The result is valid as long as the machine.
  /// Errors: mismatch (an unknown or impossible operation, the end of the bytes, too many values).
  const PickleValue& run();

 private:
  using Kind = PickleValue::Kind;

  /// Returns whether the operation exists.
  bool run_one(unsigned char operation);
  bool push_constant(unsigned char operation);
  bool build_container(unsigned char operation);
  bool use_memo(unsigned char operation);
  bool call(unsigned char operation);

  [[noreturn]] void refuse(const std::string& what) const;
  std::string_view take(std::uint64_t count);
  std::uint64_t take_number(std::size_t bytes);
  std::string_view take_line();

  PickleValue& push(Kind kind);
  void push_text(std::uint64_t size);
  void push_integer(std::size_t bytes);
  PickleValue& pop();
  PickleValue& top();
  /// Removes the last mark and all values above it, and returns the values.
  std::vector<const PickleValue*> pop_to_mark();
  void push_list(std::vector<const PickleValue*> items);
  std::vector<const PickleValue*> pop_some(std::size_t count);
  void extend(Kind kind, const std::vector<const PickleValue*>& items);
  void reduce();

  std::string_view bytes_;
  std::size_t next_ = 0;
  std::deque<PickleValue> values_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

}  // namespace peal::train
