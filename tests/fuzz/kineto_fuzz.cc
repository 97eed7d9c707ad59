// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the Kineto reader and the call tree.
#include "base/byte_source.h"
#include "ingest/kineto/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = OpenMemory("fuzz", bytes);
  if (!source) return 0;
  auto trace = ingest::kineto::ReadKineto(std::move(*source), {});
  if (trace) fuzz::CheckTrace(*trace);
  return 0;
}
