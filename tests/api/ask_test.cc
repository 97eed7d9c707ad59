// SPDX-License-Identifier: Apache-2.0
//
// Questions as a program outside the project asks them: public headers only.
// That answers are those of the program is held by the check `questions`.
//
// Why it is longer than 250 lines: what a caller may do wrong, all of it.
#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <lamina/session.h>
#include <map>
#include <thread>
#include <unistd.h>

#include "source_dir.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using Answer = Result<std::shared_ptr<const Document>>;

const std::string kSamples = LAMINA_SOURCE_DIR "/samples/";
const std::string kTrace = kSamples + "serve.json.gz";

std::shared_ptr<Session> Open(const std::string& path,
                              const OpenOptions& options = {}) {
  auto session = Session::Open(path, options);
  EXPECT_TRUE(session) << (session ? "" : session.error().ToString());
  return session ? *session : nullptr;
}

// All tables and notes, exact; or the error.
std::string Dump(const Answer& answer) {
  if (!answer) return answer.error().ToString();
  std::string out;
  for (const Table& table : (*answer)->result.tables) {
    out += "\n" + table.name() + ":";
    for (const Column& column : table.schema().columns)
      out += column.name + ",";
    for (size_t row = 0; row < table.rows(); ++row) {
      out += "\n";
      for (size_t c = 0; c < table.columns(); ++c) {
        out += table.IsNull(row, c) ? "NULL" : CellText(table, row, c);
        out += ",";
      }
    }
  }
  for (const Note& note : (*answer)->result.notes) out += "\n" + note.text;
  return out;
}

