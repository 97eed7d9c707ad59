// SPDX-License-Identifier: Apache-2.0
//
// lamina annotate: who launched this replayed kernel?
#include <algorithm>
#include <filesystem>

#include "base/decimal.h"
#include "compare/cudagraph/names.h"
#include "compare/cudagraph/node_chain.h"
#include "emit/perfetto/trace_writer.h"
#include "engine/augment.h"
#include "engine/captures.h"
#include "engine/find_traces.h"
#include "engine/report.h"
#include "page/page.h"
#include "questions/bodies.h"
#include "questions/compiled_input.h"
#include "questions/trace_output.h"

namespace lamina::questions {
namespace {

using cudagraph::Segment;
using cudagraph::TagKind;

struct AnnotateOptions {
  std::string replay;
  std::vector<std::string> from;
  std::vector<std::string> compiled;
  std::string trace_out;
  std::string method = "align";
  std::string tags;  // empty: not given
  std::vector<std::string> levels;
  std::string batch = "auto";
  std::string kernel_annotations;
  std::string min_evidence;
  std::string require;
};

// What the options say, checked.
struct Request {
  bool by_name = false;
  bool classic = false;  // the simple method, exactly
  TagKind kind = TagKind::kRange;
  engine::AugmentLevels levels;
  cudagraph::AnnotateOptions align;
  std::optional<double> required;
};

Result<Request> Parse(const AnnotateOptions& options) {
  Request request;
  request.by_name = options.method == "name";
  request.classic =
      request.by_name && options.tags.empty() && options.levels.empty();
  if (!options.levels.empty()) {
    request.levels = {false, false, false, false};
    for (const std::string& name : options.levels) {
      const auto kind = cudagraph::FindTagKind(name);
      if (!kind) {
        return Fail(UsageError("⟨levels⟩: there is no level '" + name + "'",
                               "op, instance, module, line or range"));
      }
      request.levels.op |= *kind == TagKind::kOp || *kind == TagKind::kInstance;
      request.levels.module |= *kind == TagKind::kModule;
      request.levels.line |= *kind == TagKind::kLine;
      request.levels.range |= *kind == TagKind::kRange;
    }
    if (request.by_name && options.levels.size() > 1) {
      return Fail(UsageError("⟨method⟩ name has one kind of tag",
                             "give one level, for example ⟨levels⟩ line"));
    }
    request.kind = *cudagraph::FindTagKind(options.levels[0]);
  }
  if (options.batch != "auto") {
    request.align.batch = ParseInt(options.batch);
    if (!request.align.batch || *request.align.batch < 0) {
      return Fail(
          UsageError("⟨batch⟩: expected a number or auto", "for example 32"));
    }
  }
  if (!options.min_evidence.empty()) {
    const auto level = cudagraph::FindLevel(options.min_evidence);
    if (!level) {
      return Fail(UsageError(
          "⟨min_evidence⟩: there is no level '" + options.min_evidence + "'",
          "exact-id, exact, fifo, sure, gap-fifo, family, lcs, scope or "
          "ambiguous"));
    }
    request.align.least = *level;
  }
  if (!options.require.empty()) {
    std::string text = options.require;
    if (text.ends_with('%')) text.pop_back();
    request.required = ParseDouble(text);
    if (!request.required || *request.required < 0 || *request.required > 100) {
      return Fail(
          UsageError("⟨require⟩: expected a percentage", "for example 90%"));
    }
  }
  return request;
}

// One replay and where its annotated copy goes; empty: nowhere.
struct Job {
  std::string input;
  std::string output;
};

// A folder has one replay per rank; their copies keep their names.
Result<std::vector<Job>> Jobs(const AnnotateOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(options.replay, error))
    return std::vector<Job>{{options.replay, options.trace_out}};
  LAMINA_ASSIGN(const auto files, engine::FindTraces({options.replay}));
  std::vector<Job> jobs;
  for (const std::string& file : files) {
    Job job{file, {}};
    if (!options.trace_out.empty()) {
      const fs::path out = fs::path(options.trace_out) /
                           fs::path(file).lexically_relative(options.replay);
      fs::create_directories(out.parent_path(), error);
      if (error) {
        return Fail(InputError(out.parent_path().string(),
                               "cannot be made: " + error.message(),
                               "give a folder for a folder of replays"));
      }
      job.output = out.string();
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// The captures of the rank of a replay; all when either side knows no rank.
std::vector<Segment> SegmentsFor(const engine::Captures& captures,
                                 const trace::Trace& replay,
                                 const std::string& path, bool several) {
  if (!several) return captures.segments;
  const std::optional<int64_t> rank = engine::RankOf(replay, path);
  std::vector<Segment> own;
  for (const Segment& segment : captures.segments) {
    const auto other = engine::RankOf(captures.contexts[segment.file]->trace,
                                      captures.files[segment.file]);
    if (!rank || !other || *rank == *other) own.push_back(segment);
  }
  return own;
}

Result<cudagraph::NameTags> NameTagsOf(const engine::Captures& captures,
                                       const std::vector<Segment>& segments,
                                       const Request& request,
                                       const std::string& tags) {
  if (!request.classic) return cudagraph::TagsByName(segments, request.kind);
  cudagraph::NameTags names;
  for (const analysis::Context* context : captures.contexts)
    LAMINA_TRY(cudagraph::AddClassicTags(*context, tags, names));
  return names;
}

// The number of a replay that is the only one.
constexpr int64_t kOnly = -1;

// The tables of one replay more, with its number in front when there are
// several.
void Append(ResultSet& all, ResultSet one, int64_t number) {
  if (number == kOnly) {
    all.Append(std::move(one));
    return;
  }
  for (Table& table : one.tables) {
    Schema schema = table.schema();
    schema.columns.insert(
        schema.columns.begin(),
        {"trace", ColumnType::kInt, "Number of the replay trace, from 0."});
    auto known = std::find_if(
        all.tables.begin(), all.tables.end(),
        [&](const Table& other) { return other.name() == table.name(); });
    if (known == all.tables.end()) {
      all.tables.emplace_back(std::move(schema));
      known = all.tables.end() - 1;
    }
    std::vector<Value> row;
    for (size_t r = 0; r < table.rows(); ++r) {
      row.assign(1, Value(number));
      for (size_t c = 0; c < table.columns(); ++c)
        row.push_back(table.At(r, c));
      known->AddRow(row);
    }
  }
  for (Note& note : one.notes) {
    note.text = "trace " + std::to_string(number) + ": " + note.text;
    all.notes.push_back(std::move(note));
  }
}

// A replay without the ops that its captures would add to the tree.
Result<std::shared_ptr<engine::Session>> OpenReplay(const std::string& path,
                                                    Asker& asker) {
  engine::OpenOptions open = asker.Open();
  open.captures.clear();
  LAMINA_ASSIGN(auto session, asker.OpenTrace(path, open));
  if (session->captures().empty()) return session;
  // A host has it open with them.
  session.reset();
  LAMINA_ASSIGN(session, engine::Session::Open(path, open));
  return session;
}

// What compiled kernels compute, in their arguments; the share of the device
// time of kernels that is surely joined.
Result<double> AnnotateCompiled(const Job& job,
                                const std::vector<std::string>& code,
                                int64_t number, Asker& asker,
                                ResultSet& result) {
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(auto session, OpenReplay(job.input, asker));
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  const trace::Trace& trace = session->trace();
  LAMINA_ASSIGN(const analysis::CompiledWork work,
                JoinCompiledFiles(code, *context));
  if (!job.output.empty()) {
    if (emit::perfetto::IsPerfettoName(job.output)) {
      return Fail(UsageError("⟨compiled⟩ writes Chrome JSON only",
                             "give a name that ends in .json or .json.gz"));
    }
    LAMINA_TRY(CheckCopyable(trace, "⟨trace⟩"));
    const ScopedStage stage(&asker.times, "copy");
    LAMINA_ASSIGN(const emit::CopyLoss loss,
                  engine::WriteCompiled(job.input, job.output, trace, work));
    WarnOfLoss(job.input, loss, asker);
  }
  ResultSet tables;
  AddCompiledTables(*context, work, tables);
  Append(result, std::move(tables), number);
  int64_t all = 0;
  int64_t sure = 0;
  for (const trace::SliceId s : trace.device_slices()) {
    if (trace.KindOf(s) != trace::Kind::kKernel) continue;
    all += trace.Duration(s);
    const auto use = work.uses.find(s);
    if (use != work.uses.end() && use->second.join != analysis::Join::kLikely)
      sure += trace.Duration(s);
  }
  return all > 0 ? static_cast<double>(sure) / static_cast<double>(all) : 0.0;
}

// Annotates one replay; returns the share of its kernels that are facts.
Result<double> AnnotateOne(const Job& job, const engine::Captures& captures,
                           const Request& request, const std::string& tags,
                           int64_t number, Asker& asker, ResultSet& result) {
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(auto session, OpenReplay(job.input, asker));
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  const trace::Trace& trace = session->trace();
  if (captures.files.empty() && trace.graph_nodes.empty() &&
      request.align.node_tags == nullptr) {
    return Fail(UsageError(
        "⟨from⟩: the trace does not hold how its graphs were recorded",
        "give the trace of the capture or of an eager run"));
  }
  const bool anew = emit::perfetto::IsPerfettoName(job.output);
  if (!job.output.empty() && !anew) LAMINA_TRY(CheckCopyable(trace, "⟨trace⟩"));
  if (request.by_name && anew) {
    return Fail(UsageError("⟨method⟩ name writes Chrome JSON only",
                           "give a name that ends in .json or .json.gz"));
  }
  cudagraph::Annotation annotation;
  {
    const ScopedStage stage(&asker.times, "align");
    annotation = cudagraph::Annotate(
        *context, SegmentsFor(captures, trace, job.input, number != kOnly),
        request.align);
  }
  ResultSet tables;
  if (request.by_name) {
    LAMINA_ASSIGN(const auto names,
                  NameTagsOf(captures, annotation.segments, request, tags));
    tables =
        cudagraph::NameResult(*context, annotation, names, request.classic);
    if (!job.output.empty()) {
      const ScopedStage stage(&asker.times, "copy");
      LAMINA_ASSIGN(const emit::CopyLoss loss,
                    engine::WriteSourceLines(job.input, job.output, trace,
                                             annotation, [&](trace::SliceId s) {
                                               return cudagraph::JoinedTags(
                                                   *context, names,
                                                   request.classic, s);
                                             }));
      WarnOfLoss(job.input, loss, asker);
    }
  } else {
    tables = cudagraph::AnnotationTables(*context, annotation);
    if (!job.output.empty()) {
      const ScopedStage stage(&asker.times, "copy");
      LAMINA_ASSIGN(const emit::CopyLoss loss,
                    engine::WriteAugmented(job.input, job.output, trace,
                                           annotation, request.levels));
      WarnOfLoss(job.input, loss, asker);
    }
  }
  if (!captures.files.empty())
    tables.tables.push_back(cudagraph::MethodTable(*context, annotation));
  Append(result, std::move(tables), number);
  return annotation.FactShare();
}

// The page of one replay holds its events beside the tables, with the ops and
// modules of its captures, so that it has the same views as that of a report.
Status WriteAnnotatePage(const std::string& replay,
                         const std::vector<std::string>& captures,
                         Document& document, const PageRequest& request,
                         Asker& asker) {
  ReportOptions report;
  report.threads = asker.ThreadCount();
  report.captures = captures;
  report.only = {"kernels"};
  engine::OpenOptions open = asker.Open();
  engine::SetUp(open, report);
  LAMINA_ASSIGN(auto session, engine::Session::Open(replay, open));
  LAMINA_ASSIGN(Document kernels,
                engine::MakeReport(*session, report, &asker.times));
  kernels.result.notes.clear();
  document.result.Append(std::move(kernels.result));
  page::PageOptions page;
  page.output = request.output;
  page.threads = report.threads;
  page.max_bytes = asker.page_bytes();
  page.settings = engine::SettingsOf(report);
  page.redact = request.redact;
  page.commands = {{"annotate",
                    request.words.Words(),
                    render::TableNames(document.result),
                    {}}};
  return page::WritePage(*session, document, page);
}

Result<Answer> RunAnnotate(AnnotateOptions options, Asker& asker) {
  // A file to write is the annotated trace.
  if (options.trace_out.empty() && asker.output != "-")
    options.trace_out = asker.output;
  LAMINA_ASSIGN(Request request, Parse(options));
  if (!options.compiled.empty() && !options.from.empty()) {
    return Fail(UsageError("⟨compiled⟩ and ⟨from⟩ are two annotations",
                           "make one of them from the output of the other"));
  }
  std::optional<cudagraph::NodeTags> node_tags;
  if (!options.kernel_annotations.empty()) {
    LAMINA_ASSIGN(node_tags,
                  cudagraph::NodeTags::Read(options.kernel_annotations));
    request.align.node_tags = &*node_tags;
  }
  if (options.replay == "-" && !options.trace_out.empty()) {
    return Fail(UsageError("⟨trace⟩ needs a file to copy",
                           "give the trace by its name, not as -"));
  }
  const std::string tags = options.tags.empty() ? "^line_" : options.tags;
  LAMINA_ASSIGN(const auto jobs, Jobs(options));
  LAMINA_ASSIGN(const auto captures,
                engine::OpenCaptures(options.from, tags, asker.Open()));
  for (const Job& job : jobs) {
    LAMINA_TRY(KeepInputs("⟨trace⟩", job.output, {job.input}));
    LAMINA_TRY(KeepInputs("⟨trace⟩", job.output, captures.files));
  }
  Document document;
  document.command = "annotate";
  double least = 1;
  for (size_t i = 0; i < jobs.size(); ++i) {
    document.inputs.push_back(jobs[i].input);
    const int64_t number = jobs.size() > 1 ? static_cast<int64_t>(i) : kOnly;
    LAMINA_ASSIGN(const double share,
                  options.compiled.empty()
                      ? AnnotateOne(jobs[i], captures, request, tags, number,
                                    asker, document.result)
                      : AnnotateCompiled(jobs[i], options.compiled, number,
                                         asker, document.result));
    least = std::min(least, share);
  }
  document.inputs.insert(document.inputs.end(), captures.files.begin(),
                         captures.files.end());
  if (asker.for_screen() && asker.top == 0) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() == "annotate_kernels";
    });
  }
  const bool has_page = asker.for_page() && jobs.size() == 1 &&
                        !request.by_name && options.compiled.empty() &&
                        jobs[0].input != "-" && asker.Complete();
  Answer answer(std::move(document));
  answer.failed = request.required && 100.0 * least < *request.required;
  if (has_page) {
    answer.page = [replay = jobs[0].input, from = options.from, &asker](
                      Document& shown, const PageRequest& page) {
      return WriteAnnotatePage(replay, from, shown, page, asker);
    };
  }
  return answer;
}

}  // namespace

