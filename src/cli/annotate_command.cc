// SPDX-License-Identifier: Apache-2.0
//
// lamina annotate: who launched this replayed kernel?
#include <algorithm>

#include "analysis/cudagraph/annotate.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "emit/chrome/copy.h"
#include "engine/captures.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string replay;
  std::vector<std::string> from;
  std::string trace_out;
  std::string tags = "^line_";
  std::string require;
};

void AppendMember(std::string& out, std::string_view key,
                  std::string_view value, bool quoted) {
  if (value.empty()) return;
  if (!out.empty()) out += ',';
  AppendJsonQuoted(out, key);
  out += ':';
  if (quoted) {
    AppendJsonQuoted(out, value);
  } else {
    out += value;
  }
}

// What is added to the arguments of one replayed kernel.
std::string Arguments(const cudagraph::Annotation& annotation,
                      const cudagraph::Replay& replay, size_t position) {
  const cudagraph::Match& match = replay.matches[position];
  const cudagraph::Tags tags = annotation.TagsOf(replay, position);
  std::string out;
  AppendMember(out, "source_lines",
               tags.ranges.empty() ? tags.line : tags.ranges, true);
  AppendMember(out, "lamina_op", tags.op, true);
  AppendMember(out, "lamina_op_path", tags.op_path, true);
  AppendMember(out, "lamina_module", tags.module, true);
  if (tags.layer >= 0)
    AppendMember(out, "lamina_layer", std::to_string(tags.layer), false);
  AppendMember(out, "lamina_input_dims", tags.dims, false);
  AppendMember(out, "lamina_input_type", tags.types, false);
  AppendMember(out, "lamina_evidence", cudagraph::LevelName(match.level), true);
  AppendMember(out, "lamina_confidence", cudagraph::ConfidenceOf(match.level),
               true);
  if (match.alternatives > 1)
    AppendMember(out, "lamina_alternatives", std::to_string(match.alternatives),
                 false);
  if (match.partner != cudagraph::Match::kNoPartner) {
    const auto& segment =
        annotation.segments[static_cast<size_t>(replay.segment)];
    AppendMember(out, "lamina_source",
                 "[" + std::to_string(segment.file) + "," +
                     std::to_string(segment.number) + "," +
                     std::to_string(match.partner) + "]",
                 false);
  }
  return out;
}

Status WriteTrace(const std::string& input, const std::string& output,
                  const trace::Trace& trace,
                  const cudagraph::Annotation& annotation) {
  std::vector<emit::Addition> additions;
  for (const cudagraph::Replay& replay : annotation.replays) {
    for (size_t i = 0; i < replay.work.size(); ++i) {
      emit::Addition addition;
      addition.offset = trace.slices.offset[replay.work[i].value];
      addition.args = Arguments(annotation, replay, i);
      additions.push_back(std::move(addition));
    }
  }
  std::sort(additions.begin(), additions.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  LAMINA_ASSIGN(const auto source, OpenByteSource(input));
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  LAMINA_TRY(emit::CopyWithAdditions(*source, *sink, additions));
  return sink->Close();
}

Result<int> RunAnnotate(Options options, Common& common) {
  // -o OUT.json.gz is the annotated trace; the tables go to the terminal.
  if (options.trace_out.empty() && common.format == "table" &&
      (common.output.ends_with(".json") ||
       common.output.ends_with(".json.gz"))) {
    options.trace_out = common.output;
    common.output = "-";
  }
  std::optional<double> required;
  if (!options.require.empty()) {
    std::string text = options.require;
    if (text.ends_with('%')) text.pop_back();
    required = ParseDouble(text);
    if (!required || *required < 0 || *required > 100) {
      return Fail(
          UsageError("--require: expected a percentage", "for example 90%"));
    }
  }
  if (options.replay == "-" && !options.trace_out.empty()) {
    return Fail(UsageError("--trace needs a file to copy",
                           "give the trace by its name, not as -"));
  }
  analysis::Settings settings;
  settings.threads = common.ThreadCount();
  LAMINA_ASSIGN(auto captures, engine::OpenCaptures(options.from, options.tags,
                                                    common.Open()));
  LAMINA_ASSIGN(auto session,
                engine::Session::Open(options.replay, common.Open()));
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  if (options.from.empty() && session->trace().graph_nodes.empty()) {
    return Fail(UsageError(
        "--from: the trace does not hold how its graphs were recorded",
        "give the trace of the capture or of an eager run"));
  }
  if (!options.trace_out.empty())
    LAMINA_TRY(CheckCopyable(session->trace(), "--trace"));
  const cudagraph::Annotation annotation =
      cudagraph::Annotate(*context, std::move(captures.segments));
  if (!options.trace_out.empty()) {
    const ScopedStage stage(&common.times, "copy");
    LAMINA_TRY(WriteTrace(options.replay, options.trace_out, session->trace(),
                          annotation));
  }
  Document document;
  document.command = "annotate";
  document.inputs = {options.replay};
  document.inputs.insert(document.inputs.end(), captures.files.begin(),
                         captures.files.end());
  document.result = cudagraph::AnnotationTables(*context, annotation);
  if (common.format == "table" && common.top == 0) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() == "annotate_kernels";
    });
  }
  LAMINA_TRY(Write(document, common));
  if (required && 100.0 * annotation.FactShare() < *required)
    return kCheckFailed;
  return kFine;
}

Run Add(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("replay", options->replay, "Trace with replayed graphs")
      ->required();
  app.add_option("--from", options->from,
                 "Traces of the capture or of an eager run, or a folder of "
                 "them; not needed where the trace itself says which node "
                 "each kernel goes back to (Nsight Systems)");
  app.add_option("--trace", options->trace_out,
                 "Write the replay with the tags in the arguments of its "
                 "kernels to this file; -o FILE.json.gz does the same");
  app.add_option("--tags", options->tags, "Ranges that count as tags (RE2)")
      ->capture_default_str();
  app.add_option("--require", options->require,
                 "Exit with 1 when fewer kernels are matched for sure: 90%");
  common.AddTo(app);
  return [options, &common] { return RunAnnotate(*options, common); };
}

}  // namespace

CommandInfo AnnotateCommand() {
  return {"annotate", "Op, module and source line of replayed graph kernels",
          "lamina annotate replay.json.gz --from capture.json.gz -o "
          "annotated.json.gz",
          &Add};
}

}  // namespace lamina::cli
