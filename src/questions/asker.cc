// SPDX-License-Identifier: Apache-2.0
#include "questions/asker.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/opened.h"
#include "base/parallel.h"
#include "snapshot/cache.h"

namespace lamina::questions {

void Asker::AddCapturesTo(Description& takes) {
  takes.Add("--capture", captures,
            "Traces in which the replayed graphs were captured, or a "
            "folder of them: their ops join the tree below the launches");
}

void Asker::AddPageSizeTo(Description& takes) {
  takes
      .Add("--html-max-mb", page_mb,
           "Size above which a page leaves out detail, in MB")
      .Within(0.001, 2000.0)
      .ShowDefault();
}

void Asker::AddRegionTo(Description& takes, bool with_step) {
  if (with_step) {
    takes.Add("--step", step,
              "Ranges of the host whose names match are the steps (RE2), as "
              "in '^iteration'");
  }
  takes.Add("--range", range,
            "Only what happened in, or was launched from, ranges of this name "
            "('*' stands for any text)");
}

void Asker::AddOnlyTo(Description& takes) {
  takes.Add("--only", only, "Only these tables: a,b")
      .SplitAtCommas()
      .OneWord()
      .ValueName("TABLE");
}

void Asker::AddTopTo(Description& takes) {
  takes.Add("--top", top, "Rows per table").Whole(0, int64_t{1} << 32);
}

void Asker::AddOutputTo(Description& takes, const std::string& doc) {
  takes.Add("-o,--output", output, doc);
}

int Asker::ThreadCount() const {
  return threads > 0 ? threads : DefaultThreads();
}

engine::OpenOptions Asker::Open() {
  if (watch_inputs) WatchInputs();
  engine::OpenOptions options;
  options.threads = ThreadCount();
  options.rules_dir = rules_dir;
  options.times = &times;
  options.progress = Progress("reading");
  options.stop = stop;
  options.captures = captures;
  options.step = step;
  options.range = range;
  options.origins = origins;
  options.cache = cache && !snapshot::IsOff();
  options.read = [this](const std::string& path, const trace::Trace& trace) {
    SayLosses(path, trace::FindLosses(trace.diagnostics));
  };
  return options;
}

std::function<Result<std::shared_ptr<engine::Session>>(
    const std::string& path, uint64_t file_number,
    const engine::OpenOptions& open)>
Asker::OpenRank() const {
  if (stop == nullptr && captures.empty()) return {};
  return [flag = stop, captures = captures](const std::string& path, uint64_t,
                                            const engine::OpenOptions& how)
             -> Result<std::shared_ptr<engine::Session>> {
    engine::OpenOptions open = how;
    open.stop = flag;
    open.captures = captures;
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> session,
                  engine::Session::Open(path, open));
    return session;
  };
}

Result<std::shared_ptr<engine::Session>> Asker::OpenTrace(
    const std::string& path) {
  return OpenTrace(path, Open());
}

Result<std::shared_ptr<engine::Session>> Asker::OpenTrace(
    const std::string& path, const engine::OpenOptions& open) {
  const bool plain = traces != nullptr && open.captures == traces->captures &&
                     (open.captures.empty() ||
                      open.captured_frames == traces->captured_frames) &&
                     open.rules_dir == traces->rules_dir &&
                     (open.device.empty() || open.device == traces->device) &&
                     open.origins == nullptr && open.step.empty() &&
                     open.range.empty();
  if (!plain) {
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> own,
                  engine::Session::Open(path, open));
    return own;
  }
  LAMINA_ASSIGN(auto session, traces->open(path));
  SayLosses(path, trace::FindLosses(session->trace().diagnostics));
  return session;
}

void Asker::SayLosses(const std::string& path, const trace::Losses& losses) {
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
  Warn("lost_records",
       text + "; see trace_health of ⟨report()⟩" + (tell ? "" : "."));
}

void Asker::Warn(const char* id, const std::string& text) {
  Note note = MakeNote(Severity::kWarning, id, text);
  if (tell) return tell(note);
  // A note is of one line.
  std::replace(note.text.begin(), note.text.end(), '\n', ' ');
  told.push_back(std::move(note));
}

void Asker::Say(const char* id, const std::string& text) {
  Note note = MakeNote(Severity::kInfo, id, text);
  if (tell) return tell(note);
  told.push_back(std::move(note));
}

void Asker::Mention(const std::string& text) const {
  if (tell) tell(MakeNote(Severity::kInfo, "", text));
}

std::function<void(uint64_t, uint64_t)> Asker::Progress(
    const std::string& what) const {
  if (!progress) return {};
  return progress(what);
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

}  // namespace lamina::questions
