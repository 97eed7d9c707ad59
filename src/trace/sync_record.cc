// SPDX-License-Identifier: Apache-2.0
#include "trace/sync_record.h"

#include <string>

#include "base/decimal.h"

namespace lamina::trace {

uint32_t AddSync(const SyncRecord& sync, Segment& segment) {
  ApiArgs row;
  row.correlation = sync.correlation;
  row.stream = sync.stream;
  row.external_id = sync.source_record;
  // The columns of a call have no place for two streams and a device.
  row.kernel = segment.names->Intern(std::to_string(sync.device) + "/" +
                                     std::to_string(sync.source_stream));
  return segment.AddApi(row);
}

std::optional<SyncRecord> SyncOf(const Trace& trace, SliceId s) {
  const uint32_t row = trace.slices.detail[s.value];
  if (trace.KindOf(s) != Kind::kOther || row == kNoRow) return std::nullopt;
  const ApiArgs& api = trace.api_calls[row];
  SyncRecord sync;
  sync.correlation = api.correlation;
  sync.stream = api.stream;
  sync.source_record = api.external_id;
  const std::string_view text = trace.Text(api.kernel);
  const size_t cut = text.find('/');
  if (cut == std::string_view::npos) return sync;
  sync.device = ParseInt(text.substr(0, cut)).value_or(kNoInt);
  sync.source_stream = ParseInt(text.substr(cut + 1)).value_or(kNoInt);
  return sync;
}

}  // namespace lamina::trace
