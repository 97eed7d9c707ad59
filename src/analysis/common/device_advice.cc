// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/device_advice.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "analysis/common/host_view.h"
#include "base/counted.h"
#include "base/escape.h"

namespace lamina::analysis {
bool HasCategory(const trace::Trace& trace, std::string_view prefix) {
  return std::any_of(
      trace.categories.begin(), trace.categories.end(),
      [&](StringId id) { return trace.Text(id).starts_with(prefix); });
}

namespace {

// Whether ops or arguments speak of Apple's GPU.
bool SpeaksOfMps(const trace::Trace& trace) {
  for (uint32_t i = 0; i < trace.strings.size(); ++i) {
    const std::string_view text = trace.strings[StringId(i)];
    if (text.starts_with("aten::_mps") || text.starts_with("mps::") ||
        text.find("_mps_") != text.npos || text == "mps" ||
        text.find("\"mps:0\"") != text.npos)
      return true;
  }
  return false;
}

// The categories with most time that nothing knows.
std::string LargestUnknown(const trace::Trace& trace) {
  std::map<std::string_view, int64_t> times;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (trace.slices.kind[i] != trace::Kind::kOther) continue;
    times[trace.Category(trace::SliceId(i))] += trace.slices.dur_ns[i];
  }
  std::vector<std::pair<int64_t, std::string_view>> order;
  for (const auto& [category, ns] : times) order.emplace_back(-ns, category);
  std::sort(order.begin(), order.end());
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(order.size(), 3); ++i) {
    const std::string_view category = order[i].second;
    text += (text.empty() ? "" : ", ") +
            (category.empty() ? std::string("(none)")
                              : EscapeTerminal(category.substr(0, 60)));
  }
  return text;
}

bool KnowsProfiler(const trace::Trace& trace) {
  return std::any_of(
      trace.slices.kind.begin(), trace.slices.kind.end(), [](trace::Kind kind) {
        return kind != trace::Kind::kOther && kind != trace::Kind::kProfiler;
      });
}

// "30 launches and 6 other calls were recorded ..." where the profiler was on
// and the device gave nothing; empty without a call.
std::string CallsWithoutDevice(const trace::Trace& trace) {
  size_t launches = 0;
  size_t others = 0;
  const trace::Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (trace::IsDevice(slices.kind[i])) return {};
    if (!trace::IsApiCall(slices.kind[i])) continue;
    ++(trace.Name(trace::SliceId(i)).find("Launch") != std::string_view::npos
           ? launches
           : others);
  }
  if (launches + others == 0) return {};
  if (launches == 0) {
    return Counted(others, "call") +
           (others == 1 ? " of the runtime was" : " of the runtime were") +
           " recorded and no launch: the profiler was on, and the program ran "
           "nothing on the device meanwhile.";
  }
  std::string text = Counted(launches, "launch", "launches");
  if (others > 0) text += " and " + Counted(others, "other call");
  return text + (launches + others == 1 ? " was" : " were") +
         " recorded, so the profiler was on, and the device gave no record: "
         "another profiler may hold it, the driver may refuse (permissions of "
         "performance counters), or the program may have ended before the "
         "records were written.";
}

bool HasUnreadDevice(const trace::Trace& trace) {
  const auto unread = FindUnread(trace);
  return std::any_of(unread.begin(), unread.end(),
                     [](const UnreadEvents& u) { return u.device; });
}

}  // namespace

std::string DeviceAdvice(const trace::Trace& trace) {
  const std::string_view format = trace.info.format;
  if (HasUnreadDevice(trace))
    return "Device work was recorded and is not read yet: see unread_events.";
  if (const std::string calls = CallsWithoutDevice(trace); !calls.empty())
    return calls;
  if (format == "nsys") {
    for (const auto& [key, value] : trace.info.properties) {
      if (key == "COLLECT_CUDA_TRACE" && value == "\"true\"") {
        return "CUDA was traced (COLLECT_CUDA_TRACE=true), so the program made "
               "no call or the driver refused: see DIAGNOSTIC_EVENT.";
      }
    }
    return "Record with nsys profile --trace=cuda,nvtx; where CUPTI tables are "
           "missing the driver or a permission refused: see DIAGNOSTIC_EVENT.";
  }
  if (format == "rpd")
    return "Record with runTracer.sh, or rpd.start() in the process.";
  if (format.starts_with("roc"))
    return "Record with rocprofv3 --kernel-trace --hip-trace.";
  if (format == "pftrace")
    return "Record with the data source of the device switched on.";
  if (format == "xplane") return "Record with device_tracer_level=1.";
  if (SpeaksOfMps(trace)) {
    return "PyTorch records no device events on Apple GPUs: times are those of "
           "submitting, the GPU runs later; use Instruments.";
  }
  if (HasCategory(trace, "xpu_"))
    return "Record device activity: ProfilerActivity.XPU.";
  if (HasCategory(trace, "hpu_"))
    return "Record device activity: ProfilerActivity.HPU.";
  if (HasCategory(trace, "mtia_"))
    return "Record device activity: ProfilerActivity.MTIA.";
  if (HasCategory(trace, "npu_") || HasCategory(trace, "enqueue"))
    return "Record device activity: torch_npu ProfilerActivity.NPU.";
  if (!KnowsProfiler(trace)) {
    const std::string unknown = LargestUnknown(trace);
    return "No profiler is known by its categories" +
           (unknown.empty() ? std::string(".")
                            : ": the largest are " + unknown +
                                  ". Device tracks need the categories kernel, "
                                  "gpu_memcpy or gpu_memset.");
  }
  return "If the machine has a GPU, record it too: ProfilerActivity.CUDA.";
}

}  // namespace lamina::analysis
