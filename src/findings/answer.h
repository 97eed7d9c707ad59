// SPDX-License-Identifier: Apache-2.0
//
// The answer over a trace: what its window was spent on, what limits it, and
// what to change, in the order of what that saves. Made once; a terminal, a
// page and programs show the same numbers and words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "findings/findings.h"

namespace lamina::findings {

// What a nanosecond of a device was spent on, in the order of the bar.
enum class Spent : uint8_t {
  kCompute,
  kCommunication,  // and no computation beside it
  kCopies,         // and neither of the two beside them
  kInput,          // idle from here on: the host makes batches
  kHost,           // the host runs other code, or nothing is recorded of it
  kLaunch,         // the host launches
  kSync,           // the host sits in a call that waits
  kWait,           // submitted work waits
  kOutside,        // other devices work, this one not yet or no more
  kUnknown,        // no launch of the work that follows is recorded
};
inline constexpr size_t kSpent = 10;
// "compute", "communication" ...: the key of the part.
std::string_view SpentKey(Spent spent);
// "data loading", "blocking calls": the words on a screen.
std::string_view SpentWords(Spent spent);

struct BarPart {
  Spent spent = Spent::kCompute;
  int64_t ns = 0;    // of all devices
  double share = 0;  // of all of their time, 0..1
};

struct Family {
  std::string name;
  int64_t ns = 0;  // of all devices, where no kernel began before
};

// A stretch of time of one device, of TraceAnswer::device_names.
struct DeviceSpan {
  uint32_t device = 0;
  int64_t start_ns = 0;  // from the first event
  int64_t dur_ns = 0;
};

// A line of Python, shown by its base name.
struct SourceLine {
  std::string path;
  int64_t line = 0;
  std::string function;
};

struct AnswerFix {
  std::string id;    // of the finding; of an open one "open.KEY"
  std::string rule;  // empty: no rule covers it
  std::string todo;  // "Use fused attention (SDPA)"
  // Wall time that this saves alone, a mean over devices; what an open one
  // saves at most.
  int64_t gain_ns = 0, low_ns = 0, high_ns = 0;
  int64_t before_ns = 0, after_ns = 0;
  double share = 0;               // gain of the window, 0..1
  std::string how;                // measured, bound, estimate, ceiling
  std::string sure;               // fact, likely, possible, open
  std::string effort;             // "one setting", "few lines", "work"
  std::string what;               // one sentence
  std::vector<std::string> text;  // what to do, the first to begin with
  std::string verify;             // the number that shows that it is gone
  // Lines that lead to it: the innermost of the user, the innermost of a
  // library; and how many frames of frameworks lie between and below.
  std::optional<SourceLine> own, library;
  size_t framework_frames = 0;
  // What it is about: idle time, and events, of which `gain_ns` may be a part.
  // By device and start.
  std::vector<DeviceSpan> spans;
};

struct AnswerWarning {
  std::string
      title;         // a clause: "The recording holds the start of the process"
  std::string todo;  // may be empty
  bool first = false;  // makes all numbers doubtful: said before what they say
};

// Outlives the trace and the rules that it was made of.
struct TraceAnswer {
  int64_t window_ns = 0;  // wall time of the device work, or of the trace
  std::vector<std::string> device_names;
  std::string device;            // "NVIDIA H100 SXM"; empty: not known
  std::vector<BarPart> bar;      // all parts; they add up to window x devices
  std::vector<Family> families;  // of the compute part; they add up to it

  struct Utilisation {
    std::optional<double> value;  // 0..1
    double peak_flops = 0;        // per second
    std::string type;             // "matrix_bf16"
    int64_t period_ns = 0;
    std::string why;  // without a value: in at most six words
  } mfu;
  struct Limit {
    // host, communication, copies, waits, unknown, GPU
    std::string_view what;
    std::string_view detail;  // "data loading", "memory traffic"; may be empty
    double share = 0;
  } limited_by;

  std::string sentence;
  // One line for each op that takes much of the time: how near to its limit it
  // is and why. The first takes most; at most kMostHot.
  std::vector<std::string> hot;
  std::vector<AnswerFix> fixes;  // by gain, at most kMostFixes
  std::vector<AnswerWarning> warnings;
  int64_t together_ns = 0;  // of all fixes, those that are not shown too
  size_t known = 0;         // fixes of which the gain is known
  size_t smaller = 0;       // fixes that are not shown
  size_t looked = 0, rules = 0;

  // Of each device: the first of its streams, a number of Trace::streams.
  std::vector<uint32_t> lanes;
  // Idle time by what it was spent on, by device and start; neighbours of one
  // kind are one.
  std::vector<std::pair<Spent, DeviceSpan>> idle;

  int64_t Ns(Spent spent) const { return bar[static_cast<size_t>(spent)].ns; }
};
inline constexpr size_t kMostFixes = 5;
inline constexpr size_t kMostHot = 2;

// `report`: the tables and notes of a report without options on the same
// session. Errors: those of the facts that it asks for.
Result<TraceAnswer> MakeAnswer(engine::Session& session, const Diagnosis& d,
                               const ResultSet& report);

// "46 %", "8.0 %", "<0.1 %"; "100 %" only of all.
std::string SharePercent(double share);

// A time in the unit of another one and with as many decimals.
struct TimeForm {
  double unit_ns = 1;
  const char* unit = "ns";
  int decimals = 0;

  explicit TimeForm(int64_t like_ns);
  std::string Number(int64_t ns) const;
  std::string Text(int64_t ns) const { return Number(ns) + " " + unit; }
};

// "24 %", "unknown: no shapes recorded"; empty without a device.
std::string MfuWords(const TraceAnswer& answer);
// "Fewer than three complete steps: record five steps or more."
std::string WarningWords(const AnswerWarning& warning);
// "host: data loading", "GPU: memory traffic", "communication".
std::string LimitWords(const TraceAnswer::Limit& limit);
// "model.py:40 › modeling_owlv2.py:410 forward"; empty: not known.
std::string PlaceWords(const AnswerFix& fix, std::string_view behind = " › ");

// As JSON, one object. Times are integers in nanoseconds; "shown" beside them
// are the words that a screen has of them.
std::string AnswerJson(const TraceAnswer& answer);
// The same for a pull request, and as lines for whoever reads plain text.
std::string AnswerMarkdown(const TraceAnswer& answer);
std::string AnswerText(const TraceAnswer& answer);

}  // namespace lamina::findings
