// SPDX-License-Identifier: Apache-2.0

#include "ingest/common/pytorch.h"

#include <simdjson.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"
#include "base/text.h"

namespace lamina::ingest {

using trace::kNoInt;

namespace {

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

constexpr std::string_view kSequence = ", seq = ";
constexpr std::string_view kOpId = ", op_id = ";
constexpr std::string_view kSizes = ", sizes = ";

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
        if (const size_t begin = begin_of(kSequence, at); begin != kNone)
          return begin;
        break;
      case 'd':
        if (op_id == kNone) op_id = begin_of(kOpId, at);
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
  if (TakeField(rest, kSequence, value))
    op.sequence = ParseInt(value).value_or(kNoInt);
  if (TakeField(rest, kOpId, value)) {
    op.op_id = ParseInt(value).value_or(kNoInt);
    is_op = is_op || op.op_id != kNoInt;
  }
  // Some other text with commas in it.
  if (!is_op) op = OpText();
  return is_op;
}

std::string_view SizesIn(std::string_view rest) {
  std::string_view value;
  return TakeField(rest, kSizes, value) && IsListOfSizes(value)
             ? value
             : std::string_view();
}

// The value of a text as printing it would give it back: digits without a zero
// in front, few enough for any integer.
bool ParsePlain(std::string_view text, int64_t& value) {
  constexpr size_t kMostDigits = 18;
  if (text.empty() || text.size() > kMostDigits) return false;
  if (text[0] == '0' && text.size() > 1) return false;
  int64_t number = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    number = number * 10 + (c - '0');
  }
  value = number;
  return true;
}

// Calls visit(value, number) for the values of the fields with numbers, in the
// order of the text.
template <class Numbers, class Visit>
void ForNumbers(std::string_view text, Numbers& numbers, Visit&& visit) {
  const size_t end = FieldsOf(text);
  if (end == std::string_view::npos) return;
  std::string_view rest = text.substr(end);
  std::string_view value;
  if (TakeField(rest, kSequence, value)) visit(value, numbers.sequence);
  if (TakeField(rest, kOpId, value)) visit(value, numbers.op_id);
}

}  // namespace

OpNumbers CutNumbers(std::string_view text, std::string& pattern) {
  OpNumbers numbers;
  const char* at = text.data();
  pattern.clear();
  ForNumbers(text, numbers, [&](std::string_view value, int64_t& number) {
    if (!ParsePlain(value, number)) return;
    pattern.append(at, value.data()).push_back('0');
    at = value.data() + value.size();
  });
  pattern.append(at, text.data() + text.size());
  return numbers;
}

std::string PutNumbers(std::string_view pattern, const OpNumbers& numbers) {
  std::string text;
  const char* at = pattern.data();
  ForNumbers(pattern, numbers, [&](std::string_view value, int64_t number) {
    if (number == kNoInt) return;
    text.append(at, value.data()).append(std::to_string(number));
    at = value.data() + value.size();
  });
  text.append(at, pattern.data() + pattern.size());
  return text;
}

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

RangeName RangeWriter::Name(std::string_view text) {
  std::string repaired;
  if (!IsValidUtf8(text)) {
    repaired = RepairUtf8(text);
    text = repaired;
  }
  RangeName range;
  OpText op;
  std::string_view rest;
  range.is_op = ParseHead(text, op, rest);
  if (!range.is_op) {
    range.name = names_.Intern(text);
    return range;
  }
  range.sizes = Sizes(rest);
  range.name = names_.Intern(op.name);
  range.numbers = {op.sequence, op.op_id};
  return range;
}

void RangeWriter::Add(trace::Segment& segment, int64_t start_ns, int64_t end_ns,
                      trace::TrackId track, const RangeName& range,
                      uint64_t offset) {
  if (!range.is_op) {
    segment.AddSlice(start_ns, end_ns - start_ns, range.name,
                     trace::Kind::kAnnotation,
                     names_.InternCategory("user_annotation"), track, offset);
    return;
  }
  const auto [sequence, op_id] = range.numbers;
  uint32_t detail = trace::kNoRow;
  if (sequence != kNoInt || op_id != kNoInt || range.sizes.valid()) {
    trace::OpArgs args;
    args.sequence = sequence;
    args.external_id = op_id;
    args.dims = range.sizes;
    detail = segment.AddOp(args);
  }
  segment.AddSlice(start_ns, end_ns - start_ns, range.name, trace::Kind::kOp,
                   names_.InternCategory("cpu_op"), track, offset, detail);
}

namespace {

std::optional<int64_t> IntOf(simdjson::dom::element element) {
  int64_t value = 0;
  if (element.get_int64().get(value) == simdjson::SUCCESS) return value;
  double real = 0;
  if (element.get_double().get(real) == simdjson::SUCCESS && real >= -9e15 &&
      real <= 9e15)
    return static_cast<int64_t>(real);
  return std::nullopt;
}

}  // namespace

bool ReadDeviceProperties(std::string_view json, trace::Info& info) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array list;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS ||
      root.get_array().get(list) != simdjson::SUCCESS)
    return false;
  for (const simdjson::dom::element element : list) {
    simdjson::dom::object object;
    if (element.get_object().get(object) != simdjson::SUCCESS) continue;
    trace::DeviceInfo device;
    for (const auto [key, value] : object) {
      const auto number = IntOf(value);
      std::string_view text;
      if (key == "name" && value.get_string().get(text) == simdjson::SUCCESS) {
        device.name = text;
      } else if (!number) {
        continue;
      } else if (key == "id") {
        device.id = *number;
      } else if (key == "totalGlobalMem") {
        device.memory_bytes = *number;
      } else if (key == "computeMajor") {
        device.compute_major = *number;
      } else if (key == "computeMinor") {
        device.compute_minor = *number;
      } else if (key == "numSms") {
        device.sm_count = *number;
      } else if (key == "clockRate") {
        device.clock_khz = *number;
      }
    }
    info.devices.push_back(std::move(device));
  }
  return true;
}

bool ReadDistributedInfo(std::string_view json, trace::Info& info) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::object object;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS ||
      root.get_object().get(object) != simdjson::SUCCESS)
    return false;
  for (const auto [key, value] : object) {
    std::string_view text;
    if (key == "rank") {
      info.rank = IntOf(value);
    } else if (key == "world_size") {
      info.world_size = IntOf(value);
    } else if (key == "backend" &&
               value.get_string().get(text) == simdjson::SUCCESS) {
      info.backend = text;
    } else if (key == "pg_config") {
      info.process_groups = simdjson::minify(value);
    }
  }
  return true;
}

}  // namespace lamina::ingest
