// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/op_text.h"

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"

namespace lamina::ingest {

using trace::kNoInt;

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
    if (!IsDigit(c) && std::string_view("[], -").find(c) == text.npos)
      return false;
  }
  return depth == 0;
}

}  // namespace

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
    op.sequence = ParseInt(value).value_or(kNoInt);
  if (TakeField(rest, ", op_id = ", value)) {
    op.op_id = ParseInt(value).value_or(kNoInt);
    is_op = is_op || op.op_id != kNoInt;
  }
  if (TakeField(rest, ", sizes = ", value) && IsListOfSizes(value))
    op.sizes = value;
  // Some other text with commas in it.
  if (!is_op) op = OpText();
  return is_op;
}

void AddRange(trace::LocalNames& names, trace::Segment& segment,
              int64_t start_ns, int64_t end_ns, trace::TrackId track,
              std::string_view text, uint64_t offset) {
  std::string repaired;
  if (!IsValidUtf8(text)) {
    repaired = RepairUtf8(text);
    text = repaired;
  }
  OpText op;
  if (!ParseOpText(text, op)) {
    segment.AddSlice(start_ns, end_ns - start_ns, names.Intern(text),
                     trace::Kind::kAnnotation,
                     names.InternCategory(names.Intern("user_annotation")),
                     track, offset);
    return;
  }
  uint32_t detail = trace::kNoRow;
  if (op.sequence != kNoInt || op.op_id != kNoInt || !op.sizes.empty()) {
    trace::OpArgs args;
    args.sequence = op.sequence;
    args.external_id = op.op_id;
    if (!op.sizes.empty()) args.dims = names.Intern(json::Canonical(op.sizes));
    detail = segment.AddOp(args);
  }
  segment.AddSlice(
      start_ns, end_ns - start_ns, names.Intern(op.name), trace::Kind::kOp,
      names.InternCategory(names.Intern("cpu_op")), track, offset, detail);
}

}  // namespace lamina::ingest
