// SPDX-License-Identifier: Apache-2.0
//
// Questions of the one list (questions/questions.h), asked by other programs.
#include <algorithm>
#include <map>
#include <mutex>

#include "api/guard.h"
#include "api/session_impl.h"
#include "base/parallel.h"
#include "findings/answer.h"
#include "questions/questions.h"
#include "questions/report.h"
#include "snapshot/cache.h"

namespace lamina {
namespace {

using Documented = Result<std::shared_ptr<const Document>>;

// Traces that one question opens, which may want one of them again. As many as
// this many bytes of input fill stay open until it is answered.
class Traces {
 public:
  explicit Traces(engine::OpenOptions options) : options_(std::move(options)) {}

  Result<std::shared_ptr<engine::Session>> Open(const std::string& path) {
    {
      const std::lock_guard lock(mutex_);
      if (auto known = known_[path].lock()) return known;
    }
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> session,
                  engine::Session::Open(path, options_));
    const uint64_t bytes = session->trace().info.input_bytes;
    const std::lock_guard lock(mutex_);
    known_[path] = session;
    bytes_ += bytes;
    if (bytes_ <= kMostBytes) kept_.push_back(session);
    return session;
  }

 private:
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

  const engine::OpenOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<engine::Session>> known_;
  std::vector<std::shared_ptr<engine::Session>> kept_;
  uint64_t bytes_ = 0;
};

// Several traces may be read at a time; who is told hears of one after the
// other.
std::function<void(uint64_t, uint64_t)> Telling(
    const ProgressFunction& progress) {
  if (!progress) return {};
  return [&progress, mutex = std::make_shared<std::mutex>()](uint64_t done,
                                                             uint64_t total) {
    const std::lock_guard lock(*mutex);
    progress({"reading", done, total});
  };
}

// Who asks, of traces that were opened so.
struct Caller {
  Caller(const OpenOptions& opened, const ProgressFunction& progress,
         const std::optional<StopSource>& stop) {
    traces.rules_dir = opened.rules_dir;
    traces.device = opened.device;
    traces.captures = opened.captures;
    traces.captured_frames = opened.captured_frames;
    asker.threads = opened.threads;
    asker.rules_dir = opened.rules_dir;
    asker.captures = opened.captures;
    asker.cache = opened.cache;
    asker.traces = &traces;
    asker.stop = api::FlagOf(stop);
    asker.progress = [told = Telling(progress)](const std::string&) {
      return told;
    };
  }
  Caller(const Caller&) = delete;

  questions::OpenedTraces traces;
  questions::Asker asker;
};

// What is asked is about the trace that is open, and opens no other.
void AnswerByOpen(const std::string& path,
                  const std::shared_ptr<engine::Session>& session,
                  Caller& caller) {
  caller.traces.open = [&path, &session](const std::string& asked)
      -> Result<std::shared_ptr<engine::Session>> {
    if (asked == path) return session;
    return Fail(InputError(asked, "is not the trace that is open"));
  };
}

Status MayWrite(const questions::Question& question, bool allow_write) {
  if (!question.info.writes || allow_write) return {};
  return Fail(UsageError(question.info.name + " makes files",
                         "set allow_write where that is wanted"));
}

Documented Run(const questions::Question& question, const Params& params,
               Caller& caller) {
  LAMINA_ASSIGN(auto made, questions::Ask(question, params, caller.asker));
  return std::make_shared<const Document>(std::move(made.document));
}

}  // namespace

const std::vector<QuestionInfo>& ListQuestions() {
  static const std::vector<QuestionInfo> questions = [] {
    std::vector<QuestionInfo> out;
    for (const questions::Question& question : questions::Questions())
      out.push_back(question.info);
    return out;
  }();
  return questions;
}

Documented Session::Ask(std::string_view question, const Params& params,
                        const RunOptions& options) {
  return api::Guarded(options.stop, [&]() -> Documented {
    LAMINA_ASSIGN(const questions::Question* const asked,
                  questions::FindQuestion(question));
    const QuestionInfo& info = asked->info;
    if (!info.of_trace) {
      return Fail(UsageError(info.name + " is no question to one trace",
                             "lamina::Ask takes the files that it is about"));
    }
    for (const ParamInfo& param : info.params) {
      if (!params.contains(param.name)) continue;
      if (param.at_opening) {
        return Fail(UsageError(info.name + ": " + param.name +
                                   " is decided when the trace is opened",
                               "give it in OpenOptions"));
      }
      if (param.name == "trace") {
        return Fail(UsageError(info.name + ": the trace is that of the session",
                               "leave trace out"));
      }
    }
    Params all = params;
    all["trace"] = impl_->info.path;
    const auto takes = [&](std::string_view name) {
      return std::any_of(
          info.params.begin(), info.params.end(),
          [&](const ParamInfo& param) { return param.name == name; });
    };
    if (!impl_->opened.compiled.empty() && takes("compiled"))
      all.try_emplace("compiled", impl_->opened.compiled);
    WatchedInputs watched;
    if (info.writes) {
      LAMINA_TRY(impl_->Unchanged());
      watched.Add(impl_->info.path, impl_->state);
    }
    LAMINA_TRY(MayWrite(*asked, options.allow_write));
    const Impl::Asked key(info.name, all);
    auto& answers = impl_->answers;
    const auto known = [&]() -> std::shared_ptr<const Document> {
      const auto found =
          std::find_if(answers.begin(), answers.end(),
                       [&](const auto& one) { return one.first == key; });
      if (found == answers.end()) return nullptr;
      std::rotate(found, found + 1, answers.end());
      return answers.back().second;
    };
    // A file beside the trace may be another one the next time: those that are
    // named, and the findings that somebody knows of.
    const bool kept = !info.writes && !asked->reads_beside &&
                      std::none_of(info.params.begin(), info.params.end(),
                                   [&](const ParamInfo& param) {
                                     return param.role != ParamRole::kValue &&
                                            params.contains(param.name);
                                   });
    Caller caller(impl_->opened, options.progress, options.stop);
    AnswerByOpen(impl_->info.path, impl_->session, caller);
    if (!kept) return Run(*asked, all, caller);
    return impl_->answers_once.Get(
        impl_->mutex, key, known, [&]() -> Documented {
          LAMINA_ASSIGN(auto document, Run(*asked, all, caller));
          const std::lock_guard lock(impl_->mutex);
          if (answers.size() == Impl::kAnswers) answers.erase(answers.begin());
          answers.emplace_back(key, document);
          return document;
        });
  });
}

