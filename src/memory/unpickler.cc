// SPDX-License-Identifier: Apache-2.0
//
// Why this file is long: one switch over all opcodes that are allowed, and the
// names of those that are not.
#include "memory/unpickler.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <limits>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/opened.h"
#include "base/wide_id.h"
#include "memory/pickle_value.h"
#include "memory/record_maker.h"

namespace lamina::memory {
namespace {

constexpr size_t kBuffer = size_t{128} << 10;
constexpr size_t kMaxMarks = 64;
constexpr uint64_t kMaxString = uint64_t{64} << 20;
constexpr size_t kMaxInteger = 16;
constexpr size_t kMaxValues = (size_t{1} << 31) - 1;
constexpr size_t kMaxStrings = (size_t{1} << 31) - 1;
constexpr size_t kMaxLine = 4096;
constexpr size_t kMostText = 80;
// Items that wait for their list before it takes them in early. Python's
// pickler hands them over by the thousand, the one of PyTorch all at once.
constexpr size_t kMostWaiting = 1024;
// So many of them stay: the last may be the parts of one item that is made.
constexpr size_t kParts = 128;

constexpr std::string_view kHint =
    "write snapshots with torch.cuda.memory._dump_snapshot";

// The opcodes that could run code.
std::string_view CodeOpcode(uint8_t c) {
  switch (c) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 'b':
      return "BUILD";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    default:
      return {};
  }
}

class Unpickler {
 public:
  Unpickler(ByteSource* source, const ReadOptions& options)
      : source_(*source), options_(options), maker_(&heap_, &out_) {
    out_.file = source_.name();
    buffer_.resize(kBuffer);
  }

  Result<Snapshot> Read();

 private:
  // A fault of the file at the opcode that is being read.
  struct Fault {
    std::string what;
    std::string hint = std::string(kHint);
    bool cut = false;
  };

  // Makes `size` bytes readable at at_; false at the end of the file.
  bool Need(size_t size);
  uint64_t Number(size_t bytes);
  Error ErrorOf(uint64_t offset, const Fault& fault) const {
    return InputErrorAt(source_.name(), offset, fault.what, fault.hint);
  }
  // The steps of Run(): each returns false when it set fault_.
  bool Fails(std::string what) {
    fault_ = {std::move(what)};
    return false;
  }
  bool CutOff();
  bool Step(uint8_t op);
  bool Text(size_t size_bytes);
  bool TextOf(std::string_view bytes);
  bool Line(std::string_view* line);
  bool Integer(uint64_t bytes);
  bool DecimalInteger(bool is_long);
  bool Pop(Value* value);
  bool PopMark(size_t* from);
  // The list below the last mark takes in what waits for it, but the last few,
  // and the other way round.
  void TakeEarly();
  bool PutBack();
  bool Take(size_t count, Value* values);
  bool PushTuple(size_t from);
  // The container below what stands from `from` on; it must be open.
  bool Target(Kind kind, size_t from, Value* container);
  bool AddItems(Value list, size_t from);
  bool SetItems(Value dict, size_t from);
  bool Remember(uint64_t index);
  bool Recall(uint64_t index);
  void Push(Value value) { stack_.push_back(value); }
  bool Refuse(uint8_t op);
  Result<Snapshot> Finish();
  Result<Value> Salvage();

  ByteSource& source_;
  const ReadOptions& options_;
  Snapshot out_;
  Heap heap_;
  RecordMaker maker_;

  std::vector<char> buffer_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint64_t offset_ = 0;  // of end_
  bool no_more_ = false;
  std::optional<Error> read_error_;

