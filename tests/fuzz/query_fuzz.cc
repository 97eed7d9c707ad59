// SPDX-License-Identifier: Apache-2.0
//
// Any text as a query over a small trace: it is answered, refused or stopped,
// and what is asked afterwards is answered as before.
#include <cstdlib>
#include <memory>

#include "base/byte_source.h"
#include "ingest/kineto/reader.h"
#include "sql/database.h"

namespace lamina::sql {
namespace {

// A step with an op that calls another, a launch, a kernel and a copy.
constexpr std::string_view kTrace = R"json({"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 90},
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 1, "dur": 50,
 "args": {"Input Dims": [[4, 8], [2, 8]], "Input type": ["float", "float"], "External id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 2, "dur": 40,
 "args": {"Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"], "External id": 2}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 3, "dur": 5,
 "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "void gemm<float>(float*)", "pid": 0, "tid": 7, "ts": 20, "dur": 30,
 "args": {"correlation": 7, "device": 0, "stream": 7, "grid": [1, 2, 3], "block": [32, 1, 1]}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 60, "dur": 3,
 "args": {"device": 0, "stream": 7, "bytes": 4096}}
]
})json";

std::unique_ptr<Database> Open() {
  auto bytes = OpenMemory("fuzz", kTrace);
  if (!bytes) std::abort();
  auto trace = ingest::kineto::ReadKineto(*std::move(bytes), {});
  if (!trace) std::abort();
  auto session = engine::Session::Adopt(*std::move(trace), {});
  if (!session) std::abort();
  auto database = Database::Open(
      {{"main", {std::shared_ptr<engine::Session>(*std::move(session))}, {}}},
      {});
  if (!database) std::abort();
  return *std::move(database);
}

}  // namespace
}  // namespace lamina::sql

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina::sql;
  static const std::unique_ptr<Database> database = Open();
  QueryOptions options;
  options.time_limit = std::chrono::milliseconds(200);
  options.max_rows = 2000;
  options.max_bytes = 1 << 20;
  const auto result = database->Run(
      std::string_view(reinterpret_cast<const char*>(data), size), options);
  if (!result && result.error().what.empty()) std::abort();
  const auto after = database->Run("SELECT count(*), sum(dur_ns) FROM kernel");
  if (!after || after->front().Int(0, 0) != 2 ||
      after->front().Int(0, 1) != 33000)
    std::abort();
  return 0;
}