Body DescribeAnnotate(Description& args, Asker& asker) {
  auto options = std::make_shared<AnnotateOptions>();
  args.Add("replay", options->replay,
           "Trace with replayed graphs, or a folder with one per rank")
      .Required();
  args.Add("--from,--capture", options->from,
           "Traces of the capture or of an eager run, or a folder of "
           "them; not needed where the trace itself says which node "
           "each kernel goes back to (Nsight Systems)");
  AddCompiledTo(args, options->compiled);
  args.Add("--trace", options->trace_out,
           "Write the replay with the tags in the arguments of its "
           "kernels to this file (for a folder: to this folder); "
           "⟨output⟩ FILE.json.gz does the same");
  args.Add("--method", options->method,
           "align: every kernel by its place; name: all tags of its "
           "name, as the simple method does it, for comparison")
      .OneOf({"align", "name"})
      .ShowDefault();
  args.Add("--tags", options->tags,
           "Ranges that count as tags (RE2; default: ^line_)");
  args.Add("--levels", options->levels,
           "Tags to write: op, instance, module, line, range (default: "
           "all); with ⟨method⟩ name the one to collect")
      .SplitAtCommas();
  args.Add("--batch", options->batch,
           "Batch of the replays: its capture is the smallest that "
           "holds it (auto: what the steps say)")
      .ShowDefault();
  args.Add("--kernel-annotations", options->kernel_annotations,
           "JSON that PyTorch wrote while it recorded the graphs: tags "
           "or Python stacks by node id");
  args.Add("--min-evidence", options->min_evidence,
           "No tag for kernels below this level, for example sure");
  args.Add("--require", options->require,
           "Exit with 1 when fewer kernels are matched for sure: 90%");
  asker.AddPageSizeTo(args);
  return [options, &asker] { return RunAnnotate(*options, asker); };
}

}  // namespace lamina::questions