  uint64_t op_offset_ = 0;
  PodVector<Value> stack_;
  struct Mark {
    size_t at;           // in stack_
    size_t taken = 0;    // items behind it that are in the list already
    bool whole = false;  // no item is taken early
  };
  std::vector<Mark> marks_;
  PodVector<Value> memo_;
  uint64_t memoized_ = 0;
  Fault fault_;
  bool stopped_ = false;
  uint64_t next_progress_ = 0;
};

bool Unpickler::Need(size_t size) {
  while (static_cast<size_t>(end_ - at_) < size) {
    if (no_more_) return false;
    const auto left = static_cast<size_t>(end_ - at_);
    if (left > 0) std::memmove(buffer_.data(), at_, left);
    // A long text: the buffer grows with the bytes that are really there.
    if (left == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const auto got = source_.Read(buffer_.data() + left, buffer_.size() - left);
    at_ = buffer_.data();
    end_ = at_ + left;
    if (!got) {
      read_error_ = got.error();
      no_more_ = true;
      return false;
    }
    if (*got == 0) {
      no_more_ = true;
      continue;
    }
    end_ += *got;
    offset_ += *got;
    if (options_.progress && offset_ >= next_progress_) {
      options_.progress(source_.stored_position(), source_.stored_size());
      next_progress_ = offset_ + (uint64_t{1} << 20);
    }
  }
  return true;
}

// Little endian; the bytes must be there.
uint64_t Unpickler::Number(size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, at_, bytes);
  static_assert(std::endian::native == std::endian::little);
  at_ += bytes;
  return value;
}

bool Unpickler::CutOff() {
  fault_ = {fmt::format("cut off: no STOP; {} events before it were read",
                        maker_.events()),
            "copy the file again, or read what is whole with --salvage", true};
  if (const auto damage = source_.damage()) fault_.what += "; " + damage->what;
  return false;
}

bool Unpickler::Line(std::string_view* line) {
  for (size_t seen = 0;;) {
    const auto size = static_cast<size_t>(end_ - at_);
    const void* const found =
        size > seen ? std::memchr(at_ + seen, '\n', size - seen) : nullptr;
    if (found != nullptr) {
      const char* const stop = static_cast<const char*>(found);
      *line = {at_, static_cast<size_t>(stop - at_)};
      at_ = stop + 1;
      return true;
    }
    if (size > kMaxLine) return Fails("line without an end");
    seen = size;
    if (!Need(size + 1)) return CutOff();
  }
}

bool Unpickler::TextOf(std::string_view bytes) {
  StringId id;
  if (IsValidUtf8(bytes)) {
    id = out_.strings.Intern(bytes);
  } else {
    out_.Count("bad_text", op_offset_);
    id = out_.strings.Intern(RepairUtf8(bytes));
  }
  if (out_.strings.size() > kMaxStrings)
    return Fails("too many distinct texts");
  Push(Value(Kind::kText, id.value));
  return true;
}

bool Unpickler::Text(size_t size_bytes) {
  if (!Need(size_bytes)) return CutOff();
  const uint64_t size = Number(size_bytes);
  if (size > kMaxString) return Fails(fmt::format("string of {} bytes", size));
  if (!Need(size)) return CutOff();
  const std::string_view bytes(at_, size);
  at_ += size;
  return TextOf(bytes);
}

bool Unpickler::Integer(uint64_t bytes) {
  if (bytes > kMaxInteger)
    return Fails(fmt::format("integer of {} bytes", bytes));
  if (!Need(bytes)) return CutOff();
  unsigned char raw[kMaxInteger];
  const bool negative = bytes > 0 && (at_[bytes - 1] & 0x80) != 0;
  std::memset(raw, negative ? 0xFF : 0, sizeof(raw));
  std::memcpy(raw, at_, bytes);
  at_ += bytes;
  int64_t low = 0;
  int64_t high = 0;
  std::memcpy(&low, raw, 8);
  std::memcpy(&high, raw + 8, 8);
  if (high == 0 && low < 0) {
    // Addresses of some devices lie there; no other number of a snapshot does.
    out_.Count("wide_address", op_offset_);
    low &= std::numeric_limits<int64_t>::max();
  } else if (high != (low < 0 ? -1 : 0)) {
    out_.Count("big_int", op_offset_);
    low = negative ? std::numeric_limits<int64_t>::min()
                   : std::numeric_limits<int64_t>::max();
  }
  Push(heap_.MakeInt(low));
  return true;
}

bool Unpickler::DecimalInteger(bool is_long) {
  std::string_view line;
  if (!Line(&line)) return false;
  if (!is_long && (line == "00" || line == "01")) {
    Push(Value(Kind::kBool, line == "01"));
    return true;
  }
  if (is_long && line.ends_with('L')) line.remove_suffix(1);
  auto value = ParseInt(line);
  if (!value) {
    value = ParseWideId(line);
    if (value) {
      out_.Count("wide_address", op_offset_);
      *value &= std::numeric_limits<int64_t>::max();
    }
  }
  if (!value) {
    return Fails("expected an integer, found '" +
                 EscapeTerminal(Shorten(line, kMostText)) + "'");
  }
  Push(heap_.MakeInt(*value));
  return true;
}

bool Unpickler::Pop(Value* value) {
  const size_t low = marks_.empty() ? 0 : marks_.back().at;
  if (stack_.size() <= low && !PutBack()) return false;
  if (stack_.size() <= low) return Fails("stack is empty");
  *value = stack_.back();
  stack_.pop_back();
  return true;
}

bool Unpickler::PopMark(size_t* from) {
  if (marks_.empty()) return Fails("no mark");
  if (!PutBack()) return false;
  *from = marks_.back().at;
  marks_.pop_back();
  return true;
}

void Unpickler::TakeEarly() {
  if (marks_.empty()) return;
  Mark& mark = marks_.back();
  if (stack_.size() - mark.at < kMostWaiting || mark.at == 0 || mark.whole)
    return;
  const Value list = stack_[mark.at - 1];
  if (!list.Is(Kind::kList) || heap_.IsClosed(list)) return;
  const size_t end = stack_.size() - kParts;
  for (size_t i = mark.at; i < end; ++i) maker_.Consume(stack_[i], op_offset_);
  // It was among them, and is refused where it changes.
  if (heap_.IsClosed(list)) return;
  std::vector<Value>& items = heap_.Open(list);
  items.insert(items.end(), stack_.begin() + mark.at, stack_.begin() + end);
  mark.taken += end - mark.at;
  std::copy(stack_.begin() + end, stack_.end(), stack_.begin() + mark.at);
  stack_.resize(mark.at + kParts);
}

bool Unpickler::PutBack() {
  if (marks_.empty() || marks_.back().taken == 0) return true;
  Mark& mark = marks_.back();
  const Value list = stack_[mark.at - 1];
  if (heap_.IsClosed(list))
    return Fails("a list changes after it was used, or holds itself");
  std::vector<Value>& items = heap_.Open(list);
  const auto taken = items.end() - static_cast<ptrdiff_t>(mark.taken);
  const size_t rest = stack_.size();
  stack_.resize(rest + mark.taken);
  std::copy_backward(stack_.begin() + mark.at, stack_.begin() + rest,
                     stack_.end());
  std::copy(taken, items.end(), stack_.begin() + mark.at);
  items.erase(taken, items.end());
  mark.taken = 0;
  mark.whole = true;
  return true;
}

bool Unpickler::PushTuple(size_t from) {
  for (size_t i = from; i < stack_.size(); ++i)
    maker_.Consume(stack_[i], op_offset_);
  const Value tuple =
      heap_.MakeTuple(stack_.data() + from, stack_.size() - from);
  stack_.resize(from);
  Push(tuple);
  return true;
}

bool Unpickler::Take(size_t count, Value* values) {
  for (size_t i = count; i-- > 0;) {
    if (!Pop(&values[i])) return false;
  }
  return true;
}

bool Unpickler::Target(Kind kind, size_t from, Value* container) {
  const std::string noun = kind == Kind::kList ? "list" : "dict";
  if (from == 0 || (!marks_.empty() && marks_.back().at >= from) ||
      !stack_[from - 1].Is(kind))
    return Fails("no " + noun + " on the stack");
  *container = stack_[from - 1];
  if (heap_.IsClosed(*container))
    return Fails("a " + noun + " changes after it was used, or holds itself");
  return true;
}

bool Unpickler::AddItems(Value list, size_t from) {
  if (from == stack_.size()) return true;
  for (const Mark& mark : marks_) {
    if (mark.taken > 0 && stack_[mark.at - 1].payload() == list.payload())
      return Fails("a list changes while it is filled");
  }
  for (size_t i = from; i < stack_.size(); ++i)
    maker_.Consume(stack_[i], op_offset_);
  // It may have been among what it took in.
  if (heap_.IsClosed(list)) return Fails("a list holds itself");
  std::vector<Value>& items = heap_.Open(list);
  items.insert(items.end(), stack_.begin() + from, stack_.end());
  stack_.resize(from);
  return true;
}

bool Unpickler::SetItems(Value dict, size_t from) {
  const size_t count = stack_.size() - from;
  if (count % 2 != 0) return Fails("odd number of keys and values");
  if (count == 0) return true;
  for (size_t i = from; i < stack_.size(); i += 2) {
    if (stack_[i].IsContainer())
      return Fails("key of type " +
                   std::string(stack_[i].Is(Kind::kList) ? "list" : "dict"));
    maker_.Consume(stack_[i + 1], op_offset_);
  }
  if (heap_.IsClosed(dict)) return Fails("a dict holds itself");
  std::vector<Value>& items = heap_.Open(dict);
  items.insert(items.end(), stack_.begin() + from, stack_.end());
  stack_.resize(from);
  return true;
}

bool Unpickler::Remember(uint64_t index) {
  if (stack_.empty()) return Fails("nothing to remember");
  if (index >= memo_.size()) {
    if (index > 2 * (memoized_ + 1'000'000))
      return Fails(fmt::format("memo {} is out of range", index));
    memo_.resize(index + 1, Value::Unset());
  }
  if (memo_[index].unset()) ++memoized_;
  memo_[index] = stack_.back();
  return true;
}

bool Unpickler::Recall(uint64_t index) {
  if (index >= memo_.size() || memo_[index].unset())
    return Fails(fmt::format("memo {} is not set", index));
  Push(memo_[index]);
  return true;
}

bool Unpickler::Refuse(uint8_t op) {
  std::string name(CodeOpcode(op));
  if (name.empty()) return Fails(fmt::format("unknown opcode 0x{:02x}", op));
  if (op == 'c') {
    // What it asks for, when that is still there.
    std::string_view line;
    std::string module;
    if (Line(&line)) {
      module = Shorten(line, kMostText);
      if (Line(&line)) {
        name += " " + EscapeTerminal(module) + "." +
                EscapeTerminal(Shorten(line, kMostText));
      }
    }
  }
  fault_ = {"opcode " + name +
                " could run code; a snapshot needs none: the file is no "
                "memory snapshot or is hostile",
            std::string(kHint)};
  return false;
}

// One opcode; at_ is behind it.
bool Unpickler::Step(uint8_t op) {
  Value values[3];
  size_t from = 0;
  Value container;
  std::string_view line;
  switch (op) {
    case 0x80: {  // PROTO
      if (!Need(1)) return CutOff();
      const uint64_t protocol = Number(1);
      if (protocol < 2 || protocol > 5)
        return Fails(fmt::format("protocol {}", protocol));
      out_.protocol = static_cast<int>(protocol);
      return true;
    }
    case 0x95:  // FRAME
      if (!Need(8)) return CutOff();
      at_ += 8;
      return true;
    case '.':  // STOP
      if (stack_.size() != 1 || !marks_.empty())
        return Fails("stack not empty at STOP");
      stopped_ = true;
      return true;
    case '(':  // MARK
      if (marks_.size() >= kMaxMarks)
        return Fails(fmt::format("nested deeper than {}", kMaxMarks));
      TakeEarly();
      marks_.push_back({stack_.size()});
      return true;
    case '0':  // POP
      if (!PutBack()) return false;
      if (!stack_.empty() &&
          (marks_.empty() || marks_.back().at < stack_.size())) {
        stack_.pop_back();
        return true;
      }
      if (!PopMark(&from)) return false;
      stack_.resize(from);
      return true;
    case '1':  // POP_MARK
      if (!PopMark(&from)) return false;
      stack_.resize(from);
      return true;
    case '2':  // DUP
      if (stack_.empty()) return Fails("stack is empty");
      Push(stack_.back());
      return true;
    case 'N':
      Push(Value());
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      Push(Value(Kind::kBool, op == 0x88));
      return true;
    case 'J': {  // BININT
      if (!Need(4)) return CutOff();
      Push(heap_.MakeInt(static_cast<int32_t>(Number(4))));
      return true;
    }
    case 'K':  // BININT1
      if (!Need(1)) return CutOff();
      Push(heap_.MakeInt(static_cast<int64_t>(Number(1))));
      return true;
    case 'M':  // BININT2
      if (!Need(2)) return CutOff();
      Push(heap_.MakeInt(static_cast<int64_t>(Number(2))));
      return true;
    case 0x8a:  // LONG1
      if (!Need(1)) return CutOff();
      return Integer(Number(1));
    case 0x8b:  // LONG4
      if (!Need(4)) return CutOff();
      return Integer(Number(4));
    case 'G': {  // BINFLOAT, big endian
      if (!Need(8)) return CutOff();
      const uint64_t bits = __builtin_bswap64(Number(8));
      Push(heap_.MakeFloat(std::bit_cast<double>(bits)));
      return true;
    }
    case 'I':  // INT
      return DecimalInteger(false);
    case 'L':  // LONG
      return DecimalInteger(true);
    case 'F': {  // FLOAT
      if (!Line(&line)) return false;
      const auto value = ParseDouble(line);
      if (!value) return Fails("expected a number");
      Push(heap_.MakeFloat(*value));
      return true;
    }
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
      return Text(1);
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
      return Text(4);
    case 0x8d:  // BINUNICODE8
    case 0x8e:  // BINBYTES8
      return Text(8);
    case 'V':  // UNICODE: its escapes stay as they are
      return Line(&line) && TextOf(line);
    case '}':
      Push(heap_.MakeContainer(Kind::kDict));
      return true;
    case ']':
      Push(heap_.MakeContainer(Kind::kList));
      return true;
    case ')':  // EMPTY_TUPLE
      return PushTuple(stack_.size());
    case 0x85:  // TUPLE1, TUPLE2, TUPLE3
    case 0x86:
    case 0x87: {
      const size_t count = op - size_t{0x84};
      if (!Take(count, values)) return false;
      stack_.append(values, count);
      return PushTuple(stack_.size() - count);
    }
    case 't':  // TUPLE
      return PopMark(&from) && PushTuple(from);
    case 'l': {  // LIST
      if (!PopMark(&from)) return false;
      const Value list = heap_.MakeContainer(Kind::kList);
      if (!AddItems(list, from)) return false;
      Push(list);
      return true;
    }
    case 'd': {  // DICT
      if (!PopMark(&from)) return false;
      const Value dict = heap_.MakeContainer(Kind::kDict);
      if (!SetItems(dict, from)) return false;
      Push(dict);
      return true;
    }
    case 'a':  // APPEND
      if (!Take(1, values)) return false;
      if (!Target(Kind::kList, stack_.size(), &container)) return false;
      Push(values[0]);
      return AddItems(container, stack_.size() - 1);
    case 'e':  // APPENDS
      if (marks_.empty()) return Fails("no mark");
      from = marks_.back().at;
      marks_.pop_back();
      return Target(Kind::kList, from, &container) && AddItems(container, from);
    case 's':  // SETITEM
      if (!Take(2, values)) return false;
      if (!Target(Kind::kDict, stack_.size(), &container)) return false;
      stack_.append(values, 2);
      return SetItems(container, stack_.size() - 2);
    case 'u':  // SETITEMS
      return PopMark(&from) && Target(Kind::kDict, from, &container) &&
             SetItems(container, from);
    case 0x94:  // MEMOIZE
      return Remember(memoized_);
    case 'q':  // BINPUT
      if (!Need(1)) return CutOff();
      return Remember(Number(1));
    case 'r':  // LONG_BINPUT
      if (!Need(4)) return CutOff();
      return Remember(Number(4));
    case 'h':  // BINGET
      if (!Need(1)) return CutOff();
      return Recall(Number(1));
    case 'j':  // LONG_BINGET
      if (!Need(4)) return CutOff();
      return Recall(Number(4));
    case 'p':    // PUT
    case 'g': {  // GET
      if (!Line(&line)) return false;
      const auto index = ParseInt(line);
      if (!index || *index < 0)
        return Fails("expected the number of a memo entry");
      return op == 'p' ? Remember(static_cast<uint64_t>(*index))
                       : Recall(static_cast<uint64_t>(*index));
    }
    default:
      return Refuse(op);
  }
}

// What is complete in a file that was cut off: lists that are open take in what
// follows them; a record that is still being filled is left out.
Result<Value> Unpickler::Salvage() {
  out_.Count("truncated", op_offset_);
  const auto is_open = [&](size_t at, Kind kind) {
    return stack_[at].Is(kind) && !heap_.IsClosed(stack_[at]);
  };
  // The topmost value may be a record that is being filled.
  if (stack_.size() > 1 && stack_.back().Is(Kind::kDict)) {
    stack_.pop_back();
    while (!marks_.empty() && marks_.back().at > stack_.size())
      marks_.pop_back();
  }
  while (stack_.size() > 1 || !marks_.empty()) {
    const bool marked = !marks_.empty() && marks_.back().at <= stack_.size();
    const size_t first = marked              ? marks_.back().at
                         : stack_.size() > 1 ? stack_.size() - 1
                                             : 0;
    if (!marks_.empty()) marks_.pop_back();
    if (first == 0) {
      stack_.resize(std::min<size_t>(stack_.size(), 1));
      continue;
    }
    if (is_open(first - 1, Kind::kList)) {
      AddItems(stack_[first - 1], first);
    } else if (is_open(first - 1, Kind::kDict)) {
      if (first > 1) {
        stack_.resize(first - 1);
        continue;
      }
      // A list of lists, in the place of a value.
      if ((stack_.size() - first) % 2 != 0) {
        if (stack_.size() - first >= 3 &&
            is_open(stack_.size() - 2, Kind::kList))
          AddItems(stack_[stack_.size() - 2], stack_.size() - 1);
        else
          stack_.pop_back();
      }
      SetItems(stack_[first - 1], first);
    } else if (first == 2 && stack_[1].Is(Kind::kText) &&
               is_open(0, Kind::kDict)) {
      SetItems(stack_[0], 1);
    }
    stack_.resize(std::min(stack_.size(), first));
  }
  if (stack_.empty()) return Fail(ErrorOf(op_offset_, fault_));
  return stack_.back();
}

Result<Snapshot> Unpickler::Finish() {
  Value root;
  if (stopped_) {
    root = stack_.back();
    // base64 leaves up to three zero bytes behind.
    uint64_t trailing = 0;
    bool zeros = true;
    const uint64_t stop = offset_ - static_cast<uint64_t>(end_ - at_);
    while (Need(1)) {
      const auto size = static_cast<size_t>(end_ - at_);
      zeros = zeros && std::all_of(at_, end_, [](char c) { return c == 0; });
      trailing += size;
      at_ = end_;
      if (trailing > 3 || !zeros) break;
    }
    if (trailing > 3 || !zeros) out_.Count("trailing_bytes", stop);
    out_.bytes = stop;
  } else {
    LAMINA_ASSIGN(root, Salvage());
    out_.bytes = offset_;
  }
  // The memo is not needed any more, and is large.
  memo_.Reset();
  LAMINA_TRY(maker_.Finish(root));
  return std::move(out_);
}

Result<Snapshot> Unpickler::Read() {
  while (!stopped_) {
    if (at_ == end_ && !Need(1)) {
      if (read_error_) return Fail(*read_error_);
      op_offset_ = offset_;
      CutOff();
      if (options_.salvage && offset_ > 0) return Finish();
      return Fail(ErrorOf(op_offset_, fault_));
    }
    op_offset_ = offset_ - static_cast<uint64_t>(end_ - at_);
    const auto op = static_cast<uint8_t>(*at_++);
    if (op_offset_ == 0 && op != 0x80) {
      return Fail(ErrorOf(
          0, {op == 'P' && Need(1) && *at_ == 'K'
                  ? "saved by torch.save, which is no memory snapshot"
                  : "no pickle of protocol 2 to 5, which a memory snapshot "
                    "is"}));
    }
    if (!Step(op)) {
      if (read_error_) return Fail(*read_error_);
      if (fault_.cut && options_.salvage) return Finish();
      return Fail(ErrorOf(op_offset_, fault_));
    }
    if (stack_.size() > kMaxValues)
      return Fail(ErrorOf(op_offset_, {"too many open values"}));
  }
  return Finish();
}

}  // namespace

