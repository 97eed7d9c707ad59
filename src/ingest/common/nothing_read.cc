// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/nothing_read.h"

namespace lamina::ingest {

Error NothingRead(const trace::Trace& trace, std::string what,
                  std::string hint) {
  for (const trace::Diagnostic& d : trace.diagnostics.Sorted()) {
    if (d.effect != trace::Effect::kLost) continue;
    what += " (" + d.text;
    if (what.ends_with('.')) what.pop_back();
    what += ')';
    if (d.first_offsets.empty()) break;
    return InputErrorAt(trace.info.file, d.first_offsets[0], std::move(what),
                        std::move(hint));
  }
  if (!trace.info.plain)
    return InputError(trace.info.file, std::move(what), std::move(hint));
  return InputErrorAt(trace.info.file, 0, std::move(what), std::move(hint));
}

}  // namespace lamina::ingest
