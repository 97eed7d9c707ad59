// SPDX-License-Identifier: Apache-2.0
//
// What surrounds a question while it is answered: who asks, which traces are
// open already, and what all questions take.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/timer.h"
#include "engine/session.h"
#include "lamina/result.h"
#include "questions/answer.h"
#include "questions/description.h"
#include "trace/losses.h"

namespace lamina::questions {

// Numbers of events are 32 bits wide.
constexpr int64_t kMaxUid = 0xFFFFFFFF;

// How much of an answer is wanted.
enum class Detail : uint8_t {
  kScreen,  // what fits a terminal
  kTables,  // all tables with all their rows, as for a file
  kPage,    // these, and what only a page shows
};

// Traces that are open already.
struct OpenedTraces {
  // How `open` opens: a question that wants a trace otherwise opens its own.
  std::string rules_dir, device;
  std::vector<std::string> captures;
  bool captured_frames = false;
  // A trace that is open, or is opened now. May be called from many threads.
  std::function<Result<std::shared_ptr<engine::Session>>(
      const std::string& path)>
      open;
};

struct Asker {
  // What many questions take.
  std::vector<std::string> only;      // tables; empty: all
  size_t top = 0;                     // rows per table; 0: all
  std::vector<std::string> captures;  // of replayed graphs
  std::string step, range;            // as in engine::OpenOptions
  std::string output = "-";           // of questions that write files
  double page_mb = 25;                // above, a page leaves out detail

  int threads = 0;  // 0: all cores
  std::string rules_dir;
  bool cache = true;
  Detail detail = Detail::kTables;
  bool is_agent = false;      // which knows only what it is shown
  bool watch_inputs = false;  // no output is put in place once one has changed
  const OpenedTraces* traces = nullptr;  // null: none are open
  const std::atomic<bool>* stop = nullptr;
  // Makes what is told of the reading of inputs; may be null.
  std::function<std::function<void(uint64_t done, uint64_t total)>(
      const std::string& what)>
      progress;
  // Told at once of what else there is to say; null: it joins the notes of the
  // document. Lines that end are whole as they are.
  std::function<void(const Note& note)> tell;
  // Where traces that are opened say what a redacted page must not show.
  engine::Origins* origins = nullptr;

  // Another process says what there is to say.
  bool quiet = false;
  StageTimes times;
  std::set<std::string> lost_inputs;  // inputs whose losses were said
  std::vector<Note> told;             // in the order in which it was said

  // Parameters of the fields above, where a question describes what it takes.
  void AddCapturesTo(Description& takes);
  void AddPageSizeTo(Description& takes);
  // --range and, of questions that have none of their own, --step.
  void AddRegionTo(Description& takes, bool with_step = true);
  // What fronts add where they have it.
  void AddOnlyTo(Description& takes);
  void AddTopTo(Description& takes);
  void AddOutputTo(Description& takes, const std::string& doc);

  int ThreadCount() const;
  bool for_screen() const { return detail == Detail::kScreen; }
  bool for_page() const { return detail == Detail::kPage; }
  uint64_t page_bytes() const { return static_cast<uint64_t>(page_mb * 1e6); }
  // Whether the document is wanted with all its tables and rows.
  bool Complete() const { return top == 0 && only.empty(); }
  engine::OpenOptions Open();
  // A trace to ask: that which is open, where nothing but the trace itself is
  // asked for, else opened now.
  Result<std::shared_ptr<engine::Session>> OpenTrace(const std::string& path);
  Result<std::shared_ptr<engine::Session>> OpenTrace(
      const std::string& path, const engine::OpenOptions& open);
  // For ranks that are read side by side (dist::LoadOptions::open): who asks
  // may stop them, and they get the captures; null where neither is.
  std::function<Result<std::shared_ptr<engine::Session>>(
      const std::string& path, uint64_t file_number,
      const engine::OpenOptions& open)>
  OpenRank() const;
  // Says once of each input what of it could not be used.
  void SayLosses(const std::string& path, const trace::Losses& losses);
  // The same for any warning, and for what is none.
  void Warn(const char* id, const std::string& text);
  void Say(const char* id, const std::string& text);
  // What only who watches wants to know: it is no part of the answer.
  void Mention(const std::string& text) const;
  std::function<void(uint64_t done, uint64_t total)> Progress(
      const std::string& what) const;
};

// An output must not replace what is read: a trace cannot be recorded again.
// `option` is the one that names the output; an empty output is none.
Status KeepInputs(std::string_view option, const std::string& output,
                  const std::vector<std::string>& inputs);

// Whether a copy of the input with additions can be written: of JSON only.
Status CheckCopyable(const trace::Trace& trace, std::string_view option);
// Values of an option like "3", "0-2" or "1,5-7"; at most 100000.
Result<std::vector<uint32_t>> ParseNumbers(const std::string& option,
                                           const std::string& text);

}  // namespace lamina::questions
