// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/names.h"

#include "base/decimal.h"

namespace lamina::ingest::nsys {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes "KEY = VALUE" from the front of `rest`, the value ending at the next
// ", " outside brackets.
bool TakeField(std::string_view& rest, std::string_view key,
               std::string_view& value) {
  if (!rest.starts_with(key)) return false;
  size_t pos = key.size();
  int depth = 0;
  while (pos < rest.size()) {
    if (rest[pos] == '[') ++depth;
    if (rest[pos] == ']') --depth;
    if (depth <= 0 && rest.substr(pos).starts_with(", ")) break;
    ++pos;
  }
  value = rest.substr(key.size(), pos - key.size());
  rest.remove_prefix(pos);
  return true;
}

// Whether a text is a list of lists of integers, as a Kineto file has it.
bool IsListOfSizes(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') ++depth;
    if (c == ']' && --depth == 0 && i + 1 != text.size()) return false;
    if (!IsDigit(c) &&
        std::string_view("[], -").find(c) == std::string_view::npos)
      return false;
  }
  return depth == 0;
}

}  // namespace

std::string_view PlainApiName(std::string_view name) {
  while (true) {
    if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
      name.remove_suffix(5);
      continue;
    }
    size_t digits = name.size();
    while (digits > 0 && IsDigit(name[digits - 1])) --digits;
    if (digits == name.size() || digits < 3 ||
        name.substr(digits - 2, 2) != "_v")
      return name;
    name = name.substr(0, digits - 2);
  }
}

bool IsDriverCall(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' &&
         name[2] <= 'Z';
}

bool ParseOpText(std::string_view text, OpText& op) {
  op = OpText();
  size_t end = text.find(", seq = ");
  if (end == std::string_view::npos) end = text.find(", op_id = ");
  if (end == std::string_view::npos) end = text.find(", sizes = [");
  op.name = text.substr(0, end);
  bool is_op = op.name.starts_with("aten::");
  if (end == std::string_view::npos) return is_op;
  std::string_view rest = text.substr(end);
  std::string_view value;
  if (TakeField(rest, ", seq = ", value))
    op.sequence = ParseInt(value).value_or(trace::kNoInt);
  if (TakeField(rest, ", op_id = ", value)) {
    op.op_id = ParseInt(value).value_or(trace::kNoInt);
    is_op = is_op || op.op_id != trace::kNoInt;
  }
  if (TakeField(rest, ", sizes = ", value) && IsListOfSizes(value))
    op.sizes = value;
  // Some other text with commas in it.
  if (!is_op) op = OpText();
  return is_op;
}

std::string CopyDirection(std::string_view entry) {
  constexpr std::string_view kPrefix = "CUDA_MEMCPY_KIND_";
  if (!entry.starts_with(kPrefix)) return std::string(entry);
  std::string_view rest = entry.substr(kPrefix.size());
  std::string out;
  if (rest.starts_with("UVM_")) {
    out = "Unified ";
    rest.remove_prefix(4);
  }
  if (rest.size() == 4 && rest.substr(1, 2) == "TO")
    return out + rest[0] + "to" + rest[3];
  return std::string(entry);
}

}  // namespace lamina::ingest::nsys
