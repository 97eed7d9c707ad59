// SPDX-License-Identifier: Apache-2.0
//
// lamina slice: a small trace out of a large one.
#include "analysis/slice/slice.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <numeric>

#include "base/decimal.h"
#include "emit/chrome/filter.h"
#include "page/where.h"
#include "questions/bodies.h"
#include "questions/trace_output.h"
#include "trace/module_frames.h"

namespace lamina::questions {
namespace {

using analysis::slice::Fate;
using analysis::slice::Selection;

struct SliceOptions {
  std::string trace;
  std::string time;
  std::string layer;
  std::vector<std::string> where;
  analysis::slice::Options slice;
};

// Tells for every record of the file whether it was selected.
class Picker {
 public:
  Picker(const trace::Trace& trace, const Selection& selection)
      : trace_(trace),
        selection_(selection),
        by_offset_(trace::RecordedSlices(trace)) {
    std::iota(by_offset_.begin(), by_offset_.end(), 0U);
    const auto& offsets = trace.slices.offset;
    const auto recorded =
        offsets.begin() + static_cast<ptrdiff_t>(by_offset_.size());
    if (!std::is_sorted(offsets.begin(), recorded)) {
      std::sort(
          by_offset_.begin(), by_offset_.end(),
          [&](uint32_t a, uint32_t b) { return offsets[a] < offsets[b]; });
    }
  }

  bool operator()(const emit::Record& record) {
    const auto& slices = trace_.slices;
    while (next_ < by_offset_.size() &&
           slices.offset[by_offset_[next_]] < record.offset)
      ++next_;
    // Both passes count records alike unless the text is broken; a slice says
    // where the count stands.
    if (next_ < by_offset_.size() &&
        slices.offset[by_offset_[next_]] == record.offset)
      shift_ = static_cast<int64_t>(slices.uid[by_offset_[next_]]) -
               static_cast<int64_t>(record.number);
    const auto event =
        static_cast<uint64_t>(static_cast<int64_t>(record.number) + shift_);
    if (event >= selection_.events.size()) return false;
    switch (selection_.events[event]) {
      case Fate::kKept:
        return true;
      case Fate::kDropped:
        return false;
      case Fate::kUnknown:
        break;
    }
    const std::string_view phase = emit::MemberOf(record.text, "ph");
    return phase == "\"M\"" || (phase == "\"E\"" && EndsKept(record.text));
  }

 private:
  using End = std::tuple<std::string, std::string, int64_t>;

  // The "E" of a kept "B": a slice of its track ends there.
  bool EndsKept(std::string_view record) {
    if (!ends_) {
      ends_.emplace();
      const uint32_t recorded = trace::RecordedSlices(trace_);
      for (uint32_t i = 0; i < recorded; ++i) {
        const trace::SliceId s(i);
        if (!selection_.Kept(trace_, s)) continue;
        const trace::Track& track = trace_.TrackOf(s);
        ++(*ends_)[End(trace_.Text(track.pid), trace_.Text(track.tid),
                       trace_.End(s))];
      }
    }
    const auto time = ParseMicroseconds(emit::MemberOf(record, "ts"));
    if (!time) return false;
    const auto plain = [&](std::string_view name) {
      std::string_view raw = emit::MemberOf(record, name);
      if (raw.starts_with('"')) raw = raw.substr(1, raw.size() - 2);
      return std::string(raw);
    };
    const auto it = ends_->find(End(plain("pid"), plain("tid"), time->ns));
    if (it == ends_->end() || it->second == 0) return false;
    --it->second;
    return true;
  }

