// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <mutex>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/opened.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/host.h"
#include "engine/report.h"
#include "report/writers.h"
#include "snapshot/cache.h"

namespace lamina::cli {
namespace {

// A line on a terminal that follows the reading of an input; nothing in a pipe.
std::function<void(uint64_t, uint64_t)> MakeProgress(const std::string& what) {
  if (!isatty(STDERR_FILENO)) return {};
  using Clock = std::chrono::steady_clock;
  struct State {
    Clock::time_point start = Clock::now();
    Clock::time_point last = Clock::now();
    bool shown = false;
    ~State() {
      if (shown) std::fprintf(stderr, "\r\x1b[K");
    }
  };
  auto state = std::make_shared<State>();
  return [state, what](uint64_t done, uint64_t total) {
    const auto now = Clock::now();
    // Nothing for work that is over in a moment.
    if (now - state->start < std::chrono::milliseconds(500) ||
        now - state->last < std::chrono::milliseconds(100))
      return;
    state->last = now;
    state->shown = true;
    if (total > 0) {
      std::fprintf(
          stderr, "\r\x1b[K%s %3.0f %% of %s", what.c_str(),
          100.0 * static_cast<double>(done) / static_cast<double>(total),
          HumanBytes(static_cast<double>(total)).c_str());
    } else {
      std::fprintf(stderr, "\r\x1b[K%s %s", what.c_str(),
                   HumanBytes(static_cast<double>(done)).c_str());
    }
    std::fflush(stderr);
  };
}

}  // namespace

std::string_view FormatOfName(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {".sarif", "sarif"}, {".sarif.json", "sarif"}, {".json", "json"},
      {".csv", "csv"},     {".html", "html"},        {".htm", "html"},
      {".xlsx", "xlsx"},   {".md", "markdown"},      {".markdown", "markdown"}};
  std::string lower = LowerCase(name);
  if (lower.ends_with(".gz")) lower.resize(lower.size() - 3);
  for (const auto& [ending, format] : kEndings) {
    if (lower.size() > ending.size() && lower.ends_with(ending)) return format;
  }
  return {};
}

void Common::AddTo(Arguments& args, Output names,
                   std::initializer_list<const char*> own_formats) {
  std::vector<std::string> formats;
  for (const report::WriterInfo& writer : report::Writers())
    formats.emplace_back(writer.name);
  formats.insert(formats.end(), own_formats.begin(), own_formats.end());
  const bool own = names == Output::kOwn;
  const Argument chosen =
      args.Add("--format", format,
               own ? "Format of what is printed"
                   : "Output format (default: what the ending of -o says)")
          .OneOf(formats)
          .ShowDefault();
  args.Add("-o,--output", output,
           own ? "File or folder to write"
               : "File, or folder for csv (default: standard output)");
  if (!own) {
    args.Add("--only", only, "Only these tables: a,b")
        .SplitAtCommas()
        .OneWord()
        .ValueName("TABLE");
    AddRedactTo(args);
  }
  args.Add("--top", top, "Rows per table").Whole(0, int64_t{1} << 32);
  args.Add("--threads", threads, "Threads (default: all cores)").Whole(1, 256);
  args.Add("--rules", rules_dir,
           "Folder with data files that extend or replace the built-in "
           "ones");
  args.Flag("--no-cache", no_cache,
            "Parse the trace, and keep nothing in the cache (lamina cache)");
  args.Flag("--timing", timing,
            "Print the time of each stage and the peak memory to stderr");
  args.Check([this, chosen, names, formats] {
    std::string_view said = FormatOfName(output);
    if (names == Output::kOwn ||
        (names == Output::kDocumentOrOwn && said == "json"))
      said = {};
    // Endings of what other programs write: text in such a name would be
    // noticed by whoever reads it.
    if (names == Output::kDocument && said.empty()) {
      static constexpr std::string_view kForeign[] = {
          ".arrow", ".feather", ".ods", ".parquet", ".pdf",
          ".png",   ".svg",     ".xls", ".xml"};
      const std::string lower = LowerCase(output);
      for (const std::string_view ending : kForeign) {
        if (lower.ends_with(ending)) said = ending.substr(1);
      }
    }
    // A folder of tables may have any name.
    std::error_code error;
    if (std::filesystem::is_directory(output, error)) said = {};
    if (!said.empty() &&
        std::find(formats.begin(), formats.end(), said) == formats.end()) {
      return "-o: the name " + output + " says " + std::string(said) +
             ", which is not written here; see --format";
    }
    if (!chosen.given() && !said.empty()) format = said;
    if (!said.empty() && format != said) {
      return "-o: the name " + output + " says " + std::string(said) +
             ", and --format says " + format + "; leave out --format";
    }
    return !redact || format == "html"
               ? std::string()
               : "--redact: only pages are redacted, and this output is " +
                     format + "; add --format html";
  });
}

void Common::AddRedactTo(Arguments& args) {
  args.Flag("--redact", redact,
            "Replace paths and names of hosts, users and input files "
            "in a page by tokens");
}