Result<std::shared_ptr<const std::string>> Session::Answer(
    const RunOptions& options) {
  using Found = Result<std::shared_ptr<const std::string>>;
  return api::Guarded(options.stop, [&]() -> Found {
    return impl_->answer_once.Get(
        impl_->mutex, 0, [&] { return impl_->answer; },
        [&]() -> Found {
          LAMINA_ASSIGN(const questions::Question* const report,
                        questions::FindQuestion("report"));
          Caller caller(impl_->opened, options.progress, options.stop);
          AnswerByOpen(impl_->info.path, impl_->session, caller);
          LAMINA_ASSIGN(auto made,
                        questions::Ask(*report, {{"trace", impl_->info.path}},
                                       caller.asker));
          if (made.first == nullptr)
            return Fail(InputError(impl_->info.path, "gives no answer"));
          auto text = std::make_shared<const std::string>(
              findings::AnswerJson(*made.first));
          const std::lock_guard lock(impl_->mutex);
          impl_->answer = text;
          return text;
        });
  });
}

Status Session::WritePage(const std::string& path, const RunOptions& options) {
  return api::Guarded(options.stop, [&]() -> Status {
    LAMINA_TRY(impl_->Unchanged());
    LAMINA_TRY(questions::KeepInputs("path", path, {impl_->info.path}));
    Caller caller(impl_->opened, options.progress, options.stop);
    AnswerByOpen(impl_->info.path, impl_->session, caller);
    caller.asker.detail = questions::Detail::kPage;
    questions::ReportParams report;
    report.trace = impl_->info.path;
    report.compiled = impl_->opened.compiled;
    LAMINA_ASSIGN(
        questions::Answer made,
        questions::Complete(
            [&] { return questions::AskReport(report, caller.asker); },
            caller.asker));
    questions::PutNames(made.document, PlainNames);
    if (!made.page) {
      return Fail(UsageError("there is no page of " + impl_->info.path,
                             "write its tables instead"));
    }
    questions::PageRequest request;
    request.output = path;
    return made.page(made.document, request);
  });
}

Documented Ask(std::string_view question, const Params& params,
               const AskOptions& options) {
  return api::Guarded(options.stop, [&]() -> Documented {
    LAMINA_ASSIGN(const questions::Question* const asked,
                  questions::FindQuestion(question));
    LAMINA_TRY(MayWrite(*asked, options.allow_write));
    OpenOptions opened;
    opened.threads = options.threads > 0 ? options.threads : DefaultThreads();
    opened.rules_dir = options.rules_dir;
    opened.cache = options.cache && !snapshot::IsOff();
    std::map<std::string, std::shared_ptr<engine::Session>> open;
    const auto trace = params.find("trace");
    const std::string* const asked_trace =
        trace == params.end() ? nullptr
                              : std::get_if<std::string>(&trace->second);
    for (size_t i = 0; i < options.open.size(); ++i) {
      if (options.open[i] == nullptr)
        return Fail(UsageError("a trace of `open` is null", "open it first"));
      const Session::Impl& impl = *options.open[i]->impl_;
      if (i == 0 && opened.rules_dir.empty())
        opened.rules_dir = impl.opened.rules_dir;
      if (impl.opened.rules_dir != opened.rules_dir) {
        return Fail(UsageError(
            impl.info.path + " was opened with other rules than the question "
                             "or another trace has",
            "open all with one rules_dir"));
      }
      // Where the question names no device, it is that of its open trace.
      if (asked_trace != nullptr && *asked_trace == impl.info.path)
        opened.device = impl.opened.device;
      const auto [place, is_new] =
          open.try_emplace(impl.info.path, impl.session);
      if (!is_new && place->second != impl.session) {
        return Fail(UsageError(impl.info.path + " is open twice in `open`",
                               "which of them is meant cannot be said"));
      }
    }
    Caller caller(opened, options.progress, options.stop);
    engine::OpenOptions how;
    how.threads = opened.threads;
    how.rules_dir = opened.rules_dir;
    how.cache = opened.cache;
    how.stop = caller.asker.stop;
    how.progress = caller.asker.Progress("reading");
    Traces others(std::move(how));
    caller.traces.open = [&](const std::string& path)
        -> Result<std::shared_ptr<engine::Session>> {
      const auto found = open.find(path);
      if (found != open.end()) return found->second;
      return others.Open(path);
    };
    return Run(*asked, params, caller);
  });
}

}  // namespace lamina