bool LooksLikePickle(std::string_view head) {
  if (head.size() >= 2 && head[0] == '\x80') return true;
  if (head.starts_with("PK\x03\x04")) return true;
  // Protocol 0 and 1 of a dictionary or a list.
  return head.starts_with("(d") || head.starts_with("(l") ||
         head.starts_with("}q") || head.starts_with("]q");
}

Result<Snapshot> ReadSnapshot(ByteSource& source, const ReadOptions& options) {
  return Unpickler(&source, options).Read();
}

Result<Snapshot> ReadSnapshotFile(const std::string& path,
                                  const ReadOptions& options) {
  auto source = OpenByteSource(path);
  if (source) return ReadSnapshot(**source, options);
  Error error = source.error();
  char head[2] = {};
  if (std::FILE* const file =
          path == "-" ? nullptr
                      : std::fopen(NameToRead(path).text().c_str(), "rb")) {
    const size_t got = std::fread(head, 1, sizeof(head), file);
    std::fclose(file);
    if (got == 2 && head[0] == 'P' && head[1] == 'K') {
      error = InputErrorAt(path, 0,
                           "saved by torch.save, or no zip with one member: "
                           "no memory snapshot",
                           std::string(kHint));
    } else if (got == 0 && !error.offset) {
      error.offset = 0;
    }
  }
  if (error.file.empty()) error.file = path;
  return Fail(std::move(error));
}

}  // namespace lamina::memory
