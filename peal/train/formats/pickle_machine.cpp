#include "peal/train/formats/pickle_machine.h"

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::train {
namespace {

constexpr std::size_t kMostValues = 4'000'000;
// A short pickle can use a long value many times, so copied values have limits.
constexpr std::size_t kMostArguments = 16;
constexpr std::size_t kLongestGlobal = 200;

/// The names of the operations in pickletools, for those that are read.
enum Operation : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kFloat = 'G',
  kInt4 = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kNone = 'N',
  kPersistentId = 'Q',
  kReduce = 'R',
  kText4 = 'X',
  kText8 = 0x8d,
  kText1 = 0x8c,
  kBytes4 = 'B',
  kBytes1 = 'C',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kGet1 = 'h',
  kGet4 = 'j',
  kList = 'l',
  kPut1 = 'q',
  kPut4 = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProtocol = 0x80,
  kNewObject = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjectWithNames = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

/// Whether a call of this function makes a tensor of its arguments.
bool makes_tensor(std::string_view function) {
  return function == "torch._utils _rebuild_tensor_v2" ||
         function == "torch._utils _rebuild_tensor_v3";
}

}  // namespace

const PickleValue& PickleMachine::run() {
  while (true) {
    const auto operation = static_cast<unsigned char>(take(1)[0]);
    if (operation == kStop) return pop();
    if (!run_one(operation)) refuse(fmt::format("the unknown operation 0x{:02x}", operation));
  }
}

bool PickleMachine::run_one(unsigned char operation) {
  return push_constant(operation) || build_container(operation) || use_memo(operation) ||
         call(operation);
}

bool PickleMachine::push_constant(unsigned char operation) {
  switch (operation) {
    case kProtocol:
      if (take_number(1) > 5) refuse("a protocol newer than 5");
      return true;
    case kFrame:
      take(8);
      return true;
    case kNone:
      push(Kind::kOpaque);
      return true;
    case kTrue:
    case kFalse:
      push(Kind::kNumber).number = operation == kTrue;
      return true;
    case kInt1:
      push(Kind::kNumber).number = static_cast<std::int64_t>(take_number(1));
      return true;
    case kInt2:
      push(Kind::kNumber).number = static_cast<std::int64_t>(take_number(2));
      return true;
    case kInt4:
      push_integer(4);
      return true;
    case kLong1:
      push_integer(static_cast<std::size_t>(take_number(1)));
      return true;
    case kFloat:
      take(8);
      push(Kind::kOpaque);
      return true;
    case kText1:
      push_text(take_number(1));
      return true;
    case kText4:
      push_text(take_number(4));
      return true;
    case kText8:
      push_text(take_number(8));
      return true;
    case kBytes1:
      take(take_number(1));
      push(Kind::kOpaque);
      return true;
    case kBytes4:
      take(take_number(4));
      push(Kind::kOpaque);
      return true;
    default:
      return false;
  }
}

bool PickleMachine::build_container(unsigned char operation) {
  switch (operation) {
    case kMark:
      marks_.push_back(stack_.size());
      return true;
    case kPop:
      pop();
      return true;
    case kPopMark:
      pop_to_mark();
      return true;
    case kEmptyTuple:
    case kEmptyList:
      push(Kind::kList);
      return true;
    case kEmptyDict:
      push(Kind::kDict);
      return true;
    case kEmptySet:
      push(Kind::kOpaque);
      return true;
    case kFrozenSet:
      pop_to_mark();
      push(Kind::kOpaque);
      return true;
    case kAddItems:
      pop_to_mark();
      top();
      return true;
    case kTuple:
    case kList:
      push_list(pop_to_mark());
      return true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      push_list(pop_some(static_cast<std::size_t>(operation - kTuple1 + 1)));
      return true;
    case kDict: {
      auto items = pop_to_mark();
      push(Kind::kDict);
      extend(Kind::kDict, items);
      return true;
    }
    case kAppend:
      extend(Kind::kList, pop_some(1));
      return true;
    case kAppends:
      extend(Kind::kList, pop_to_mark());
      return true;
    case kSetItem:
      extend(Kind::kDict, pop_some(2));
      return true;
    case kSetItems:
      extend(Kind::kDict, pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool PickleMachine::use_memo(unsigned char operation) {
  switch (operation) {
    case kPut1:
      memo_[take_number(1)] = &top();
      return true;
    case kPut4:
      memo_[take_number(4)] = &top();
      return true;
    case kMemoize:
      memo_[memo_.size()] = &top();
      return true;
    case kGet1:
    case kGet4: {
      const auto found = memo_.find(take_number(operation == kGet1 ? 1 : 4));
      if (found == memo_.end()) refuse("a value that was not stored");
      stack_.push_back(found->second);
      if (stack_.size() > kMostValues) refuse("too many values");
      return true;
    }
    default:
      return false;
  }
}

bool PickleMachine::call(unsigned char operation) {
  switch (operation) {
    case kGlobal: {
      const std::string module(take_line());
      const std::string name(take_line());
      push(Kind::kGlobal).text = module + " " + name;
      return true;
    }
    case kStackGlobal: {
      const PickleValue& name = pop();
      const PickleValue& module = pop();
      if (name.text.size() + module.text.size() > kLongestGlobal) refuse("a name that is too long");
      push(Kind::kGlobal).text = module.text + " " + name.text;
      return true;
    }
    case kPersistentId: {
      PickleValue& id = pop();
      if (id.kind != Kind::kList || id.items.size() > kMostArguments) {
        refuse("a storage without a name");
      }
      push(Kind::kStorage).items = id.items;
      return true;
    }
    case kReduce:
      reduce();
      return true;
    case kNewObject:
      pop_some(2);
      push(Kind::kOpaque);
      return true;
    case kNewObjectWithNames:
      pop_some(3);
      push(Kind::kOpaque);
      return true;
    case kBuild:  // gives attributes to the object below, which are not read
      pop();
      top();
      return true;
    default:
      return false;
  }
}

/// Calls no function: the known ones make values of the machine.
void PickleMachine::reduce() {
  PickleValue& arguments = pop();
  const PickleValue& function = pop();
  if (arguments.kind != Kind::kList) refuse("a call without a tuple of arguments");
  const bool is_known = function.kind == Kind::kGlobal && arguments.items.size() <= kMostArguments;
  const std::string_view name = is_known ? std::string_view(function.text) : "";
  if (name == "collections OrderedDict" && arguments.items.empty()) {
    push(Kind::kDict);
  } else if (makes_tensor(name)) {
    PickleValue& tensor = push(Kind::kTensor);
    tensor.text = name;
    tensor.items = arguments.items;
  } else if (name == "torch._utils _rebuild_parameter" && !arguments.items.empty() &&
             arguments.items[0]->kind == Kind::kTensor) {
    PickleValue& parameter = push(Kind::kTensor);
    parameter.text = arguments.items[0]->text;
    parameter.items = arguments.items[0]->items;
  } else {
    push(Kind::kOpaque);
  }
}

void PickleMachine::refuse(const std::string& what) const {
  throw Error(ErrorKind::kMismatch, fmt::format("the pickle has {} before byte {}", what, next_));
}

std::string_view PickleMachine::take(std::uint64_t count) {
  if (count > bytes_.size() - next_) refuse("an unexpected end");
  const std::string_view taken = bytes_.substr(next_, static_cast<std::size_t>(count));
  next_ += taken.size();
  return taken;
}

std::uint64_t PickleMachine::take_number(std::size_t bytes) {
  const std::string_view raw = take(bytes);
  std::uint64_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(raw[i]);
  return number;
}

std::string_view PickleMachine::take_line() {
  const std::size_t end = bytes_.find('\n', next_);
  if (end == std::string_view::npos) refuse("a name without an end");
  const std::string_view line = take(end - next_);
  take(1);
  return line;
}

PickleValue& PickleMachine::push(Kind kind) {
  if (values_.size() == kMostValues) refuse("too many values");
  PickleValue& value = values_.emplace_back();
  value.kind = kind;
  stack_.push_back(&value);
  return value;
}

void PickleMachine::push_text(std::uint64_t size) { push(Kind::kText).text = take(size); }

/// A signed integer of `bytes` bytes. An integer beyond 64 bits is opaque.
void PickleMachine::push_integer(std::size_t bytes) {
  if (bytes > 8) {
    take(bytes);
    push(Kind::kOpaque);
    return;
  }
  std::uint64_t number = take_number(bytes);
  if (bytes > 0 && bytes < 8 && number >> (8 * bytes - 1) != 0) {
    number |= ~std::uint64_t{0} << (8 * bytes);  // extends the sign
  }
  push(Kind::kNumber).number = static_cast<std::int64_t>(number);
}

PickleValue& PickleMachine::pop() {
  PickleValue& value = top();
  stack_.pop_back();
  return value;
}

PickleValue& PickleMachine::top() {
  const std::size_t mark = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= mark) refuse("an operation without its value");
  return *stack_.back();
}

std::vector<const PickleValue*> PickleMachine::pop_to_mark() {
  if (marks_.empty()) refuse("an operation without its mark");
  const auto mark = static_cast<std::ptrdiff_t>(marks_.back());
  marks_.pop_back();
  std::vector<const PickleValue*> values(stack_.begin() + mark, stack_.end());
  stack_.resize(static_cast<std::size_t>(mark));
  return values;
}

std::vector<const PickleValue*> PickleMachine::pop_some(std::size_t count) {
  std::vector<const PickleValue*> values(count);
  for (std::size_t i = count; i-- > 0;) values[i] = &pop();
  return values;
}

void PickleMachine::push_list(std::vector<const PickleValue*> items) {
  push(Kind::kList).items = std::move(items);
}

/// Adds the items to the list or dict on the stack; an opaque object there stays as it is.
void PickleMachine::extend(Kind kind, const std::vector<const PickleValue*>& items) {
  PickleValue& container = top();
  if (container.kind == Kind::kOpaque) return;
  if (container.kind != kind) refuse("items for a value that is not their container");
  if (kind == Kind::kDict && items.size() % 2 != 0) refuse("a key without a value");
  container.items.insert(container.items.end(), items.begin(), items.end());
}

}  // namespace peal::train