class Folder {
 public:
  Folder() {
    path_ = (fs::temp_directory_path() /
             ("lamina_ask_" + std::to_string(::getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()))
                .string();
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

TEST(Ask, ListsWhatCanBeAsked) {
  ASSERT_GT(ListQuestions().size(), 20U);
  for (const QuestionInfo& info : ListQuestions()) {
    EXPECT_FALSE(info.doc.empty() || info.command.empty()) << info.name;
    if (info.name != "layers") continue;
    EXPECT_TRUE(info.of_trace && !info.writes);
    for (const ParamInfo& param : info.params) {
      if (param.name == "trace") {
        EXPECT_TRUE(param.required);
        EXPECT_EQ(param.role, ParamRole::kPath);
      }
      EXPECT_EQ(param.at_opening, param.name == "capture");
      if (param.name == "stage") {
        EXPECT_EQ(param.option, "--stage");
        EXPECT_EQ(param.default_text, "all");
        EXPECT_EQ(param.choices.size(), 6U);
      }
      if (param.name == "min_layers") {
        EXPECT_EQ(param.type, ParamType::kInt);
        EXPECT_EQ(param.low, 2);
        EXPECT_EQ(param.high, 100000);
      }
    }
  }
}

TEST(Ask, KeepsAnswers) {
  const auto session = Open(kTrace);
  const auto first = session->Ask("layers", {{"stage", "decode"}});
  const auto again = session->Ask("layers", {{"stage", "decode"}});
  const auto other = session->Ask("layers", {{"stage", "prefill"}});
  ASSERT_TRUE(first && again && other) << Dump(first);
  EXPECT_EQ(first->get(), again->get());
  EXPECT_NE(Dump(first), Dump(other));
  // What is about another file, too, may be different the next time.
  const Params beside = {{"ranks", kSamples + "ranks"}};
  const std::string rank = kSamples + "ranks/rank0.json.gz";
  const auto job = Open(rank);
  const auto host = job->Ask("host", beside);
  const auto host_again = job->Ask("host", beside);
  ASSERT_TRUE(host && host_again) << Dump(host);
  EXPECT_NE(host->get(), host_again->get());
  EXPECT_EQ(Dump(host), Dump(host_again));
  // Of many questions the last ones.
  for (int64_t top = 1; top < 40; ++top)
    ASSERT_TRUE(session->Ask("tree", {{"top", top}}));
  const auto later = session->Ask("layers", {{"stage", "decode"}});
  EXPECT_EQ(Dump(first), Dump(later));
  EXPECT_NE(first->get(), later->get());
}

// A file that is gone cannot be read again.
TEST(Ask, AsksTheTraceThatIsOpen) {
  const Folder folder;
  const std::string path = folder / "t.json.gz";
  fs::copy_file(kTrace, path);
  OpenOptions options;
  options.cache = false;
  const auto session = Open(path, options);
  std::map<std::string, std::string> expected;
  const char* const kQuestions[] = {"report", "diagnose", "layers", "tree",
                                    "host"};
  for (const char* question : kQuestions)
    expected[question] = Dump(Ask(question, {{"trace", path}}));
  // Two that are compared, of which one is open.
  const Params pair = {{"a", path}, {"b", kSamples + "moe.json.gz"}};
  const std::string difference = Dump(Ask("diff", pair));
  fs::remove(path);
  for (const char* question : kQuestions)
    EXPECT_EQ(Dump(session->Ask(question)), expected[question]) << question;
  AskOptions open;
  open.open = {session};
  EXPECT_EQ(Dump(Ask("diff", pair, open)), difference);
  EXPECT_EQ(Dump(Ask("layers", {{"trace", path}}, open)), expected["layers"]);
  const auto gone = Ask("layers", {{"trace", path}});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kInput);
}

TEST(Ask, KnowsHowATraceWasOpened) {
  const std::string replay = kSamples + "graphs/replay.json.gz";
  const std::string capture = kSamples + "graphs/capture.json.gz";
  OpenOptions options;
  options.captures = {capture};
  const auto session = Open(replay, options);
  for (const char* question : {"report", "layers", "tree"}) {
    EXPECT_EQ(Dump(session->Ask(question)),
              Dump(Ask(question, {{"trace", replay}, {"capture", capture}})))
        << question;
    EXPECT_NE(Dump(session->Ask(question)),
              Dump(Ask(question, {{"trace", replay}})))
        << question;
    const auto again = session->Ask(question, {{"capture", capture}});
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().what.find("when the trace is opened"),
              std::string::npos);
  }
  // Its own rules are without the ops of captures.
  EXPECT_EQ(Dump(session->Ask("annotate", {{"from", capture}})),
            Dump(Ask("annotate", {{"trace", replay}, {"from", capture}})));

  const std::string rules = kSamples + "rules";
  OpenOptions with_rules;
  with_rules.rules_dir = rules;
  const auto ruled = Open(kTrace, with_rules);
  AskOptions ask_rules;
  ask_rules.rules_dir = rules;
  EXPECT_EQ(Dump(ruled->Ask("report")),
            Dump(Ask("report", {{"trace", kTrace}}, ask_rules)));
  // Both sides of a comparison have the same ones.
  const auto plain = Open(kSamples + "moe.json.gz");
  AskOptions mixed;
  mixed.open = {ruled, plain};
  const auto refused =
      Ask("diff", {{"a", kTrace}, {"b", kSamples + "moe.json.gz"}}, mixed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  mixed.open = {ruled};
  EXPECT_TRUE(
      Ask("diff", {{"a", kTrace}, {"b", kSamples + "moe.json.gz"}}, mixed));

  OpenOptions device;
  device.device = "b200";
  const auto other = Open(kTrace, device);
  EXPECT_EQ(Dump(other->Ask("report", {{"layout", "tracelens"}})),
            Dump(Ask("report", {{"trace", kTrace},
                                {"layout", "tracelens"},
                                {"device", "b200"}})));
}

// An open trace is asked as it was opened, but for what the question names.
TEST(Ask, NamesOtherThanTheOpenTraceHas) {
  const std::string replay = kSamples + "graphs/replay.json.gz";
  const std::string capture = kSamples + "graphs/capture.json.gz";
  OpenOptions with_captures;
  with_captures.captures = {capture};
  AskOptions open;
  open.open = {Open(replay, with_captures)};
  const Params bare = {{"trace", replay}};
  const Params named = {{"trace", replay}, {"capture", capture}};
  for (const char* question : {"report", "layers", "tree"}) {
    EXPECT_EQ(Dump(Ask(question, bare, open)), Dump(Ask(question, named)))
        << question;
  }
  // Annotating is about captures: the open one does not count.
  const Params annotate = {{"trace", replay}, {"from", capture}};
  EXPECT_EQ(Dump(Ask("annotate", annotate, open)),
            Dump(Ask("annotate", annotate)));
  AskOptions without;
  without.open = {Open(replay)};
  EXPECT_EQ(Dump(Ask("report", named, without)), Dump(Ask("report", named)));
  EXPECT_NE(Dump(Ask("report", named, without)),
            Dump(Ask("report", bare, without)));

  OpenOptions with_device;
  with_device.device = "b200";
  AskOptions other;
  other.open = {Open(kTrace, with_device)};
  const auto on = [](const char* device) {
    return Params{
        {"trace", kTrace}, {"layout", "tracelens"}, {"device", device}};
  };
  for (const char* device : {"b200", "a100"}) {
    EXPECT_EQ(Dump(Ask("report", on(device), other)),
              Dump(Ask("report", on(device))))
        << device;
  }
  EXPECT_EQ(
      Dump(Ask("report", {{"trace", kTrace}, {"layout", "tracelens"}}, other)),
      Dump(Ask("report", on("b200"))));
}

// Who asks first makes the answer, and the others wait for it.
TEST(Ask, AnswersOnceForAllWhoAskAtATime) {
  const auto session = Open(kTrace);
  constexpr size_t kThreads = 8;
  Answer answers[kThreads], reports[kThreads];
  std::atomic<uint64_t> told = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      answers[t] = session->Ask("layers");
      RunOptions options;
      options.progress = [&](const Progress&) { ++told; };
      reports[t] = session->Report({}, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < kThreads; ++t) {
    ASSERT_TRUE(answers[t] && reports[t]);
    EXPECT_EQ(answers[t]->get(), answers[0]->get());
    EXPECT_EQ(reports[t]->get(), reports[0]->get());
  }
  // One of them ran the analyses.
  uint64_t once = 0;
  RunOptions alone;
  alone.progress = [&](const Progress&) { ++once; };
  ASSERT_TRUE(Open(kTrace)->Report({}, alone));
  EXPECT_EQ(told, once);
}

TEST(Ask, RefusesWhatCannotBe) {
  const auto session = Open(kTrace);
  struct Case {
    const char* question;
    Params params;
    const char* says;
  };
  const Case cases[] = {
      {"laers", {}, "there is no question 'laers'; did you mean 'layers'?"},
      {"", {}, "there is no question ''"},
      {"diff", {{"a", "x"}, {"b", "y"}}, "diff is no question to one trace"},
      {"layers", {{"stge", "decode"}}, "did you mean 'stage'?"},
      {"layers", {{"stage", int64_t{1}}}, "'1' is none of its values"},
      {"layers", {{"stage", false}}, "expected a text, got true or false"},
      {"layers", {{"trace", kTrace}}, "the trace is that of the session"},
      {"layers", {{"format", "json"}}, "there is no parameter 'format'"},
      {"layers", {{"perfetto", "out"}}, "there is no parameter 'perfetto'"},
      {"layers", {{"layer", "x-y"}}, "layer: expected numbers like 3"},
      {"layers", {{"only", "laers"}}, "there is no table 'laers'"},
      {"event", {}, "event: uid is missing"},
      {"event", {{"uid", int64_t{-1}}}, "uid: -1 is not from 0"},
      {"event", {{"uid", int64_t{4000000000}}}, "is no span of time"},
      {"tree", {{"depth", 1.5}}, "expected a whole number"},
      {"host", {{"step", "77777"}}, "the trace has no step 77777"},
      {"slice",
       {{"output", "x.json"}, {"step", int64_t{1}}},
       "slice makes files"},
  };
  for (const Case& one : cases) {
    const auto answer = session->Ask(one.question, one.params);
    ASSERT_FALSE(answer) << one.question << " " << one.says;
    EXPECT_EQ(answer.error().kind, ErrorKind::kUsage) << one.says;
    EXPECT_NE(answer.error().ToString().find(one.says), std::string::npos)
        << answer.error().ToString();
  }
  AskOptions null;
  null.open = {nullptr};
  EXPECT_EQ(Ask("cost", {{"op", "aten::mm"}}, null).error().kind,
            ErrorKind::kUsage);
  AskOptions twice;
  twice.open = {session, Open(kTrace)};
  EXPECT_NE(Dump(Ask("layers", {{"trace", kTrace}}, twice)).find("open twice"),
            std::string::npos);
  EXPECT_EQ(Ask("graph_layers", {{"dump", "/nowhere"}}).error().kind,
            ErrorKind::kInput);
  EXPECT_EQ(Ask("ranks", {{"paths", std::vector<std::string>{}}}).error().what,
            "ranks: paths is missing");
  // Whatever a value holds, it is one value.
  for (const char* text : {"--help", "--output=x", "-", "--", "\"", "[a,b]"}) {
    EXPECT_FALSE(Ask("graph_layers", {{"dump", text}, {"section", text}}))
        << text;
    EXPECT_FALSE(session->Ask("layers", {{"layer", text}})) << text;
  }
}

TEST(Ask, WritesOnlyWhereThatIsAllowed) {
  const Folder folder;
  const std::string output = folder / "slice.json";
  const Params params = {
      {"trace", kTrace}, {"output", output}, {"step", int64_t{1}}};
  EXPECT_FALSE(Ask("slice", params));
  EXPECT_FALSE(fs::exists(output));
  AskOptions options;
  options.allow_write = true;
  const auto made = Ask("slice", params, options);
  ASSERT_TRUE(made) << Dump(made);
  EXPECT_GT(Open(output)->info().slices, 0U);
  RunOptions run;
  run.allow_write = true;
  const auto session = Open(kTrace);
  const auto again =
      session->Ask("convert", {{"output", folder / "t.pftrace"}}, run);
  ASSERT_TRUE(again) << Dump(again);
  EXPECT_EQ(Open(folder / "t.pftrace")->info().format, "pftrace");
  // Each time anew.
  fs::remove(folder / "t.pftrace");
  EXPECT_TRUE(session->Ask("convert", {{"output", folder / "t.pftrace"}}, run));
  EXPECT_TRUE(fs::exists(folder / "t.pftrace"));
}

TEST(Ask, WhatIsReadIsNotReplaced) {
  const Folder folder;
  const std::string trace = folder / "trace.json.gz";
  fs::copy_file(kTrace, trace);
  const auto size = fs::file_size(trace);
  AskOptions options;
  options.allow_write = true;
  RunOptions run;
  run.allow_write = true;
  const auto session = Open(trace);
  for (const char* const question : {"slice", "convert"}) {
    Params params = {{"output", trace}};
    if (std::string_view(question) == "slice") params["step"] = int64_t{1};
    EXPECT_FALSE(session->Ask(question, params, run)) << question;
    params["trace"] = trace;
    EXPECT_FALSE(Ask(question, params, options)) << question;
    EXPECT_EQ(fs::file_size(trace), size);
  }
  // Nor is another file copied than the one that was opened.
  fs::remove(trace);
  fs::copy_file(kTrace, trace);
  const auto made = session->Ask(
      "slice", {{"output", folder / "slice.json"}, {"step", int64_t{1}}}, run);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("not the file that was opened"),
            std::string::npos);
}

TEST(Ask, WhatAPipeGaveIsWritten) {
  const Folder folder;
  const int input = ::dup(STDIN_FILENO);
  const int file = ::open(kTrace.c_str(), O_RDONLY);
  ASSERT_GE(::dup2(file, STDIN_FILENO), 0);
  const auto session = Open("-");
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  ::close(file);
  ASSERT_NE(session, nullptr);
  RunOptions run;
  run.allow_write = true;
  const auto made =
      session->Ask("convert", {{"output", folder / "t.pftrace"}}, run);
  ASSERT_TRUE(made) << Dump(made);
  EXPECT_EQ(Open(folder / "t.pftrace")->info().format, "pftrace");
}

TEST(Ask, KnownFindingsAreReadEachTime) {
  const Folder folder;
  const std::string trace = folder / "trace.json.gz";
  fs::copy_file(kTrace, trace);
  const auto session = Open(trace);
  const auto findings = [&] {
    const auto made = session->Ask("diagnose");
    return made ? (*made)->result.Find("findings")->rows() : size_t{999};
  };
  const size_t before = findings();
  ASSERT_GT(before, 0U);
  std::ofstream(folder / ".lamina-findings.yaml")
      << "- {rule: \"*\", reason: known}\n";
  EXPECT_LT(findings(), before);
}

TEST(Ask, ManyThreadsAskOneTrace) {
  const std::vector<std::pair<const char*, Params>> questions = {
      {"report", {}},
      {"diagnose", {}},
      {"layers", {{"variants", true}}},
      {"tree", {{"by", "op"}}},
      {"host", {{"by", "step"}}},
      {"path", {}},
      {"event", {{"uid", int64_t{40}}}},
      {"layers", {{"layer", "0"}}},
  };
  std::vector<std::string> expected;
  for (const auto& [question, params] : questions)
    expected.push_back(Dump(Open(kTrace)->Ask(question, params)));
  const auto session = Open(kTrace);
  constexpr size_t kThreads = 6;
  std::vector<std::vector<std::string>> found(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < questions.size(); ++i) {
          const auto& [question, params] =
              questions[(i + t) % questions.size()];
          found[t].push_back(Dump(session->Ask(question, params)));
          // What compares two traces holds neither while it asks the other.
          if (i == 0) {
            AskOptions open;
            open.open = {session};
            Params pair = {{"a", kTrace}, {"b", kSamples + "moe.json.gz"}};
            if (t % 2 == 1) std::swap(pair["a"], pair["b"]);
            EXPECT_TRUE(Ask("diff", pair, open));
          }
        }
      });
    }
  }
  for (size_t t = 0; t < kThreads; ++t) {
    for (size_t i = 0; i < questions.size(); ++i) {
      EXPECT_EQ(found[t][i], expected[(i + t) % questions.size()])
          << questions[(i + t) % questions.size()].first;
    }
  }
}