void Common::AddCapturesTo(Arguments& args) {
  args.Add("--capture", captures,
           "Traces in which the replayed graphs were captured, or a "
           "folder of them: their ops join the tree below the launches");
}

void Common::AddRegionTo(Arguments& args, bool with_step) {
  if (with_step) {
    args.Add("--step", step,
             "Ranges of the host whose names match are the steps (RE2), as "
             "in '^iteration'");
  }
  args.Add("--range", range,
           "Only what happened in, or was launched from, ranges of this name "
           "('*' stands for any text)");
}

int Common::ThreadCount() const {
  return threads > 0 ? threads : DefaultThreads();
}

engine::OpenOptions Common::Open() {
  engine::OpenOptions options;
  options.threads = ThreadCount();
  options.rules_dir = rules_dir;
  options.times = &times;
  options.progress = Progress("reading");
  if (host != nullptr) {
    options.stop = host->stop;
  } else {
    WatchInputs();
  }
  options.captures = captures;
  options.step = step;
  options.range = range;
  options.origins = OriginsToLearn();
  options.cache = !no_cache && !snapshot::IsOff();
  options.read = [this](const std::string& path, const trace::Trace& trace) {
    SayLosses(path, trace::FindLosses(trace.diagnostics));
  };
  return options;
}

std::function<Result<std::shared_ptr<engine::Session>>(
    const std::string& path, uint64_t file_number,
    const engine::OpenOptions& open)>
Common::OpenRank() const {
  if (host == nullptr) return {};
  return [stop = host->stop](const std::string& path, uint64_t,
                             const engine::OpenOptions& how)
             -> Result<std::shared_ptr<engine::Session>> {
    engine::OpenOptions open = how;
    open.stop = stop;
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> session,
                  engine::Session::Open(path, open));
    return session;
  };
}

Result<std::shared_ptr<sql::Source>> Common::OpenSource(
    const std::string& path) {
  const bool plain = host != nullptr && captures == host->captures &&
                     rules_dir == host->rules_dir && !redact && step.empty() &&
                     range.empty();
  if (plain) {
    LAMINA_ASSIGN(auto source, host->open(path));
    LAMINA_ASSIGN(const trace::Trace* const trace, source->trace());
    SayLosses(path, trace::FindLosses(trace->diagnostics));
    return source;
  }
  return std::make_shared<sql::Source>(path, Open());
}

Result<std::shared_ptr<engine::Session>> Common::OpenTrace(
    const std::string& path) {
  return OpenTrace(path, Open());
}

Result<std::shared_ptr<engine::Session>> Common::OpenTrace(
    const std::string& path, const engine::OpenOptions& open) {
  const bool plain = host != nullptr && open.captures == host->captures &&
                     (open.captures.empty() ||
                      open.captured_frames == host->captured_frames) &&
                     open.rules_dir == host->rules_dir &&
                     (open.device.empty() || open.device == host->device) &&
                     open.origins == nullptr && open.step.empty() &&
                     open.range.empty();
  if (!plain) {
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> own,
                  engine::Session::Open(path, open));
    return own;
  }
  struct Held {
    std::shared_ptr<sql::Source> source;
    std::unique_lock<StoppableMutex> lock;
  };
  LAMINA_ASSIGN(auto source, host->open(path));
  LAMINA_ASSIGN(engine::Session* const session, source->session());
  auto held = std::make_shared<Held>();
  SayLosses(path, trace::FindLosses(session->trace().diagnostics));
  held->lock = source->Lock();
  held->source = std::move(source);
  return std::shared_ptr<engine::Session>(std::move(held), session);
}

std::unique_ptr<render::Secrets> Common::SecretsOf(
    const std::vector<std::string>& inputs) const {
  return redact ? std::make_unique<render::Secrets>(origins.SecretsOf(inputs))
                : nullptr;
}

void Common::SayLosses(const std::string& path, const trace::Losses& losses) {
  constexpr size_t kMost = 20;
  // Ranks are read side by side.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if ((!losses.any() && losses.doubts.empty()) || lost_inputs.size() > kMost ||
      !lost_inputs.insert(path).second)
    return;
  std::string what;
  if (losses.any()) what = trace::LossText(losses) + ": " + losses.reasons;
  if (!losses.doubts.empty())
    what += (what.empty() ? "" : "; ") + losses.doubts;
  if (what.ends_with('.')) what.pop_back();
  const std::string text =
      lost_inputs.size() > kMost
          ? "more inputs lost records"
          : EscapeTerminal(fmt::format("{}: {}", path, what));
  if (host != nullptr) {
    told.push_back(MakeNote(Severity::kWarning, "lost_records",
                            text + "; see trace_health of report."));
    return;
  }
  // A line that follows the reading is in the way.
  fmt::print(stderr,
             "{}lamina: warning: {}; see trace_health of lamina report\n",
             isatty(STDERR_FILENO) ? "\r\x1b[K" : "", text);
}

