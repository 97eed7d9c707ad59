// SPDX-License-Identifier: Apache-2.0
//
// lamina replay: scripts that run single ops of a trace.
#include "engine/replay.h"

#include <fmt/core.h>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "lamina/version.h"
#include "questions/bodies.h"
#include "table/row_columns.h"

namespace lamina::questions {
namespace {

constexpr size_t kDefaultTop = 10;

struct ReplayOptions {
  std::string trace;
  std::string device;
  bool all = false;
  engine::ReplayOptions replay;
};

struct ReplayRow {
  std::string_view script, op, shapes;
  int64_t count, kernel_time, mean;
  std::optional<int64_t> roofline;
  std::string_view reason;
  uint32_t id;
};

const RowColumns<ReplayRow>& ReplayColumns() {
  static const RowColumns<ReplayRow> columns{
      "replay",
      "Ops with their scripts, largest device time first.",
      {{"script", ColumnType::kText, "File; empty: no script.",
        &ReplayRow::script},
       {"op", ColumnType::kText, "Op.", &ReplayRow::op},
       {"shapes", ColumnType::kText, "Shapes of its inputs, JSON.",
        &ReplayRow::shapes},
       {"count", ColumnType::kInt, "Calls with these arguments.",
        &ReplayRow::count},
       {"kernel_time_us", ColumnType::kTime,
        "Sum of the durations of their device work.", &ReplayRow::kernel_time},
       {"mean_us", ColumnType::kTime, "Device time of one call.",
        &ReplayRow::mean},
       {"roofline_us", ColumnType::kTime,
        "Least time of one call on the device of the trace.",
        &ReplayRow::roofline},
       {"reason", ColumnType::kText, "Why there is no script.",
        &ReplayRow::reason},
       {"id", ColumnType::kInt, "Event number of the first call.",
        &ReplayRow::id}}};
  return columns;
}

// The files of a plan, in a folder.
class Folder {
 public:
  explicit Folder(const std::string& path) : path_(path) {}

  Status Write(const engine::ReplayPlan& plan, Table& table) {
    LAMINA_TRY(MakeDirectory(path_));
    for (const engine::ReplayRow& row : plan.rows) LAMINA_TRY(Add(row, table));
    std::string manifest = "{\"lamina\": ";
    AppendJsonQuoted(manifest, Version());
    manifest += ", \"device\": ";
    AppendJsonQuoted(manifest, plan.device);
    manifest += ",\n\"ops\": [" + ops_ + "],\n\"skipped\": [" + skipped_ +
                "],\n\"gemms\": [" + gemms_ + "]}\n";
    LAMINA_TRY(WriteFile(path_ + "/manifest.json", manifest));
    LAMINA_TRY(WriteFile(path_ + "/run_all.py", emit::BatchScript()));
    if (!hipblaslt_.empty()) {
      LAMINA_TRY(
          WriteFile(path_ + "/hipblaslt-bench.sh", "#!/bin/sh\n" + hipblaslt_));
    }
    return {};
  }

 private:
  static void Append(std::string& list, const std::string& item) {
    list += (list.empty() ? "\n" : ",\n") + item;
  }

  Status Add(const engine::ReplayRow& row, Table& table) {
    const emit::ReplayCall& call = row.call;
    std::string script;
    if (row.reason.empty()) {
      script = emit::ScriptName(++number_, call.op);
      LAMINA_TRY(WriteFile(path_ + "/" + script, emit::ReplayScript(call)));
      // The call with the name of its script in front.
      std::string item = "{\"script\": ";
      AppendJsonQuoted(item, script);
      item += ", " + emit::ReplayJson(call).substr(1);
      Append(ops_, item);
      if (const auto gemm = emit::GemmOf(call)) {
        Append(gemms_, emit::GemmJson(*gemm));
        hipblaslt_ += emit::HipblasltLine(*gemm) + "\n";
      }
    } else {
      std::string item = "{\"op\": ";
      // A name that is no op's may say something of the user.
      AppendJsonQuoted(item, emit::IsOpName(call.op) ? call.op : "");
      item += fmt::format(", \"id\": {}, \"count\": {}, \"reason\": ", call.id,
                          call.count);
      AppendJsonQuoted(item, row.reason);
      Append(skipped_, item + "}");
    }
    ReplayColumns().Add(table, {.script = script,
                                .op = call.op,
                                .shapes = row.shapes,
                                .count = call.count,
                                .kernel_time = call.kernel_time_ns,
                                .mean = call.mean_ns,
                                .roofline = call.roofline_ns,
                                .reason = row.reason,
                                .id = call.id});
    return {};
  }

  std::string path_;
  size_t number_ = 0;
  std::string ops_, skipped_, gemms_, hipblaslt_;
};

Result<Answer> RunReplay(ReplayOptions options, Asker& asker) {
  if (asker.output == "-") {
    return Fail(UsageError("the scripts need a folder",
                           "⟨lamina⟩ replay TRACE ⟨top⟩ 10 ⟨output⟩ replay"));
  }
  engine::ReplayOptions& replay = options.replay;
  replay.top = options.all || replay.id ? 0
               : asker.top > 0          ? asker.top
               : replay.op.empty()      ? kDefaultTop
                                        : 0;
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  engine::OpenOptions open = asker.Open();
  open.device = options.device;
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace, open));
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  LAMINA_ASSIGN(const engine::ReplayPlan plan,
                engine::PlanReplay(*context, replay));
  Document document;
  document.command = "replay";
  document.inputs = {options.trace};
  document.result.tables.emplace_back(ReplayColumns().schema());
  LAMINA_TRY(Folder(asker.output).Write(plan, document.result.tables.front()));
  size_t scripts = 0;
  for (const engine::ReplayRow& row : plan.rows)
    scripts += row.reason.empty() ? 1 : 0;
  document.result.notes.push_back(MakeNote(
      Severity::kVerdict, "replay_scripts",
      scripts == 0
          ? "No op can be rebuilt; the column reason says why."
          : fmt::format(
                "{} of {} ops have a script in {}; run_all.py there runs them.",
                scripts, plan.rows.size(), asker.output)));
  return Answer(std::move(document));
}

}  // namespace

Body DescribeReplay(Description& args, Asker& asker) {
  auto options = std::make_shared<ReplayOptions>();
  args.Add("trace", options->trace, "Trace file").Required();
  args.Add("--op", options->replay.op, "Ops of this name: aten::mm or mm");
  args.Add("--shape", options->replay.shape,
           "Only calls whose shapes hold this text: [8944,1024]");
  args.Add("--id", options->replay.id,
           "The op with this event number, or that launched it")
      .Whole(0, kMaxUid);
  args.Flag("--all", options->all,
            "All ops, not only the ten (⟨top⟩ N) with most device time");
  args.Flag("--outer", options->replay.outer,
            "Also ops that launch their work through ops inside them");
  args.Add("--device", options->device,
           "Device for rooflines: a name (⟨lamina⟩ list devices) or a "
           "file (default: what the trace says)");
  asker.AddCapturesTo(args);
  return [options, &asker] { return RunReplay(*options, asker); };
}

}  // namespace lamina::questions