  const trace::Trace& trace_;
  const Selection& selection_;
  std::vector<uint32_t> by_offset_;
  size_t next_ = 0;
  int64_t shift_ = 0;
  std::optional<absl::flat_hash_map<End, uint32_t>> ends_;
};

Table KeptTable(const Selection& selection) {
  Table table({"slice",
               "Events of the smaller trace.",
               {{"kind", ColumnType::kText, "Kind of event."},
                {"kept", ColumnType::kInt, "Events in the smaller trace."},
                {"events", ColumnType::kInt, "Events in the whole trace."}}});
  const auto add = [&](std::string_view kind, const Selection::Count& count) {
    if (count.all > 0) table.Add(kind, count.kept, count.all);
  };
  for (size_t i = 0; i < selection.slices.size(); ++i)
    add(trace::KindName(static_cast<trace::Kind>(i)), selection.slices[i]);
  add("flow", selection.flows);
  add("instant", selection.instants);
  add("counter", selection.counters);
  return table;
}

Result<Answer> RunSlice(SliceOptions options, Asker& asker) {
  if (asker.output == "-" || options.trace == "-") {
    return Fail(UsageError(
        "the smaller trace needs a file to be read from and one to be written",
        "⟨lamina⟩ slice TRACE ⟨step⟩ 1 ⟨output⟩ OUT.json.gz"));
  }
  if (!options.time.empty()) {
    options.slice.time_ns = page::ParseSpan(options.time);
    if (!options.slice.time_ns) {
      return Fail(UsageError("⟨time⟩: expected a span like 10ms..20ms",
                             "times count from the first event; units are ns, "
                             "us, ms and s"));
    }
  }
  if (!options.layer.empty()) {
    LAMINA_ASSIGN(options.slice.layers, ParseNumbers("⟨layer⟩", options.layer));
  }
  const auto& o = options.slice;
  if (!o.time_ns && !o.step && !o.layers && !o.stream && o.name.empty() &&
      options.where.empty()) {
    return Fail(UsageError("nothing says what to keep",
                           "give ⟨step⟩ or ⟨where⟩; or ⟨time⟩, ⟨layer⟩, ⟨name⟩ "
                           "or ⟨stream⟩"));
  }
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace));
  const trace::Trace& trace = session->trace();
  if (trace.info.format != "kineto") {
    return Fail(UsageError(
        "⟨slice()⟩ copies Chrome JSON; this trace is of the format " +
            trace.info.format,
        "give the JSON that torch.profiler wrote"));
  }
  LAMINA_ASSIGN(const auto rules, analysis::layers::LoadRules(session->data()));
  if (!options.where.empty()) {
    const ScopedStage stage(&asker.times, "where");
    LAMINA_ASSIGN(options.slice.device,
                  page::FindWhere(*session, options.where, settings.threads));
  }
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, true, settings));
  std::optional<Selection> selection;
  {
    const ScopedStage stage(&asker.times, "select");
    LAMINA_ASSIGN(selection, Select(*context, *rules, options.slice));
  }
  {
    const ScopedStage stage(&asker.times, "copy");
    const auto copy = [&](const std::string& path) -> Status {
      LAMINA_ASSIGN(auto source, OpenByteSource(options.trace));
      LAMINA_ASSIGN(const auto sink, CreateFileSink(path));
      Picker picker(trace, *selection);
      emit::CopyLoss loss;
      LAMINA_TRY(
          emit::CopyRecords(std::move(source), *sink, std::ref(picker), &loss));
      WarnOfLoss(options.trace, loss, asker);
      return sink->Close();
    };
    LAMINA_TRY(WriteTraceAs(asker.output, asker, copy));
  }
  Document document;
  document.command = "slice";
  document.inputs = {options.trace};
  document.result.tables.push_back(KeptTable(*selection));
  return Answer(std::move(document));
}

std::string WhereHelp() {
  std::string text = "Fields:";
  for (const page::WhereField& field : page::WhereFields())
    text += fmt::format("\n  {:<13}  {}", field.name, field.doc);
  return text;
}

}  // namespace

Body DescribeSlice(Description& args, Asker& asker) {
  auto options = std::make_shared<SliceOptions>();
  args.Add("trace", options->trace, "Trace file").Required();
  args.Add("--time", options->time,
           "What overlaps this span, from the first event: 10ms..20ms");
  args.Add("--step", options->slice.step,
           "The step with this number, with all that it launched");
  args.Add("--layer", options->layer,
           "Layers with these numbers, in every pass: 3, 0-2 or 1,5-7");
  args.Add("--name", options->slice.name,
           "Kernels and host events whose name matches (RE2), with what "
           "is inside");
  args.Add("--stream", options->slice.stream, "Device work of this stream");
  args.Add("--where", options->where,
           "Device work with FIELD=VALUE, or without (FIELD!=VALUE); of "
           "several for one field any, of several fields all. " +
               WhereHelp())
      .OneWord();
  asker.AddCapturesTo(args);
  return [options, &asker] { return RunSlice(*options, asker); };
}

}  // namespace lamina::questions
