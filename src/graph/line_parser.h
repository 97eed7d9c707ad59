// SPDX-License-Identifier: Apache-2.0
//
// Inside of the line parser: what bytes and words of a dump are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"

namespace lamina::graph {

// Between a value and its type.
inline constexpr std::string_view kColon = " : ";

// What a byte means to the scanner.
enum class Byte : uint8_t { kOther, kOpen, kClose, kQuote, kComma };

inline constexpr std::array<Byte, 256> kBytes = [] {
  std::array<Byte, 256> out{};
  for (const char c : {'(', '[', '{'})
    out[static_cast<uint8_t>(c)] = Byte::kOpen;
  for (const char c : {')', ']', '}'})
    out[static_cast<uint8_t>(c)] = Byte::kClose;
  for (const char c : {'\'', '"'}) out[static_cast<uint8_t>(c)] = Byte::kQuote;
  out[static_cast<uint8_t>(',')] = Byte::kComma;
  return out;
}();

inline Byte ByteOf(char c) { return kBytes[static_cast<uint8_t>(c)]; }

inline bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}
inline bool IsNameByte(char c) { return IsNameStart(c) || IsDigit(c); }
// Names of values are nearly free: dots, quotes and angle brackets occur.
inline bool IsValueNameByte(char c) {
  return static_cast<uint8_t>(c) > ' ' && ByteOf(c) != Byte::kOpen &&
         ByteOf(c) != Byte::kClose && c != ',' && c != '%' && c != '=' &&
         c != 0x7f;
}

// Past the string that begins at `pos`; the end of the text when it does not
// end.
size_t SkipQuoted(std::string_view text, size_t pos);

// Past the `<...>` that begins at `pos`, brackets counted; npos when it does
// not end.
size_t SkipAngles(std::string_view text, size_t pos);

// None, True, slice ...: words that name no value.
bool IsKeyword(std::string_view name);
bool IsNumber(std::string_view text);
// "cuda:0", "cpu"
bool IsDevice(std::string_view text);

// One line of a dump, taken apart without knowledge of other lines.
//
//   %x : 4x8 : torch.float32
//   %y = aten.cat.default(%x : 4x8 : torch.float32, [x, z], -1) : 8x8 : ...
//   output %y, None
//
// Where the operand list ends is found by bracket depth. Strings stand without
// quotes among the operands and may hold brackets and commas; when they upset
// the count, the list must end at the last but one " : ", since the result that
// follows holds exactly one. No step looks at a byte more than a fixed number
// of times, and nesting is walked with a stack of its own.

enum class NodeKind : uint8_t { kPlaceholder, kOp, kOutput, kWeight };

enum class OperandKind : uint8_t {
  kValue,    // `%name : shape : dtype`, or a bare name inside brackets
  kLiteral,  // number, True, None, torch.float16, cuda:0, 'quoted'
  kText,     // a string without quotes, or what has no other form
  kList,
  kTuple,
  kDict,
  kCall,     // slice(...), device(...)
  kKeyword,  // `dim = -1`: a container of the value; other dialects only
};

inline bool IsContainer(OperandKind kind) { return kind >= OperandKind::kList; }

// An operand entry; containers are followed by what is in them.
struct ParsedOperand {
  OperandKind kind = OperandKind::kLiteral;
  bool nested = false;
  uint32_t extent = 0;          // entries below a container
  std::string_view text;        // as written
  std::string_view name;        // kValue
  std::string_view annotation;  // "shape : dtype" of kValue; may be empty
};

struct ParsedLine {
  NodeKind kind = NodeKind::kOp;
  bool ambiguous = false;
  bool call_form = false;
  std::string_view text;
  std::string_view name;
  std::string_view target;
  // Normalised target; empty: that of `target`.
  std::string_view op;
  std::string_view result;
  std::vector<ParsedOperand> operands;
};

struct LineError {
  size_t column = 0;  // 0-based byte
  std::string what;
  std::string note;
};

// Reads a line without its line end into `out`, whose vector is reused. False:
// `error` says what was expected where.
bool ParseLine(std::string_view line, ParsedLine& out, LineError& error);

// Nesting of brackets beyond this is an error, in dumps of every dialect:
// walks over operands recurse.
inline constexpr size_t kMaxDepth = 1000;

}  // namespace lamina::graph
