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

// Where the fields behind the name begin; npos when there are none. The first
// of them that the text has counts, wherever it stands.
size_t FieldsOf(std::string_view text) {
  constexpr size_t kNone = std::string_view::npos;
  size_t op_id = kNone;
  size_t sizes = kNone;
  // Where a field begins whose equals sign is at `at`.
  const auto begin_of = [&](std::string_view field, size_t at) {
    const size_t before = field.find('=');
    return at >= before && text.substr(at - before).starts_with(field)
               ? at - before
               : kNone;
  };
  // A text has many commas and few equals signs; the letter in front of one
  // says which field it can be.
  for (size_t at = text.find('='); at != kNone; at = text.find('=', at + 1)) {
    switch (at >= 2 ? text[at - 2] : '\0') {
      case 'q':
        if (const size_t begin = begin_of(", seq = ", at); begin != kNone)
          return begin;
        break;
      case 'd':
        if (op_id == kNone) op_id = begin_of(", op_id = ", at);
        break;
      case 's':
        if (sizes == kNone) sizes = begin_of(", sizes = [", at);
        break;
      default:
        break;
    }
  }
  return op_id != kNone ? op_id : sizes;
}

// All but the sizes; `rest` is the text that follows. False: no op.
bool ParseHead(std::string_view text, OpText& op, std::string_view& rest) {
  op = OpText();
  const size_t end = FieldsOf(text);
  op.name = text.substr(0, end);
  bool is_op = op.name.starts_with("aten::");
  rest = end == std::string_view::npos ? std::string_view() : text.substr(end);
  std::string_view value;
  if (TakeField(rest, ", seq = ", value))
    op.sequence = ParseInt(value).value_or(kNoInt);
  if (TakeField(rest, ", op_id = ", value)) {
    op.op_id = ParseInt(value).value_or(kNoInt);
    is_op = is_op || op.op_id != kNoInt;
  }
  // Some other text with commas in it.
  if (!is_op) op = OpText();
  return is_op;
}

std::string_view SizesIn(std::string_view rest) {
  std::string_view value;
  return TakeField(rest, ", sizes = ", value) && IsListOfSizes(value)
             ? value
             : std::string_view();
}

}  // namespace

bool ParseOpText(std::string_view text, OpText& op) {
  std::string_view rest;
  if (!ParseHead(text, op, rest)) return false;
  op.sizes = SizesIn(rest);
  return true;
}

StringId RangeWriter::Sizes(std::string_view rest) {
  if (rest.empty()) return {};
  const auto it = sizes_.find(rest);
  if (it != sizes_.end()) return it->second;
  const std::string_view list = SizesIn(rest);
  const StringId id =
      list.empty() ? StringId() : names_.Intern(json::Canonical(list));
  sizes_.emplace(rest, id);
  return id;
}

void RangeWriter::Add(trace::Segment& segment, int64_t start_ns, int64_t end_ns,
                      trace::TrackId track, std::string_view text,
                      uint64_t offset) {
  std::string repaired;
  if (!IsValidUtf8(text)) {
    repaired = RepairUtf8(text);
    text = repaired;
  }
  OpText op;
  std::string_view rest;
  if (!ParseHead(text, op, rest)) {
    segment.AddSlice(start_ns, end_ns - start_ns, names_.Intern(text),
                     trace::Kind::kAnnotation,
                     names_.InternCategory("user_annotation"), track, offset);
    return;
  }
  const StringId sizes = Sizes(rest);
  uint32_t detail = trace::kNoRow;
  if (op.sequence != kNoInt || op.op_id != kNoInt || sizes.valid()) {
    trace::OpArgs args;
    args.sequence = op.sequence;
    args.external_id = op.op_id;
    args.dims = sizes;
    detail = segment.AddOp(args);
  }
  segment.AddSlice(start_ns, end_ns - start_ns, names_.Intern(op.name),
                   trace::Kind::kOp, names_.InternCategory("cpu_op"), track,
                   offset, detail);
}

}  // namespace lamina::ingest
