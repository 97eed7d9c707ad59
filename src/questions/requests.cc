// SPDX-License-Identifier: Apache-2.0
//
// lamina requests: what users of a server waited for, on the trace of its
// device.
#include <algorithm>
#include <fmt/core.h>

#include "base/byte_source.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "engine/report.h"
#include "findings/findings.h"
#include "questions/bodies.h"
#include "serving/server_log.h"
#include "serving/tables.h"

namespace lamina::questions {
namespace {

struct RequestParams {
  std::string trace;
  std::string bench;
  std::vector<std::string> logs;
  std::string slo;
  std::string request;
  std::string clock = "auto";
  std::string clock_offset;
  std::optional<int64_t> bench_line;
  bool steady = false, findings = false;
};

Result<serving::Records> RecordsOf(const RequestParams& params) {
  serving::ReadOptions read;
  if (params.clock != "auto") {
    read.clock =
        params.clock == "epoch" ? serving::Clock::kEpoch : serving::Clock::kOwn;
  }
  read.line = params.bench_line;
  return serving::ReadRecords(params.bench, read);
}

// Where findings of the trace would save time.
Result<std::vector<serving::FixGain>> GainsOf(
    const std::shared_ptr<engine::Session>& session) {
  LAMINA_ASSIGN(const auto rules, findings::RuleSet::Load(session->data()));
  LAMINA_ASSIGN(const findings::Diagnosis diagnosis,
                findings::Diagnose(session, rules, {}));
  std::vector<serving::FixGain> out;
  for (const findings::Finding& one : diagnosis.findings) {
    if (one.gain_ns <= 0 || one.suppressed || one.small) continue;
    serving::FixGain& gain = out.emplace_back();
    gain.finding = one.rule->id;
    gain.fix = one.todo;
    gain.gain_ns = one.gain_ns;
    gain.low_ns = one.gain_low_ns;
    gain.high_ns = std::max(one.gain_ns, one.gain_high_ns);
    for (const findings::Claim& claim : one.spans) {
      gain.spans.push_back(
          {claim.start_ns,
           claim.start_ns + std::max(claim.dur_ns, claim.owned_ns)});
    }
  }
  return out;
}

// What logs say of passes joins what the trace says; notes say how much.
Result<std::vector<Note>> ApplyLogs(const std::vector<std::string>& logs,
                                    std::vector<serving::ServedPass>& passes) {
  constexpr size_t kMostLogBytes = size_t{1} << 30;
  std::vector<Note> notes;
  for (const std::string& path : logs) {
    LAMINA_ASSIGN(const std::string text, ReadAll(path, kMostLogBytes));
    LAMINA_ASSIGN(const serving::ServerLog log,
                  serving::ParseServerLog(path, text));
    const serving::LogFit fit = serving::ApplyServerLog(log, passes);
    notes.push_back(
        fit.placed
            ? MakeNote(Severity::kInfo, "server_log",
                       fmt::format("{}: {} passes have their load from {}.",
                                   log.format, fit.filled, path))
            : MakeNote(Severity::kWarning, "server_log_unplaced",
                       fmt::format("{}: its {} fit the passes in no one "
                                   "place; nothing is taken from it.",
                                   path, Counted(log.lines.size(), "line"))));
  }
  return notes;
}

// Why requests are not placed, and what to do.
Error NotPlaced(const RequestParams& params, const serving::Join& join) {
  using Status = serving::JoinStatus;
  switch (join.status) {
    case Status::kNoStartTimes:
      return InputError(
          params.bench,
          "has no start times: requests cannot be placed on " + params.trace,
          "record them with --save-detailed of a vLLM that "
          "writes start_times, or with AIPerf");
    case Status::kNoPasses:
      return InputError(
          params.trace,
          "says of no pass what it had to do: requests cannot be placed",
          "record the annotations of the engine; docs/serving.md says how");
    case Status::kClocksApart:
      return InputError(
          params.bench,
          fmt::format("has a clock that is {} {} that of {}, more than a pass: "
                      "requests would come {} the passes that served them",
                      HumanTime(std::abs(join.apart_ns)),
                      join.apart_ns > 0 ? "ahead of" : "behind", params.trace,
                      join.apart_ns > 0 ? "after" : "long before"),
          "⟨clock⟩ own places them by their tokens alone");
    case Status::kAmbiguous:
      return InputError(
          params.bench,
          fmt::format("fits the passes of {} in several places (best {:.0f} "
                      "%, another {:.0f} %)",
                      params.trace, 100 * join.score, 100 * join.second),
          "⟨clock_offset⟩ S places it by hand");
    default:
      return InputError(
          params.bench,
          fmt::format("has times that fit no placement on the passes of {} "
                      "(best {:.0f} %): is it the same run?",
                      params.trace, 100 * join.score),
          "⟨clock_offset⟩ S places it by hand");
  }
}

// On a terminal: what answers; the rest is in files.
void FitRequestScreen(Asker& asker, ResultSet& result) {
  if (!asker.for_screen()) return;
  constexpr size_t kRows = 10;
  if (asker.top == 0) asker.top = kRows;
  if (!asker.only.empty()) return;
  static constexpr std::string_view kCloser[] = {
      "request_passes", "serving_load", "requests_join"};
  std::erase_if(result.tables, [](const Table& table) {
    return table.rows() == 0 ||
           std::find(std::begin(kCloser), std::end(kCloser), table.name()) !=
               std::end(kCloser);
  });
}

Result<Answer> AskRequests(const RequestParams& params, Asker& asker) {
  std::vector<std::string> names;
  for (const Schema& schema : serving::RequestSchemas())
    names.push_back(schema.name);
  LAMINA_TRY(engine::CheckOnly(asker.only, names));
  serving::AccountOptions options;
  LAMINA_ASSIGN(options.limits, serving::ParseLimits(params.slo));
  options.request = params.request;
  serving::JoinOptions how;
  if (!params.clock_offset.empty()) {
    const auto seconds = ParseDouble(params.clock_offset);
    if (!seconds || std::abs(*seconds) > 4e9) {
      return Fail(UsageError("⟨clock_offset⟩: expected seconds",
                             "the clock of the records minus that of the "
                             "trace, as 98765.4321"));
    }
    how.offset_ns = std::llround(*seconds * 1e9);
  }
  LAMINA_ASSIGN(const serving::Records records, RecordsOf(params));
  LAMINA_ASSIGN(const auto session, asker.OpenTrace(params.trace));
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  const ScopedStage stage(&asker.times, "requests");
  LAMINA_ASSIGN(const runs::Units units, runs::FindUnits(*context, true, true));
  std::vector<serving::ServedPass> passes = serving::PassesOf(units);
  options.first_ns = context->trace.first_ns;
  LAMINA_ASSIGN(std::vector<Note> log_notes, ApplyLogs(params.logs, passes));
  serving::Join join;
  join.status = serving::JoinStatus::kNoPasses;
  if (!passes.empty()) {
    join = serving::PlaceRequests(records, passes,
                                  context->trace.info.base_time_ns, how);
  }
  Document document;
  document.command = "requests";
  document.inputs = {params.trace, params.bench};
  if (join.status != serving::JoinStatus::kJoined) {
    document.result = serving::AccountRecords(records, join).result;
    document.result.notes = std::move(log_notes);
    Answer answer(std::move(document));
    answer.fault = NotPlaced(params, join);
    return answer;
  }
  if (params.steady) {
    options.window =
        serving::FindSteadyWindow(passes, options.first_ns, nullptr);
    if (!options.window) {
      return Fail(InputError(params.trace,
                             "has no stretch of even load of 6 passes or more",
                             "leave ⟨steady⟩ out"));
    }
  }
  if (params.findings) {
    LAMINA_ASSIGN(options.gains, GainsOf(session));
  }
  LAMINA_ASSIGN(
      serving::Account account,
      serving::AccountRequests(units, passes, records, join, options));
  document.result = std::move(account.result);
  document.result.notes.insert(document.result.notes.end(), log_notes.begin(),
                               log_notes.end());
  if (options.window) {
    document.result.notes.push_back(MakeNote(
        Severity::kInfo, "requests_steady",
        fmt::format("Summaries are of {} passes of even load, {} to {} of the "
                    "trace; ramp and drain are left out.",
                    options.window->passes,
                    HumanTime(options.window->start_ns - options.first_ns),
                    HumanTime(options.window->end_ns - options.first_ns)),
        {{"serving_window", "", "", {}}}));
  }
  FitRequestScreen(asker, document.result);
  Answer answer(std::move(document));
  answer.failed = account.missed;
  if (account.missed)
    answer.misses.push_back("a limit of a percentile is missed: requests_slo");
  return answer;
}

}  // namespace

Body DescribeRequests(Description& args, Asker& asker) {
  auto params = std::make_shared<RequestParams>();
  args.Add("trace", params->trace, "Trace file of the server").Required();
  args.Add("--bench", params->bench,
           "Records of clients: a bench of vLLM, SGLang, AIPerf or genai-perf, "
           "metrics of requests of TensorRT-LLM or vLLM, or a table")
      .Required()
      .ValueName("FILE");
  args.Add("--log", params->logs,
           "Log of the server, for passes whose load the trace does not say: "
           "vLLM, TensorRT-LLM or SGLang; may be repeated")
      .OneWord()
      .ValueName("FILE");
  args.Add("--server-log", params->logs, "The same as --log")
      .OneWord()
      .ValueName("FILE")
      .In(Group::kHidden);
  args.Add("--slo", params->slo,
           "Limits of a request: ttft, itl, tpot, e2e; p99: before one is a "
           "check of all, with status 1 when it is missed "
           "(ttft=200ms,p99:itl=25ms)");
  args.Add("--request", params->request,
           "Also the path of this request: what its time is made of")
      .ValueName("ID");
  args.Add("--clock", params->clock,
           "Whether times of the records are a wall clock or have any zero")
      .OneOf({"auto", "epoch", "own"})
      .ShowDefault();
  args.Add("--clock-offset", params->clock_offset,
           "Place by hand: the clock of the records minus that of the trace")
      .ValueName("SECONDS");
  args.Add("--bench-line", params->bench_line,
           "Of a file with a line per run this one, from 1 (default: the last)")
      .ValueName("N");
  args.Flag("--findings", params->findings,
            "Also what the findings of the trace mean for users: fix_effects");
  args.Flag("--steady", params->steady,
            "Summaries of the stretch of even load alone");
  return [params, &asker] { return AskRequests(*params, asker); };
}

}  // namespace lamina::questions
