// SPDX-License-Identifier: Apache-2.0
//
// Kineto traces through every analysis. The reader itself has kineto_fuzz.
#include "report_fuzz.h"

#include "base/byte_source.h"
#include "ingest/kineto/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = OpenMemory("fuzz", bytes);
  if (!source) return 0;
  auto trace = ingest::kineto::ReadKineto(std::move(*source), {});
  if (trace) fuzz::CheckReport(std::move(*trace));
  return 0;
}
