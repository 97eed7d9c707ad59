// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/unread.h"

#include <algorithm>

#include "base/text.h"

namespace lamina::ingest {
namespace {

// All of these stand in the first bytes.
bool HasAll(std::string_view head,
            std::initializer_list<std::string_view> words) {
  return std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    return Contains(head, word);
  });
}

}  // namespace

std::optional<UnreadForm> FindUnreadForm(const Input& input) {
  const std::string_view head = input.head();
  const size_t text = std::min(head.find_first_not_of(" \t\r\n"), head.size());
  const char first = text < head.size() ? head[text] : '\0';
  // Pickle, protocols 2 to 5.
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) {
    if (HasAll(head, {"segments"}) || HasAll(head, {"device_traces"})) {
      return UnreadForm{
          "is a memory snapshot of PyTorch, which holds "
          "allocations and no timeline of work",
          "give a trace of torch.profiler; one with "
          "profile_memory=True has allocations, too"};
    }
    return UnreadForm{"is a Python pickle and no trace",
                      "give the file that the profiler exported"};
  }
  if (first == '{' && HasAll(head, {"\"schema\"", "\"nodes\"", "\"name\""}) &&
      (HasAll(head, {"rf_id"}) || HasAll(head, {"chakra"}) ||
       HasAll(head, {"execution_trace"}))) {
    return UnreadForm{
        "is an execution trace of PyTorch (Chakra), which holds "
        "ops and their inputs but no times on the device",
        "give the trace of torch.profiler of the same run"};
  }
  if (first == '[' && HasAll(head, {"\"timeMs\"", "\"averageMs\""})) {
    return UnreadForm{
        "is a layer profile of TensorRT (--exportProfile), which "
        "holds sums and no timeline",
        "record with nsys profile trtexec ... and give its "
        "report"};
  }
  if (first == '[' &&
      HasAll(head, {"\"children\"", "\"frame\"", "\"metrics\""})) {
    return UnreadForm{
        "is a profile of Triton's proton, which holds sums per "
        "call path and no timeline",
        "record with torch.profiler or nsys"};
  }
  if (first == '[' && head.substr(text).starts_with("[[") &&
      !Contains(head, "{")) {
    return UnreadForm{
        "is a memory timeline of PyTorch (lists of times and "
        "sizes), which holds no events",
        "give the trace of torch.profiler itself"};
  }
  const std::string_view line = head.substr(0, head.find('\n'));
  if (line.starts_with("Dispatch_ID,GPU_ID,") &&
      Contains(line, "Kernel_Name")) {
    return UnreadForm{
        "is a table of counters of rocprof-compute (pmc_perf), "
        "which holds no times",
        "record a timeline with rocprofv3 --sys-trace"};
  }
  if (HasAll(line,
             {"Task ID", "Stream ID", "Start Time(us)", "Duration(us)"})) {
    return UnreadForm{
        "is a table of kernels of Ascend's profiler "
        "(kernel_details)",
        "give the trace_view.json that stands beside it"};
  }
  return std::nullopt;
}

}  // namespace lamina::ingest
