// SPDX-License-Identifier: Apache-2.0
//
// The tables of the host: NVTX ranges, CUDA calls, the recorder's own work.
#include <algorithm>
#include <numeric>

#include "ingest/common/op_text.h"
#include "ingest/nsys/export_file.h"
#include "ingest/nsys/names.h"

namespace lamina::ingest::nsys {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using trace::TrackId;

namespace {

// ENUM_NSYS_EVENT_TYPE; the same in all versions seen.
enum NvtxType : int64_t {
  kNvtxMark = 34,
  kNvtxThread = 39,
  kNvtxPushPop = 59,
  kNvtxStartEnd = 60,
};

struct CallRow {
  int64_t start_ns, end_ns;
  int64_t global_tid;
  int64_t correlation;
  StringId name;
};

// Calls of a thread are inside each other or apart. Where clocks disagree, the
// earlier of two that overlap otherwise is cut off; returns how many.
uint64_t ClipOverlaps(std::vector<CallRow>& rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const CallRow& x = rows[a];
    const CallRow& y = rows[b];
    if (x.global_tid != y.global_tid) return x.global_tid < y.global_tid;
    if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns;
    if (x.end_ns != y.end_ns) return x.end_ns > y.end_ns;
    return a < b;
  });
  uint64_t clipped = 0;
  std::vector<uint32_t> open;
  for (const uint32_t i : order) {
    const CallRow& row = rows[i];
    while (!open.empty()) {
      CallRow& outer = rows[open.back()];
      const bool apart =
          outer.global_tid != row.global_tid || outer.end_ns <= row.start_ns;
      if (!apart && outer.end_ns >= row.end_ns) break;
      if (!apart) {
        outer.end_ns = row.start_ns;
        ++clipped;
      }
      open.pop_back();
    }
    open.push_back(i);
  }
  return clipped;
}

}  // namespace

void ExportFile::ReadRanges() {
  trace::Segment& segment = filler_.segment();
  trace::LocalNames& names = filler_.names();
  RangeWriter ranges(&names);
  ForRows(Table("NVTX_EVENTS"),
          {"start", "end", "eventType", "text", "textId", "globalTid"},
          [&](const Rows& rows) {
            const auto type = rows.Int(2);
            const bool range = type == kNvtxPushPop || type == kNvtxStartEnd;
            if (!range && type != kNvtxMark && type != kNvtxThread) return;
            const auto start = rows.Int(0);
            const auto end = rows.Int(1);
            const TrackId track = Thread(rows.Int(5));
            auto text = rows.Text(3);
            if (!text) {
              const StringId registered = strings_.Find(rows.Int(4));
              if (registered.valid()) text = names.Text(registered);
            }
            if (type == kNvtxThread) {
              if (!text) return;
              trace::TrackFact fact;
              fact.track = track;
              fact.what = trace::TrackFact::What::kThreadName;
              fact.text = filler_.Intern(*text);
              segment.facts.push_back(fact);
              return;
            }
            if (!start) {
              filler_.Usable(0, -1);
              return;
            }
            if (type == kNvtxMark) {
              filler_.AddInstant(*start, filler_.Intern(text.value_or("")),
                                 track);
              return;
            }
            if (!end) {
              open_ranges_.push_back(
                  {*start, filler_.Intern(text.value_or("")), track});
              return;
            }
            if (Usable(*start, *end)) {
              ranges.Add(segment, *start, *end, track, text.value_or(""));
            }
          });
}