TEST(Ask, IsStopped) {
  const auto session = Open(kTrace);
  RunOptions stopped;
  stopped.stop.emplace().Stop();
  const auto none = session->Ask("layers", {}, stopped);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kCancelled);
  // While it reads.
  for (const char* question : {"ranks", "diff", "diagnose"}) {
    AskOptions options;
    options.threads = 2;
    options.cache = false;
    options.stop.emplace();
    options.progress = [&](const Progress& progress) {
      EXPECT_EQ(progress.stage, "reading");
      options.stop->Stop();
    };
    const Params params =
        std::string(question) == "ranks" ? Params{{"paths", kSamples + "ranks"}}
        : std::string(question) == "diff"
            ? Params{{"a", kTrace}, {"b", kSamples + "moe.json.gz"}}
            : Params{{"trace", kTrace}};
    const auto answer = Ask(question, params, options);
    ASSERT_FALSE(answer) << question;
    EXPECT_EQ(answer.error().kind, ErrorKind::kCancelled) << question;
  }
  // Who asks next gets an answer.
  EXPECT_TRUE(session->Ask("layers"));
}

TEST(Ask, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Folder folder;
  const std::string dump = kSamples + "dumps";
  EXPECT_TRUE(Ask("graph_layers", {{"dump", dump}}));
  EXPECT_TRUE(Ask("graph_layer", {{"dump", dump}, {"layer", "3"}}));
  EXPECT_TRUE(Ask("graph_print", {{"dump", dump}}));
  EXPECT_TRUE(Ask("graph_census", {{"dump", dump}}));
  EXPECT_TRUE(Ask("graph_candidates", {{"dump", dump}}));
  EXPECT_TRUE(Ask("memory", {{"files", kSamples + "memory/train.pickle"}}));
  EXPECT_TRUE(Ask("report", {{"trace", kTrace}, {"layout", "tracelens"}}));
  EXPECT_TRUE(Ask("ranks", {{"paths", kSamples + "ranks"}}));
  // What is lost of a file is said in the answer.
  const std::string cut = folder / "cut.txt";
  fs::copy_file(kSamples + "dumps/001_export_export_to_gm.txt", cut);
  fs::resize_file(cut, fs::file_size(cut) * 2 / 3);
  const auto faults = Ask("graph_census", {{"dump", cut}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(faults) << Dump(faults);
  // It stands where that of traces does: behind the verdicts, before the rest.
  const auto& notes = (*faults)->result.notes;
  const auto said =
      std::find_if(notes.begin(), notes.end(),
                   [](const Note& note) { return note.id == "dump_faults"; });
  ASSERT_NE(said, notes.end());
  EXPECT_TRUE(std::all_of(notes.begin(), said, [](const Note& note) {
    return note.severity == Severity::kVerdict;
  }));
  EXPECT_TRUE(std::none_of(said, notes.end(), [](const Note& note) {
    return note.severity == Severity::kVerdict;
  }));
}

}  // namespace
}  // namespace lamina
