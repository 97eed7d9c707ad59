// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/record_advice.h"

#include "base/text.h"

namespace lamina::analysis {

std::string DeviceActivityAdvice(const trace::Trace& trace) {
  // Options of torch.profiler help only where it wrote the trace.
  if (!trace.info.format_lacks.empty())
    return "record device activity with the profiler that wrote this trace";
  for (uint32_t id = 0; id < trace.strings.size(); ++id) {
    const std::string_view text = trace.strings[StringId(id)];
    if (Contains(text, "_mps_") || Contains(text, "mps::") || text == "MPS") {
      return "torch.profiler records no device activity on MPS: use "
             "torch.mps.profiler and Instruments";
    }
    if (text.starts_with("npu::") || text.starts_with("aclnn") ||
        Contains(text, "Ascend") || text.starts_with("AscendCL@")) {
      return "record device activity with torch_npu.profiler "
             "(ProfilerActivity.NPU), and give its trace_view.json";
    }
  }
  return "record device activity (ProfilerActivity.CUDA)";
}

}  // namespace lamina::analysis