void Common::Warn(const char* id, const std::string& text) {
  if (host != nullptr) {
    told.push_back(MakeNote(Severity::kWarning, id, text));
  } else {
    std::fprintf(stderr, "lamina: warning: %s\n", text.c_str());
  }
}

void Common::Say(const char* id, const std::string& text) {
  if (host != nullptr) {
    told.push_back(MakeNote(Severity::kInfo, id, text));
  } else {
    std::fprintf(stderr, "lamina: %s\n", text.c_str());
  }
}

std::function<void(uint64_t, uint64_t)> Common::Progress(
    const std::string& what) const {
  return host != nullptr ? host->progress : MakeProgress(what);
}

Status Common::LoadSecrets() {
  LAMINA_ASSIGN(auto patterns,
                rules::SecretTable::Load(rules::DataSet(rules_dir)));
  origins.Use(std::move(patterns));
  return {};
}

int OutputWidth() {
  struct winsize size {};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 20)
    return size.ws_col;
  if (const char* columns = std::getenv("COLUMNS")) {
    const auto width = ParseInt(columns);
    if (width && *width > 20 && *width < 1000) return static_cast<int>(*width);
  }
  return 100;
}

bool OutputColor() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr &&
         term != nullptr && std::string_view(term) != "dumb";
}

void AddCommand(CommandLine& line, const CommandInfo& command, Common& common,
                Run& run) {
  const auto body = std::make_shared<Run>();
  Arguments args =
      line.root().Command(command.name, command.summary, command.example,
                          [&run, body] { run = *body; });
  *body = command.add(args, common);
}

Status Write(Document& document, const Common& common) {
  LAMINA_TRY(engine::KeepOnly(document.result, common.only));
  if (common.host != nullptr) {
    for (Table& table : document.result.tables) {
      if (common.top > 0) table.Truncate(common.top);
    }
    auto& notes = document.result.notes;
    std::vector<Note> told = common.told;
    // A report says itself what was lost.
    if (std::any_of(notes.begin(), notes.end(), [](const Note& note) {
          return note.id == "lost_records" || note.id == "trace.damaged";
        })) {
      std::erase_if(told,
                    [](const Note& note) { return note.id == "lost_records"; });
    }
    const auto behind = std::find_if(
        notes.begin(), notes.end(),
        [](const Note& note) { return note.severity != Severity::kVerdict; });
    notes.insert(behind, told.begin(), told.end());
    common.host->take(std::move(document));
    return {};
  }
  const report::WriterInfo* writer = report::FindWriter(common.format);
  LAMINA_CHECK(writer != nullptr);
  report::WriteOptions options;
  options.output = common.output;
  options.width = OutputWidth();
  options.color = common.output == "-" && OutputColor();
  options.top = common.top;
  options.threads = common.ThreadCount();
  if (!common.given.ReadsStdin()) options.words = common.given.Words();
  const auto secrets = common.SecretsOf(document.inputs);
  options.redact = secrets.get();
  return writer->write(document, options);
}

Status KeepInputs(std::string_view option, const std::string& output,
                  const std::vector<std::string>& inputs) {
  std::error_code none_there;
  // Devices and pipes are written in place, and folders only added to.
  if (!std::filesystem::is_regular_file(output, none_there)) return {};
  for (const std::string& input : inputs) {
    if (std::filesystem::equivalent(input, output, none_there)) {
      return Fail(UsageError(
          std::string(option) + ": " + output + " is an input of this command",
          "it would be replaced; give another name"));
    }
  }
  return {};
}

Status CheckCopyable(const trace::Trace& trace, std::string_view option) {
  if (trace.info.format == "kineto") return {};
  return Fail(UsageError(std::string(option) + " copies the input, and " +
                             trace.info.file + " is no JSON trace",
                         "leave it out, or give a trace of torch.profiler"));
}

Result<std::vector<uint32_t>> ParseNumbers(const std::string& option,
                                           const std::string& text) {
  std::vector<uint32_t> out;
  const auto wrong = [&] {
    return Fail(UsageError(option + ": expected numbers like 3, 0-2 or 1,5-7",
                           "they are counted from 0"));
  };
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = std::min(text.find(',', pos), text.size());
    const std::string part = text.substr(pos, end - pos);
    const size_t dash = part.find('-');
    const auto first = ParseInt(part.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > 100000)
      return wrong();
    for (int64_t i = *first; i <= *last; ++i)
      out.push_back(static_cast<uint32_t>(i));
    pos = end + 1;
  }
  if (!text.empty() && out.empty()) return wrong();
  return out;
}

int ExitStatusOf(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
      return kUsage;
    case ErrorKind::kInput:
      return kBadInput;
    case ErrorKind::kCheck:
      return kCheckFailed;
    case ErrorKind::kCancelled:
    case ErrorKind::kLimit:
    case ErrorKind::kInternal:
      return kBadInput;
  }
  return kBadInput;
}

void PrintError(const Error& error) {
  std::fprintf(stderr, "lamina: error: %s\n", error.ToString().c_str());
}

}  // namespace lamina::cli
