// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the reader of Perfetto traces, and what was read
// through the writer and the reader again: every span must come back.
#include <cstdlib>

#include "base/byte_sink.h"
#include "emit/perfetto/trace_writer.h"
#include "ingest/pftrace/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = OpenMemory("fuzz", bytes);
  if (!source) return 0;
  auto trace = ingest::pftrace::ReadPftrace(std::move(*source), {});
  if (!trace) return 0;
  std::string written;
  {
    const auto sink = CreateStringSink(&written);
    emit::perfetto::WriteTrace(*trace, {}, *sink);
    if (!sink->Close()) std::abort();
  }
  auto again = OpenMemory("again", written);
  if (!again) std::abort();
  const auto back = ingest::pftrace::ReadPftrace(std::move(*again), {});
  if (!back || back->slices.size() != trace->slices.size()) std::abort();
  fuzz::CheckTrace(*trace);
  return 0;
}
