// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <mutex>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/byte_sink.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/screen.h"
#include "engine/report.h"
#include "findings/answer.h"
#include "questions/questions.h"
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

// What there is to say besides the answer.
void Tell(const Note& note) {
  const std::string text = WithNames(note.text, OptionNames);
  if (note.text.ends_with('\n')) {
    std::fputs(text.c_str(), stderr);
    return;
  }
  // A line that follows the reading is in the way.
  if (note.id == "lost_records" && isatty(STDERR_FILENO))
    std::fputs("\r\x1b[K", stderr);
  std::fprintf(stderr, "lamina: %s%s\n",
               note.severity == Severity::kWarning ? "warning: " : "",
               text.c_str());
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

namespace {

// A page that nobody named, in a folder of its own; empty: there is no room.
std::string UnnamedPage() {
  const char* const base = std::getenv("TMPDIR");
  std::string folder =
      std::string(base != nullptr && *base != 0 ? base : "/tmp") +
      "/lamina-XXXXXX";
  return ::mkdtemp(folder.data()) == nullptr ? "" : folder + "/report.html";
}

// The program in PATH that has this name; empty: none.
std::string InPath(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    std::string file = std::string(TakeUntil(rest, ':')) + "/";
    file += name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

// Shows a file in a browser, or says where it lies.
void OpenInBrowser(const std::string& file) {
  std::string program;
  if (const char* const own = std::getenv("BROWSER"); own != nullptr)
    program = Contains(own, "/") ? own : InPath(own);
  for (const char* const name : {"xdg-open", "open", "wslview"}) {
    if (program.empty()) program = InPath(name);
  }
  std::fprintf(stderr, "lamina: %s%s\n", EscapeTerminal(file).c_str(),
               program.empty() ? " (no browser found: open it by hand)" : "");
  if (program.empty()) return;
  std::error_code error;
  const std::string whole = std::filesystem::absolute(file, error).string();
  const pid_t child = ::fork();
  if (child == 0) {
    // Its output is not that of the program.
    const int none = ::open("/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::dup2(none, fd);
    ::execl(program.c_str(), program.c_str(), whole.c_str(), nullptr);
    ::_exit(127);
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
}

// While it lives, what is written to a terminal goes through a pager: that of
// LAMINA_PAGER or PAGER, else less. One that shows what fits without asking is
// told to.
class Pager {
 public:
  explicit Pager(bool wanted) {
    if (!wanted || isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0)
      return;
    const char* pager = std::getenv("LAMINA_PAGER");
    if (pager == nullptr) pager = std::getenv("PAGER");
    const std::string command = pager == nullptr ? "less" : pager;
    std::string_view rest = command;
    const std::string name(TakeUntil(rest, ' '));
    if (name.empty() || name == "cat" ||
        (!Contains(name, "/") && InPath(name).empty()))
      return;
    // As the terminal has them, not the pipe.
    OutputWidth();
    OutputColor();
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    std::fflush(stdout);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      ::setenv("LESS", "FRX", 0);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[0]);
    if (child_ > 0) {
      terminal_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
      ::dup2(ends[1], STDOUT_FILENO);
    }
    ::close(ends[1]);
  }
  ~Pager() {
    if (child_ <= 0) return;
    std::fflush(stdout);
    ::dup2(terminal_, STDOUT_FILENO);
    ::close(terminal_);
    ::waitpid(child_, nullptr, 0);
  }
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

 private:
  pid_t child_ = -1;
  int terminal_ = -1;
};

}  // namespace

void Common::AddTo(questions::Description& args, Output names,
                   const char* own_format, bool opens) {
  if (names == Output::kFiles) {
    AddRulesTo(args);
    AddRedactTo(args);
    args.Check([this, &args] {
      const auto* const drawn =
          std::get<std::vector<std::string>*>(args.Find("--render")->field);
      return !redact || std::find(drawn->begin(), drawn->end(), "html") !=
                            drawn->end()
                 ? std::string()
                 : "--redact: only pages are redacted; add --render html";
    });
    AddTimingTo(args);
    return;
  }
  std::vector<std::string> formats;
  for (const report::WriterInfo& writer : report::Writers())
    formats.emplace_back(writer.name);
  if (own_format != nullptr) formats.emplace_back(own_format);
  const bool own = names == Output::kOwn;
  const questions::Param& chosen =
      args.Add("--format", format,
               own ? "Format of what is printed"
                   : "Output format (default: what the ending of -o says)")
          .OneOf(formats)
          .ShowDefault();
  args.Add("-o,--output", output,
           own ? "File or folder to write"
               : "File, or folder for csv (default: standard output)");
  if (opens) {
    args.Flag("--open", open,
              "Show the answer as a page in the browser (BROWSER)");
  }
  if (!own) {
    asker.AddOnlyTo(args);
    AddRedactTo(args);
  }
  asker.AddTopTo(args);
  args.Add("--threads", asker.threads, "Threads (default: all cores)")
      .Whole(1, 256);
  AddRulesTo(args);
  args.Flag("--no-cache", no_cache,
            "Parse the trace, and keep nothing in the cache (lamina cache)");
  AddTimingTo(args);
  args.Check([this, &chosen, names, formats] {
    if (open && chosen.given && format != "html")
      return "--open: a page is html, and --format says " + format;
    if (open && output == "-") output = UnnamedPage();
    if (open && output.empty())
      return std::string("--open: there is no room for a page in TMPDIR");
    if (open && FormatOfName(output) != "html")
      return "--open: the name " + output + " is not that of a page (.html)";
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
    if (!chosen.given && !said.empty()) format = said;
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

void Common::AddRulesTo(questions::Description& args) {
  args.Add("--rules", asker.rules_dir,
           "Folder with data files that extend or replace the built-in "
           "ones");
}

void Common::AddRedactTo(questions::Description& args) {
  args.Flag("--redact", redact,
            "Replace paths and names of hosts, users and input files "
            "in a page by tokens");
}

void Common::AddTimingTo(questions::Description& args) {
  args.Flag("--timing", timing,
            "Print the time of each stage and the peak memory to stderr");
}

Common::Common() {
  asker.tell = Tell;
  asker.progress = MakeProgress;
}

Status Common::Prepare() {
  asker.cache = !no_cache;
  asker.watch_inputs = true;
  asker.detail = format == "table"  ? questions::Detail::kScreen
                 : format == "html" ? questions::Detail::kPage
                                    : questions::Detail::kTables;
  if (!redact) return {};
  LAMINA_ASSIGN(auto patterns,
                rules::SecretTable::Load(rules::DataSet(asker.rules_dir)));
  origins.Use(std::move(patterns));
  asker.origins = &origins;
  return {};
}

std::unique_ptr<render::Secrets> Common::SecretsOf(
    const std::vector<std::string>& inputs) const {
  return redact ? std::make_unique<render::Secrets>(origins.SecretsOf(inputs))
                : nullptr;
}

namespace {

int TerminalWidth() {
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

}  // namespace

// Once: a pager stands before the terminal later.
int OutputWidth() {
  static const int width = TerminalWidth();
  return width;
}

ScreenOptions ScreenOfTerminal() {
  const auto set = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string_view() : value;
  };
  ScreenOptions options;
  options.width = OutputWidth();
  options.color = OutputColor();
  options.true_color =
      set("COLORTERM") == "truecolor" || set("COLORTERM") == "24bit";
  // As POSIX has it: the first that is set says the locale.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (set(name).empty()) continue;
    const std::string locale = LowerCase(set(name));
    options.ascii = !Contains(locale, "utf-8") && !Contains(locale, "utf8") &&
                    isatty(STDOUT_FILENO) != 0;
    break;
  }
  return options;
}

bool OutputColor() {
  static const bool color = [] {
    const char* term = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr &&
           term != nullptr && std::string_view(term) != "dumb";
  }();
  return color;
}

namespace {

Status WriteTables(const Document& document, const Common& common,
                   const findings::TraceAnswer* first = nullptr) {
  const report::WriterInfo* writer = report::FindWriter(common.format);
  LAMINA_CHECK(writer != nullptr);
  report::WriteOptions options;
  options.output = common.output;
  options.width = OutputWidth();
  options.color = common.output == "-" && OutputColor();
  options.top = common.asker.top;
  options.threads = common.asker.ThreadCount();
  if (first != nullptr) {
    options.answer = common.format == "markdown"
                         ? findings::AnswerMarkdown(*first)
                         : findings::AnswerJson(*first);
  }
  if (!common.words.ReadsStdin()) options.words = common.words.Words();
  const auto secrets = common.SecretsOf(document.inputs);
  options.redact = secrets.get();
  return writer->write(document, options);
}

Status WriteAnswer(questions::Answer& answer, const Common& common) {
  questions::PageRequest page;
  page.output = common.output;
  page.words = common.words;
  if (answer.files) return answer.files(page);
  if (answer.text) return WriteFile(common.output, *answer.text);
  Document& document = answer.document;
  LAMINA_TRY(questions::KeepInputs("-o", common.output, document.inputs));
  for (const auto& [format, make] : answer.forms) {
    if (format == common.format) return WriteFile(common.output, make());
  }
  if (answer.sheets && common.format != "table") {
    for (const Note& note : document.result.notes)
      std::fprintf(stderr, "%s\n", EscapeTerminal(note.text).c_str());
  }
  LAMINA_TRY(engine::KeepOnly(document.result, common.asker.only));
  if (answer.first != nullptr && !answer.full && common.format == "table" &&
      common.output == "-") {
    ScreenOptions screen = ScreenOfTerminal();
    if (!document.inputs.empty()) screen.input = document.inputs.front();
    return WriteFile("-", FormatScreen(*answer.first, screen));
  }
  if (common.format != "html" || !answer.page)
    return WriteTables(document, common, answer.first.get());
  const auto secrets = common.SecretsOf(document.inputs);
  page.redact = secrets.get();
  return answer.page(document, page);
}

Result<int> Print(questions::Answer& answer, Common& common) {
  if (!answer.nothing) {
    const ScopedStage stage(&common.asker.times, "write");
    const bool screen = answer.first != nullptr && !answer.full;
    const Pager pager(common.format == "table" && common.output == "-" &&
                      !screen);
    LAMINA_TRY(WriteAnswer(answer, common));
  }
  if (common.open) OpenInBrowser(common.output);
  if (!answer.below.empty()) {
    std::fputs(answer.below.c_str(), common.output == "-" ? stdout : stderr);
  }
  for (const std::string& miss : answer.misses)
    std::fprintf(stderr, "lamina: %s\n", miss.c_str());
  if (answer.fault) return Fail(*answer.fault);
  return answer.failed ? kCheckFailed : kFine;
}

// What any option names must not be replaced.
Status KeepNamed(const questions::Description& takes,
                 const std::string& output) {
  for (const questions::Param& param : takes.params()) {
    if (param.LongOption() == "--output") continue;
    std::vector<std::string> values;
    if (const auto* const* one = std::get_if<std::string*>(&param.field)) {
      values = {**one};
    } else if (param.many()) {
      values = *std::get<std::vector<std::string>*>(param.field);
    }
    LAMINA_TRY(questions::KeepInputs("-o", output, values));
  }
  return {};
}

Run RunOf(const CommandInfo& command, questions::Description& takes,
          Common& common) {
  const questions::Body body = command.describe(takes, common.asker);
  common.AddTo(takes, command.output, command.own_format,
               std::string_view(command.name) == "report");
  return [body, &command, &takes, &common]() -> Result<int> {
    const bool owns = command.owns_output != nullptr
                          ? command.owns_output(takes, common)
                          : command.output == Output::kOwn;
    LAMINA_TRY(KeepNamed(takes, common.output));
    if (owns) std::swap(common.asker.output, common.output);
    auto answer = body();
    const NamesOf names = takes.Options();
    if (!answer) return Fail(WithNames(std::move(answer).error(), names));
    questions::PutNames(*answer, names);
    return Print(*answer, common);
  };
}

}  // namespace

void AddCommand(Place place, const CommandInfo& command, Common& common,
                Run& run) {
  // What is described lives as long as the line.
  const auto takes = std::make_shared<questions::Description>();
  Run body;
  if (command.describe != nullptr) {
    body = RunOf(command, *takes, common);
  } else if (command.add != nullptr) {
    body = command.add(*takes, common);
  }
  Place own = place.Command(command.name, command.summary, command.example,
                            *takes, [&run, takes, body] {
                              if (body) run = body;
                            });
  for (const CommandInfo& sub : command.commands)
    AddCommand(own, sub, common, run);
  if (!command.commands.empty()) own.RequireCommand();
}

Status Write(Document& document, const Common& common) {
  questions::PutNames(document, OptionNames);
  LAMINA_TRY(engine::KeepOnly(document.result, common.asker.only));
  return WriteTables(document, common);
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
