// SPDX-License-Identifier: Apache-2.0

#include "ingest/rocprof/shape.h"

#include <array>

#include "base/key_index.h"
#include "base/padded_text.h"

namespace lamina::ingest::rocprof {

namespace {

constexpr size_t kMostText = 4096;

// Reads a number of up to 18 digits; 0 when there is none.
size_t ReadDigits(const char* at, int64_t& value) {
  constexpr size_t kMostDigits = 18;
  size_t size = 0;
  value = 0;
  for (; size < kMostDigits && at[size] >= '0' && at[size] <= '9'; ++size)
    value = value * 10 + (at[size] - '0');
  return size;
}

}  // namespace

void Shape::Learn(const json::Tokens& tokens, size_t end) {
  tokens_ = 0;
  text_.clear();
  parts_.clear();
  const char* const record_end = tokens.At(end - 1) + 1;  // behind its '}'
  const char* at = tokens.At(begin_);
  if (static_cast<size_t>(record_end - at) > kMostText) return;
  const auto part = [&](const char* to, Field field) {
    const auto begin = static_cast<uint32_t>(text_.size());
    text_.append(at, to);
    return Part{begin, static_cast<uint32_t>(to - at), field};
  };
  auto field = fields_.begin();
  for (size_t token = begin_; token < end; ++token) {
    const char first = tokens.Kind(token);
    while (field != fields_.end() && field->token < token) ++field;
    const bool known = field != fields_.end() && field->token == token;
    if (first < '0' || first > '9') {
      // A field in another form: quoted, say. It is read from each record.
      if (known || first == '-') return;
      continue;
    }
    int64_t unused = 0;
    const size_t digits = ReadDigits(tokens.At(token), unused);
    // A number that is no integer, or a long one.
    if (digits != tokens.Scalar(token).size()) return;
    parts_.push_back(part(tokens.At(token), known ? field->field : kOther));
    at = tokens.At(token) + digits;
  }
  tail_ = part(record_end, kOther);
  text_.append(kPaddedBytes, '\0');
  tokens_ = end - begin_;
}

bool Shape::Read(const json::Tokens& tokens, size_t& token,
                 FieldValues& values) const {
  if (tokens_ == 0 || token + tokens_ > tokens.count()) return false;
  const char* at = tokens.At(token);
  // That many bytes of the text follow at least.
  const char* const end = tokens.At(token + tokens_ - 1) + 1;
  const auto same = [&](const Part& part) {
    const bool equal = static_cast<size_t>(end - at) >= part.size &&
                       SamePadded(at, text_.data() + part.begin, part.size);
    at += part.size;
    return equal;
  };
  for (const Part& part : parts_) {
    if (!same(part)) return false;
    int64_t value = 0;
    const size_t digits = ReadDigits(at, value);
    if (digits == 0) return false;
    at += digits;
    if (part.field != kOther) values[part.field] = value;
  }
  if (!same(tail_) || at != end) return false;
  token += tokens_;
  return true;
}

namespace {

struct Key {
  std::string_view text;
  Field field;
};
constexpr std::array<Key, 19> kKeys = {{{"start_timestamp", kStart},
                                        {"end_timestamp", kEnd},
                                        {"thread_id", kThread},
                                        {"kind", kKind},
                                        {"operation", kOperation},
                                        {"kernel_id", kKernel},
                                        {"group_segment_size", kGroupBytes},
                                        {"bytes", kBytes},
                                        {"allocation_size", kAllocated},
                                        {"correlation_id", kInCorrelation},
                                        {"agent_id", kInAgent},
                                        {"queue_id", kInQueue},
                                        {"stream_id", kInStream},
                                        {"src_agent_id", kInSourceAgent},
                                        {"dst_agent_id", kInTargetAgent},
                                        {"workgroup_size", kInWorkgroup},
                                        {"grid_size", kInGrid},
                                        {"address", kInAddress},
                                        {"dispatch_info", kInDispatch}}};

constexpr std::array<std::string_view, kKeys.size()> Texts() {
  std::array<std::string_view, kKeys.size()> texts;
  for (size_t i = 0; i < kKeys.size(); ++i) texts[i] = kKeys[i].text;
  return texts;
}
constexpr KeyIndex<kKeys.size()> kIndex(Texts());

}  // namespace

Field FieldOf(Field around, std::string_view key) {
  const auto handle = [&](Field field) {
    return key == "handle" ? field : kOther;
  };
  switch (around) {
    case kInCorrelation:
      return key == "internal" ? kCorrelation : kOther;
    case kInAgent:
      return handle(kAgent);
    case kInQueue:
      return handle(kQueue);
    case kInStream:
      return handle(kStream);
    case kInSourceAgent:
      return handle(kSourceAgent);
    case kInTargetAgent:
      return handle(kTargetAgent);
    case kInAddress:
      return handle(kAddress);
    case kInWorkgroup:
    case kInGrid: {
      if (key.size() != 1 || key[0] < 'x' || key[0] > 'z') return kOther;
      const int first = around == kInGrid ? kGridX : kWorkgroupX;
      return static_cast<Field>(first + (key[0] - 'x'));
    }
    default: {
      const size_t known = kIndex.Find(key);
      return known < kKeys.size() ? kKeys[known].field : kOther;
    }
  }
}

}  // namespace lamina::ingest::rocprof
