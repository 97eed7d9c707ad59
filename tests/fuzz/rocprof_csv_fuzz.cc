// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes, cut into files at zero bytes, through the reader of rocprof
// CSV and the call tree.
#include "base/byte_source.h"
#include "ingest/rocprof_csv/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::unique_ptr<ByteSource>> sources;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    auto source = OpenMemory("42_fuzz.csv", rest.substr(0, end));
    if (source) sources.push_back(std::move(*source));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  auto trace =
      ingest::rocprof_csv::ReadCsvFiles("fuzz", std::move(sources), {});
  if (trace) fuzz::CheckTrace(*trace);
  return 0;
}