void ExportFile::ReadCalls() {
  trace::Segment& segment = filler_.segment();
  trace::LocalNames& names = filler_.names();
  const uint8_t runtime_category =
      names.InternCategory(filler_.Intern("cuda_runtime"));
  const uint8_t driver_category =
      names.InternCategory(filler_.Intern("cuda_driver"));
  struct Call {
    StringId name;
    bool driver = false;
  };
  absl::flat_hash_map<StringId, Call> calls;
  std::vector<CallRow> rows;
  Scan(Table("CUPTI_ACTIVITY_KIND_RUNTIME"),
       {"start", "end", "globalTid", "correlationId", "nameId"},
       [&](const Rows& row) {
         const int64_t start = row.IntOr(0, kNoInt);
         const int64_t end = row.IntOr(1, kNoInt);
         if (!Usable(start, end)) {
           filler_.Next();
           return;
         }
         StringId full = NameOf(row, 4);
         if (!full.valid()) full = filler_.Intern("(unnamed call)");
         rows.push_back(
             {start, end, row.IntOr(2, 0), row.IntOr(3, kNoInt), full});
       });
  if (const uint64_t clipped = ClipOverlaps(rows); clipped > 0) {
    diagnostics().Add(trace::Effect::kRepaired, "calls_overlap",
                      "A CUDA call began before the previous one of its "
                      "thread had ended; the earlier one is taken to end "
                      "there.",
                      trace::Diagnostics::kNoOffset, clipped);
  }
  for (const CallRow& row : rows) {
    const auto [it, is_new] = calls.try_emplace(row.name);
    if (is_new) {
      const std::string_view plain = PlainApiName(names.Text(row.name));
      it->second.driver = IsDriverCall(plain);
      it->second.name = filler_.Intern(std::string(plain));
    }
    trace::ApiArgs args;
    args.correlation = Correlation(ProcessOf(row.global_tid), row.correlation);
    segment.AddSlice(row.start_ns, row.end_ns - row.start_ns, it->second.name,
                     it->second.driver ? Kind::kDriver : Kind::kRuntime,
                     it->second.driver ? driver_category : runtime_category,
                     Thread(row.global_tid), kNoOffset, segment.AddApi(args));
    filler_.Next();
  }
}

void ExportFile::ReadGraphNodes() {
  ForRows(Table("CUDA_GRAPH_NODE_EVENTS"),
          {"start", "globalTid", "graphNodeId", "originalGraphNodeId"},
          [&](const Rows& rows) {
            const auto start = rows.Int(0);
            const auto id = rows.Int(2);
            if (!start || !id || !trace::IsUsableTime(*start)) return;
            trace::GraphNode node;
            node.id = *id;
            node.original = rows.IntOr(3, kNoInt);
            if (node.original == 0 || node.original == node.id)
              node.original = kNoInt;
            node.start_ns = *start;
            node.track = Thread(rows.Int(1));
            filler_.segment().graph_nodes.push_back(node);
          });
}

void ExportFile::ReadOverhead() {
  trace::LocalNames& names = filler_.names();
  const uint8_t category = names.InternCategory(filler_.Intern("overhead"));
  const auto kinds = Entries("ENUM_CUPTI_OVERHEAD_TYPE", "label");
  ForRows(Table("CUPTI_ACTIVITY_KIND_OVERHEAD"),
          {"start", "end", "globalTid", "overheadType"}, [&](const Rows& rows) {
            const int64_t start = rows.IntOr(0, kNoInt);
            const int64_t end = rows.IntOr(1, kNoInt);
            if (!Usable(start, end)) return;
            const auto kind = kinds.find(rows.IntOr(3, -1));
            filler_.segment().AddSlice(
                start, end - start,
                filler_.Intern(kind == kinds.end() ? "overhead" : kind->second),
                Kind::kOverhead, category, Thread(rows.Int(2)), kNoOffset);
          });
}

void ExportFile::ReadMemory() {
  constexpr int64_t kDeallocation = 1;
  const StringId name = filler_.Intern("[memory]");
  ForRows(
      Table("CUDA_GPU_MEMORY_USAGE_EVENTS"),
      {"start", "globalPid", "deviceId", "address", "bytes",
       "memoryOperationType"},
      [&](const Rows& rows) {
        const auto start = rows.Int(0);
        const auto bytes = rows.Int(4);
        if (!start || !bytes || *bytes < 0 || !trace::IsUsableTime(*start)) {
          filler_.Usable(0, -1);
          return;
        }
        const int64_t device = rows.IntOr(2, kNoInt);
        trace::MemoryArgs args;
        args.bytes = rows.IntOr(5, 0) == kDeallocation ? -*bytes : *bytes;
        args.address = rows.IntOr(3, kNoInt);
        args.device_type = 1;
        args.device_id =
            device >= 0 && device < 1 << 20 ? static_cast<int32_t>(device) : -1;
        filler_.AddInstant(*start, name,
                           Lane(ProcessOf(rows.Int(1)), device, kNoInt),
                           filler_.segment().AddMemory(args));
      });
}

}  // namespace lamina::ingest::nsys
