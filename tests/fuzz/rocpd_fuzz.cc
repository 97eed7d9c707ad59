// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary databases through the reader of rocpd and what every reader feeds.
#include "ingest/common/database.h"
#include "ingest/rocpd/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto database = ingest::Database::OpenBytes("fuzz", bytes);
  if (!database) return 0;
  auto trace = ingest::rocpd::ReadRocpd(**database, {});
  if (trace) fuzz::CheckTrace(std::move(*trace));
  return 0;
}
