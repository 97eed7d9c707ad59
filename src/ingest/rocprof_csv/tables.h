// SPDX-License-Identifier: Apache-2.0
//
// The CSV files of rocprof: which there are, and the columns of each. Files are
// told apart by their header, since users rename them; columns by name, since
// their order and number differ between versions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::ingest::rocprof_csv {

enum class TableKind : uint8_t {
  kNone,
  kKernels,     // rocprofv3 kernel_trace
  kCounters,    // counter_collection: a row per dispatch and counter
  kCalls,       // hip_api_trace, hsa_api_trace, rccl_api_trace; markers, too
  kCopies,      // memory_copy_trace
  kAgents,      // agent_info
  kOldKernels,  // results.csv of rocprof v1 and v2
};

// By the header row.
TableKind KindOf(const std::vector<std::string>& header);

// The position of the first of some column names; -1 when there is none.
int Column(const std::vector<std::string>& header,
           std::initializer_list<std::string_view> names);

// "4242_kernel_trace.csv" -> 4242; 0 when the name begins with no number.
int64_t PidOfName(std::string_view path);

// "Agent 2", "GPU 0" or "2" -> the number; kNoInt otherwise.
int64_t AgentNumber(std::string_view text);

}  // namespace lamina::ingest::rocprof_csv
