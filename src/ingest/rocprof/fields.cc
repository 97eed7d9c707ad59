// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/fields.h"

#include <array>

#include "base/key_index.h"

namespace lamina::ingest::rocprof {
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
