// SPDX-License-Identifier: Apache-2.0
//
// Databases, written in SQL or as bytes, through the reader of Nsight Systems
// and the call tree.
#include "database_fuzz.h"
#include "ingest/nsys/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const auto database = fuzz::OpenInput(data, size);
  if (database == nullptr) return 0;
  const auto trace = ingest::nsys::ReadNsys(*database, {});
  if (trace) fuzz::CheckTrace(*trace);
  return 0;
}
