// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the reader of rocprofv3 JSON and what every reader
// feeds.
#include "base/byte_source.h"
#include "ingest/rocprof/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = OpenMemory("fuzz", bytes);
  if (!source) return 0;
  auto trace = ingest::rocprof::ReadRocprof(std::move(*source), {});
  if (trace) fuzz::CheckTrace(*trace);
  return 0;
}
