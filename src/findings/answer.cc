// SPDX-License-Identifier: Apache-2.0
//
// From a diagnosis and the tables of a report to the answer over a trace.
#include "findings/answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <tuple>

#include "analysis/common/timeline.h"
#include "analysis/host/idle.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "base/text.h"
#include "cost/device.h"
#include "findings/source.h"
#include "sql/table_def.h"
#include "trace/losses.h"

namespace lamina::findings {
namespace {

namespace host = analysis::host;

struct SpentWord {
  std::string_view key, words;
  // Of the sentence, with the subject in front and a share behind.
  std::string_view one, many;
  std::string_view tail;  // behind "of the time"
  // What to look at where no rule covers it.
  std::string_view todo, text;
};

constexpr std::array<SpentWord, kSpent> kWords = {{
    {"compute", "compute", "computes", "compute", "", "", ""},
    {"communication", "communication alone", "only communicates",
     "only communicate", "", "Hide exposed communication",
     "Nothing runs beside these collectives: see collectives of lamina "
     "report."},
    {"copies", "copies alone", "only copies", "only copy", "",
     "Hide exposed copies",
     "Nothing runs beside these copies: see copies of lamina host."},
    {"input", "data loading", "waits for data loading", "wait for data loading",
     "", "Find what delays the batches",
     "The host makes batches meanwhile: see lamina host."},
    {"host", "host code", "waits for host code", "wait for host code", "",
     "Find what the host does",
     "The host runs other code meanwhile: see lamina host."},
    {"launch", "launching", "waits for launches", "wait for launches", "",
     "Find why launches are slow",
     "The work was not launched in time: see lamina host."},
    {"sync", "blocking calls", "waits for blocking calls",
     "wait for blocking calls", "", "Find what the blocking calls do",
     "The host sits in calls that wait: see lamina host."},
    {"wait", "queued, waiting", "stands still", "stand still",
     ", though work was queued", "Find what delays queued work",
     "Work was submitted and did not start: see lamina host, and traces of "
     "the other ranks."},
    {"outside", "late start, early end", "starts late or ends early",
     "start late or end early", "", "Find why GPUs start apart",
     "Some devices have no work at the ends of the window: see gpu_timeline, "
     "which has the time of each."},
    {"unknown", "cause unknown", "stands still", "stand still",
     "; nothing recorded says why", "Record what launches the work",
     "No launch of the work that follows is recorded: record the calls of the "
     "runtime."},
}};

const SpentWord& WordsOf(Spent spent) {
  return kWords[static_cast<size_t>(spent)];
}

constexpr std::string_view kHeadroom = "kernel.headroom";
constexpr double kSentenceShare = 0.10;  // a part that is worth the sentence
constexpr double kOpenShare = 0.10;
constexpr double kFixShare = 0.01;
constexpr double kKnownShare = 0.001;
constexpr double kLimitShare = 0.25;

bool IsHost(Spent spent) {
  return spent == Spent::kInput || spent == Spent::kHost ||
         spent == Spent::kLaunch || spent == Spent::kSync;
}

Spent SpentOfIdle(const host::Idle& idle, const host::Part& part) {
  switch (part.cause) {
    case host::Cause::kUnlinked:
      return Spent::kUnknown;
    case host::Cause::kLaunchOverhead:
      return Spent::kLaunch;
    case host::Cause::kSync:
    case host::Cause::kMemcpy:
      return Spent::kSync;
    case host::Cause::kGraph:
    case host::Cause::kDependency:
    case host::Cause::kKernelWait:
    case host::Cause::kSubmittedWait:
      return Spent::kWait;
    case host::Cause::kNoWork:
    case host::Cause::kHostBound:
      break;
  }
  if (part.activity == host::kNone) return Spent::kHost;
  const std::string& what = idle.activities[part.activity].what;
  if (what == "data_loader" || what == "tokenizer" || what == "file_io")
    return Spent::kInput;
  if (what == "slow_launch") return Spent::kLaunch;
  if (what == "read_device_value" || what == "blocked") return Spent::kSync;
  return Spent::kHost;
}

// An idle span of one kind.
struct Stretch {
  Interval at;  // from the first event
  Spent spent;
};

class Maker {
 public:
  Maker(engine::Session& session, const Diagnosis& d, const ResultSet& report)
      : session_(session), d_(d), report_(report) {}

  Result<TraceAnswer> Make() {
    const sql::Asked asked{session_, {}};
    LAMINA_ASSIGN(context_, asked.Context());
    LAMINA_ASSIGN(model_, asked.Get<host::HostModel>());
    LAMINA_ASSIGN(idle_, asked.Get<host::Idle>());
    LAMINA_ASSIGN(const cost::Device* const device, session_.input().Device());
    if (device != nullptr) out_.device = device->title;
    if (out_.device.empty() && !session_.trace().info.devices.empty())
      out_.device = session_.trace().info.devices.front().name;
    for (const Spent spent : AllSpent()) out_.bar.push_back({spent, 0, 0});
    AddDevices();
    Utilise();
    Limit();
    AddFixes();
    AddOpen();
    AddHot();
    LAMINA_TRY(AddSources());
    AddWarnings();
    for (const RuleRun& run : d_.runs) {
      out_.looked +=
          run.state != State::kAbstained && run.state != State::kFailed;
      ++out_.rules;
    }
    out_.sentence = model_->devices().empty() ? HostSentence() : Sentence();
    return std::move(out_);
  }

 private:
  static std::vector<Spent> AllSpent() {
    std::vector<Spent> out;
    for (size_t i = 0; i < kSpent; ++i) out.push_back(static_cast<Spent>(i));
    return out;
  }

  void Add(Spent spent, int64_t ns) {
    out_.bar[static_cast<size_t>(spent)].ns += ns;
  }

  int64_t TotalNs() const {
    return out_.window_ns * static_cast<int64_t>(model_->devices().size());
  }

  // The parts tile the common window of all devices.
  void AddDevices() {
    const auto& trace = model_->trace();
    const auto& devices = model_->devices();
    const auto bucket = [&](trace::SliceId s) {
      return context_->device.bucket(s);
    };
    std::vector<int64_t> family_ns(context_->catalog.families().size());
    Interval window{INT64_MAX, INT64_MIN};
    int64_t own_ns = 0;
    for (const host::DeviceFacts& device : devices) {
      out_.device_names.push_back(device.name);
      out_.lanes.push_back(device.streams.empty() ? 0 : device.streams.front());
      const analysis::Timeline t =
          analysis::MakeTimeline(trace, device.work, bucket);
      window.start_ns = std::min(window.start_ns, t.window.start_ns);
      window.end_ns = std::max(window.end_ns, t.window.end_ns);
      own_ns += t.total_ns;
      Add(Spent::kCompute, t.computation_ns);
      Add(Spent::kCommunication, t.exposed_communication_ns);
      Add(Spent::kCopies, t.exposed_copies_ns);
      AddFamilies(device, family_ns);
    }
    if (devices.empty()) {
      HostWindow();
      return;
    }
    out_.window_ns = window.length_ns();
    stretches_.resize(devices.size());
    for (const host::Part& part : idle_->parts) {
      const Spent spent = SpentOfIdle(*idle_, part);
      Add(spent, part.length_ns);
      const int64_t start = part.start_ns - trace.first_ns;
      stretches_[idle_->gaps[part.gap].device].push_back(
          {{start, start + part.length_ns}, spent});
    }
    AddIdle();
    // Other devices work, this one not yet or no more.
    Add(Spent::kOutside, TotalNs() - own_ns);
    const auto total = static_cast<double>(std::max<int64_t>(1, TotalNs()));
    for (BarPart& part : out_.bar)
      part.share = static_cast<double>(part.ns) / total;
    for (size_t i = 0; i < family_ns.size(); ++i) {
      if (family_ns[i] > 0)
        out_.families.push_back(
            {context_->catalog.families()[i].name, family_ns[i]});
    }
    std::stable_sort(
        out_.families.begin(), out_.families.end(),
        [](const Family& a, const Family& b) { return a.ns > b.ns; });
  }

  void AddIdle() {
    for (uint32_t d = 0; d < stretches_.size(); ++d) {
      std::vector<Stretch> by_start = stretches_[d];
      std::ranges::stable_sort(
          by_start, {}, [](const Stretch& one) { return one.at.start_ns; });
      for (const auto& [at, spent] : by_start) {
        if (at.end_ns <= at.start_ns) continue;
        if (!out_.idle.empty()) {
          auto& [last, span] = out_.idle.back();
          if (last == spent && span.device == d &&
              span.start_ns + span.dur_ns == at.start_ns) {
            span.dur_ns += at.length_ns();
            continue;
          }
        }
        out_.idle.push_back({spent, {d, at.start_ns, at.length_ns()}});
      }
    }
  }

  // A moment with several kernels belongs to the one that began first.
  void AddFamilies(const host::DeviceFacts& device,
                   std::vector<int64_t>& family_ns) const {
    const auto& trace = model_->trace();
    int64_t covered = INT64_MIN;
    for (const trace::SliceId s : device.work) {
      if (context_->device.bucket(s) != analysis::Bucket::kCompute) continue;
      const int64_t from = std::max(covered, trace.Start(s));
      const int64_t end = trace.End(s);
      if (end <= from) continue;
      family_ns[context_->device.family(s)] += end - from;
      covered = end;
    }
  }

  // Without device work the trace is the window.
  void HostWindow() {
    const auto& trace = model_->trace();
    int64_t last = trace.first_ns;
    for (uint32_t i = 0; i < trace.slices.size(); ++i)
      last = std::max(last, trace.End(trace::SliceId(i)));
    out_.window_ns = last - trace.first_ns;
  }

  // Whether the file holds device work that no reader takes.
  bool HasUnread() const {
    const Table* const unread = report_.Find("unread_events");
    if (unread == nullptr) return false;
    for (size_t row = 0; row < unread->rows(); ++row) {
      if (unread->At(row, "of_device").text() == "yes") return true;
    }
    return false;
  }

  std::string HostSentence() const {
    const Table* const ops = report_.Find("host_ops");
    int64_t ns = 0;
    if (ops != nullptr && ops->schema().Find("self_us"))
      ns = ops->Sum("self_us");
    if (ns == 0) return "No GPU work and no ops are recorded.";
    // The first is the one of most time.
    constexpr size_t kLongestName = 32;
    const std::string_view most = ops->At(0, "op").text();
    return fmt::format("{}; ops take {} of {}, most {}.",
                       HasUnread() ? "GPU work is not read" : "No GPU work",
                       HumanTime(ns), HumanTime(out_.window_ns),
                       Shorten(most.substr(0, most.find(' ')), kLongestName));
  }

  // In at most six words.
  static std::string ShortWhy(std::string_view why) {
    if (why.starts_with("no op has a cost model")) return "no shapes recorded";
    if (why.starts_with("no work on matrix units"))
      return "no matrix work with a cost";
    if (why.starts_with("no peaks")) return "the device is not known";
    if (why.starts_with("the device has no peak"))
      return "no peak for its type";
    if (const size_t at = why.find(" of the compute time");
        at != std::string_view::npos)
      return std::string(why.substr(0, at)) + " of compute modelled";
    if (const size_t at = why.find(" of the FLOPs are estimated");
        at != std::string_view::npos)
      return std::string(why.substr(0, at)) + " of FLOPs estimated";
    return std::string(why);
  }

  void Utilise() {
    auto& mfu = out_.mfu;
    const Table* const run = report_.Find("mfu_run");
    if (run == nullptr || run->rows() == 0) {
      mfu.why = "no steps recorded";
      return;
    }
    const Value value = run->At(0, "mfu");
    mfu.period_ns = run->At(0, "period_us").integer();
    if (const Value type = run->At(0, "dominant_type"); !type.null())
      mfu.type = type.text();
    if (const Value peak = run->At(0, "peak_tflops"); !peak.null())
      mfu.peak_flops = 1e12 * peak.real();
    if (!value.null()) {
      mfu.value = value.real() / 100;
      return;
    }
    const Value why = run->At(0, "why");
    mfu.why = why.null() ? "nothing to count" : ShortWhy(why.text());
  }

  // What bounds most of the time whose roofline is known; empty: unknown.
  std::string_view Bound() const {
    const Table* const ops = report_.Find("op_efficiency");
    if (ops == nullptr || !ops->schema().Find("bound")) return {};
    int64_t compute = 0, memory = 0;
    for (size_t row = 0; row < ops->rows(); ++row) {
      const Value bound = ops->At(row, "bound");
      if (bound.null()) continue;
      (bound.text() == "compute" ? compute : memory) +=
          ops->At(row, "busy_us").integer();
    }
    // Of little of the work it says nothing of the rest.
    if (2 * (compute + memory) < out_.Ns(Spent::kCompute)) return {};
    return compute > memory ? "arithmetic" : "memory traffic";
  }

  void Limit() {
    if (model_->devices().empty()) {
      out_.limited_by = {"host", "no GPU work", 1};
      return;
    }
    std::map<std::string_view, int64_t> sums;
    Spent most_of_host = Spent::kInput;
    for (const BarPart& part : out_.bar) {
      if (IsHost(part.spent)) {
        sums["host"] += part.ns;
        if (part.ns > out_.Ns(most_of_host)) most_of_host = part.spent;
      }
    }
    sums["communication"] = out_.Ns(Spent::kCommunication);
    sums["copies"] = out_.Ns(Spent::kCopies);
    sums["waits"] = out_.Ns(Spent::kWait) + out_.Ns(Spent::kOutside);
    sums["unknown"] = out_.Ns(Spent::kUnknown);
    std::pair<std::string_view, int64_t> largest{"", -1};
    for (const auto& sum : sums) {
      if (sum.second > largest.second) largest = sum;
    }
    const auto total = static_cast<double>(std::max<int64_t>(1, TotalNs()));
    const auto share = static_cast<double>(largest.second) / total;
    const int64_t compute = out_.Ns(Spent::kCompute);
    if (largest.second > 0 &&
        (share >= kLimitShare || largest.second > compute)) {
      out_.limited_by = {
          largest.first,
          largest.first == "host" ? SpentWords(most_of_host) : "", share};
    } else {
      out_.limited_by = {IsOfGpu(model_->trace()) ? "GPU" : "device", Bound(),
                         static_cast<double>(compute) / total};
    }
  }

  static std::string_view EffortWords(std::string_view effort) {
    return effort == "setting" ? "one setting"
           : effort == "lines" ? "few lines"
                               : "work";
  }

  static bool IsWarning(const Finding& f) {
    return f.fixes[0]->layer == "recording" || f.rule->once ||
           f.gain_kind() == "none";
  }

  static bool IsShown(const Finding& f) {
    return !f.small && !f.suppressed && f.rule->open.empty();
  }

  // What a finding saves at most: of idle time no more than there is.
  int64_t MostOf(const Finding& f) const {
    if (f.rule->kind != ClaimKind::kIdle) return out_.window_ns;
    const auto devices =
        std::max<int64_t>(1, static_cast<int64_t>(out_.device_names.size()));
    return std::max(f.gain_ns, f.owned_ns / devices);
  }

  void AddFixes() {
    for (const Finding& f : d_.findings) {
      if (!IsShown(f) || IsWarning(f)) continue;
      out_.together_ns += f.gain_ns;
      out_.known += f.share >= kKnownShare;
      // What saves that little is found after what stands before it.
      if (f.share < kFixShare) {
        ++out_.smaller;
        continue;
      }
      AnswerFix fix;
      fix.id = f.id;
      fix.rule = f.rule->id;
      fix.todo = f.todo;
      fix.gain_ns = std::min(f.gain_ns, out_.window_ns);
      fix.low_ns = f.gain_low_ns;
      fix.high_ns = std::min(f.gain_high_ns, MostOf(f));
      fix.how = f.gain_kind();
      fix.sure = f.confidence == Confidence::kHint
                     ? "possible"
                     : ConfidenceName(f.confidence);
      fix.effort = EffortWords(f.fixes[0]->effort);
      fix.what = f.what;
      for (const Fix* const one : f.fixes) {
        if (fix.text.size() < 3) fix.text.push_back(one->text);
      }
      fix.verify = f.rule->verify;
      fix.spans = SpansOf(f);
      findings_.push_back(&f);
      Put(std::move(fix));
    }
    out_.together_ns = std::min(out_.together_ns, out_.window_ns);
  }

  static void Sort(std::vector<DeviceSpan>& spans) {
    std::ranges::sort(spans, {}, [](const DeviceSpan& one) {
      return std::tuple(one.device, one.start_ns, one.dur_ns);
    });
  }

  static std::vector<DeviceSpan> SpansOf(const Finding& f) {
    std::vector<DeviceSpan> spans;
    if (f.rule->over_ranks) return spans;
    for (const Claim& claim : f.spans) {
      if (claim.dur_ns > 0 && claim.owned_ns > 0)
        spans.push_back({claim.device, claim.start_ns, claim.dur_ns});
    }
    Sort(spans);
    return spans;
  }

  // Of idle time, or of communication or copies that nothing hides: then of
  // each of those events as a whole.
  std::vector<DeviceSpan> SpansOf(Spent spent) const {
    std::vector<DeviceSpan> spans;
    for (const auto& [of, span] : out_.idle) {
      if (of == spent) spans.push_back(span);
    }
    if (spent != Spent::kCommunication && spent != Spent::kCopies) return spans;
    const analysis::Bucket bucket = spent == Spent::kCommunication
                                        ? analysis::Bucket::kCommunication
                                        : analysis::Bucket::kMemcpy;
    const auto& trace = model_->trace();
    for (uint32_t d = 0; d < model_->devices().size(); ++d) {
      for (const trace::SliceId s : model_->devices()[d].work) {
        if (context_->device.bucket(s) == bucket) {
          spans.push_back({d, trace.Start(s) - trace.first_ns,
                           trace.End(s) - trace.Start(s)});
        }
      }
    }
    return spans;
  }

  void Put(AnswerFix fix) {
    fix.before_ns = out_.window_ns;
    fix.after_ns = out_.window_ns - fix.gain_ns;
    fix.share = out_.window_ns == 0 ? 0
                                    : static_cast<double>(fix.gain_ns) /
                                          static_cast<double>(out_.window_ns);
    out_.fixes.push_back(std::move(fix));
  }

  // What findings own of each part of the bar.
  std::array<int64_t, kSpent> Owned() {
    std::array<int64_t, kSpent> owned{};
    absl::flat_hash_map<int64_t, int64_t> by_event;
    std::vector<std::vector<Claim>> idle(model_->devices().size());
    for (const Finding& f : d_.findings) {
      if (!f.rule->open.empty() || f.rule->over_ranks) continue;
      for (const Claim& claim : f.spans) {
        if (claim.uid >= 0) {
          by_event[claim.uid] += claim.owned_ns;
        } else if (claim.device < idle.size() && claim.dur_ns > 0) {
          idle[claim.device].push_back(claim);
        }
      }
    }
    if (!by_event.empty()) {
      for (const trace::SliceId s : model_->trace().device_slices()) {
        const auto bucket = context_->device.bucket(s);
        if (bucket == analysis::Bucket::kCompute) continue;
        const auto found = by_event.find(model_->trace().Uid(s));
        if (found == by_event.end()) continue;
        const Spent spent = bucket == analysis::Bucket::kCommunication
                                ? Spent::kCommunication
                                : Spent::kCopies;
        owned[static_cast<size_t>(spent)] += found->second;
      }
    }
    for (size_t device = 0; device < idle.size(); ++device)
      AddOwnedIdle(idle[device], stretches_[device], owned);
    return owned;
  }

  // `claims` in any order, `stretches` by start and disjoint but for those of
  // crowded threads, of which the lengths alone are right.
  static void AddOwnedIdle(std::vector<Claim>& claims,
                           const std::vector<Stretch>& stretches,
                           std::array<int64_t, kSpent>& owned) {
    std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
      return a.start_ns < b.start_ns;
    });
    size_t first = 0;
    for (const Claim& claim : claims) {
      const Interval at{claim.start_ns, claim.start_ns + claim.dur_ns};
      while (first < stretches.size() &&
             stretches[first].at.end_ns <= at.start_ns)
        ++first;
      const double granted = static_cast<double>(claim.owned_ns) /
                             static_cast<double>(claim.dur_ns);
      for (size_t i = first;
           i < stretches.size() && stretches[i].at.start_ns < at.end_ns; ++i) {
        const int64_t both = std::min(at.end_ns, stretches[i].at.end_ns) -
                             std::max(at.start_ns, stretches[i].at.start_ns);
        if (both > 0) {
          owned[static_cast<size_t>(stretches[i].spent)] +=
              static_cast<int64_t>(granted * static_cast<double>(both));
        }
      }
    }
  }

  // Of an op that takes much of the device and is measured against nothing.
  static bool IsHot(const Finding& f) {
    return f.rule->id == "kernel.unmodelled" ||
           f.rule->id == "kernel.dominant" ||
           (f.rule->id == kHeadroom && f.fixes[0]->layer == "recording");
  }

  // What such a line is about: the time that is open, or what it takes.
  static int64_t HotNs(const Finding& f) {
    int64_t ns = f.open_ns;
    for (const auto& [name, text] : f.values) {
      if (IsHot(f) && (name == "took_ns" || name == "busy_ns"))
        ns = std::max(ns, ParseInt(text).value_or(0));
    }
    return ns;
  }

  // What takes much of the window on the device, with what is known of it.
  void AddHot() {
    std::vector<const Finding*> hot;
    for (const Finding& f : d_.findings) {
      const bool large = static_cast<double>(f.open_ns) >=
                         kOpenShare * static_cast<double>(out_.window_ns);
      if (!f.suppressed && (IsHot(f) || (f.rule->id == kHeadroom && large)))
        hot.push_back(&f);
    }
    std::stable_sort(hot.begin(), hot.end(),
                     [](const Finding* a, const Finding* b) {
                       return HotNs(*a) > HotNs(*b);
                     });
    hot.resize(std::min(hot.size(), kMostHot));
    for (const Finding* const f : hot) out_.hot.push_back(f->what);
  }

  // What ops could gain at their rooflines, where nothing better is known.
  void AddHeadroom() {
    if (!out_.fixes.empty()) return;
    for (const Finding& f : d_.findings) {
      if (f.small || f.suppressed || f.rule->id != kHeadroom || IsHot(f) ||
          static_cast<double>(f.open_ns) <
              kOpenShare * static_cast<double>(out_.window_ns))
        continue;
      AnswerFix fix;
      fix.id = f.id;
      fix.rule = f.rule->id;
      fix.todo = f.todo;
      fix.gain_ns = fix.high_ns = std::min(f.open_ns, out_.window_ns);
      fix.how = "ceiling";
      fix.sure = "open";
      fix.effort = EffortWords(f.fixes[0]->effort);
      fix.what = f.what;
      fix.text = {f.fixes[0]->text};
      fix.verify = f.rule->verify;
      fix.spans = SpansOf(f);
      Put(std::move(fix));
    }
  }

  // A large part of which no finding has half.
  void AddOpen() {
    if (model_->devices().empty()) return;
    AddHeadroom();
    const std::array<int64_t, kSpent> owned = Owned();
    const auto devices = static_cast<int64_t>(model_->devices().size());
    for (const BarPart& part : out_.bar) {
      const int64_t has = owned[static_cast<size_t>(part.spent)];
      if (part.spent == Spent::kCompute || part.share < kOpenShare ||
          2 * has >= part.ns)
        continue;
      const SpentWord& word = WordsOf(part.spent);
      AnswerFix fix;
      fix.id = "open." + std::string(word.key);
      fix.todo = word.todo;
      fix.gain_ns = fix.high_ns = (part.ns - has) / devices;
      fix.how = "ceiling";
      fix.sure = "open";
      fix.effort = "work";
      fix.what = fmt::format("{} has no finding of its own.", word.words);
      fix.what.front() = static_cast<char>(fix.what.front() - 'a' + 'A');
      const std::string mostly = MostOf(part.spent);
      fix.text = {(mostly.empty() ? "" : "Mostly " + mostly + ". ") +
                  std::string(word.text)};
      fix.verify = fmt::format("less {} in the bar", word.words);
      fix.spans = SpansOf(part.spent);
      Put(std::move(fix));
    }
    std::stable_sort(out_.fixes.begin(), out_.fixes.end(),
                     [](const AnswerFix& a, const AnswerFix& b) {
                       return a.gain_ns > b.gain_ns;
                     });
    if (out_.fixes.size() <= kMostFixes) return;
    out_.smaller += out_.fixes.size() - kMostFixes;
    out_.fixes.resize(kMostFixes);
  }

  // What the host did in most of a part of the bar; empty: nothing stands out.
  std::string MostOf(Spent spent) const {
    std::vector<int64_t> ns(idle_->activities.size());
    int64_t all = 0;
    for (const host::Part& part : idle_->parts) {
      if (SpentOfIdle(*idle_, part) != spent) continue;
      all += part.length_ns;
      if (part.activity != host::kNone) ns[part.activity] += part.length_ns;
    }
    const auto most = std::max_element(ns.begin(), ns.end());
    if (most == ns.end() || *most == 0 || 4 * *most < all) return {};
    const auto& activity =
        idle_->activities[static_cast<size_t>(most - ns.begin())];
    return Shorten(activity.detail.empty() ? activity.what : activity.detail,
                   60);
  }

  Status AddSources() {
    std::vector<FixOf> fixes;
    for (AnswerFix& fix : out_.fixes) {
      const auto found = std::ranges::find(
          findings_, fix.id,
          [](const Finding* f) { return std::string_view(f->id); });
      if (found != findings_.end()) fixes.emplace_back(*found, &fix);
    }
    return FindSources(session_, fixes);
  }

  // How much of the window a warning has, where that is much: " (46 %)".
  std::string OfWindow(const Finding& f) const {
    const auto total = static_cast<double>(std::max<int64_t>(1, TotalNs()));
    const double share = static_cast<double>(f.owned_ns) / total;
    if (f.rule->kind == ClaimKind::kNone || share < kOpenShare) return {};
    return fmt::format(" ({} of the window)", SharePercent(share));
  }

  void AddWarnings() {
    std::vector<const Finding*> told;
    for (const Finding& f : d_.findings) {
      if (IsShown(f) && IsWarning(f) && !IsHot(f)) told.push_back(&f);
    }
    // What makes numbers void first, then what is not about the recording.
    std::stable_sort(told.begin(), told.end(),
                     [](const Finding* a, const Finding* b) {
                       const auto rank = [](const Finding* f) {
                         return f->severity == "blocker"            ? 0
                                : f->fixes[0]->layer == "recording" ? 1
                                                                    : 2;
                       };
                       return rank(a) < rank(b);
                     });
    const trace::Losses losses =
        trace::FindLosses(session_.trace().diagnostics);
    for (const Finding* const f : told) {
      // What was lost says more than that something was.
      const bool is_lost = f->rule->id == "trace.damaged" && losses.any();
      if (is_lost) {
        out_.warnings.push_back(
            {trace::LossText(losses) + ": " + losses.reasons, "", true});
      } else {
        out_.warnings.push_back(
            {f->rule->title + OfWindow(*f), f->todo, f->severity == "blocker"});
      }
    }
    AddNoDevice();
    for (const Note& note : report_.notes) {
      if (note.severity != Severity::kWarning || IsOfRule(note)) continue;
      // Its first clause.
      std::string text = note.text.substr(0, note.text.find("; "));
      while (text.ends_with('.')) text.pop_back();
      out_.warnings.push_back({std::move(text), "", false});
    }
  }

  // Why no device work is recorded.
  void AddNoDevice() {
    const Table* const health = report_.Find("trace_health");
    if (!model_->devices().empty() || health == nullptr) return;
    if (const Table* const unread = report_.Find("unread_events")) {
      for (size_t row = 0; row < unread->rows(); ++row) {
        if (unread->At(row, "of_device").text() != "yes") continue;
        out_.warnings.push_back(
            {fmt::format("{} of {} ({} busy) are not read yet",
                         Counted(static_cast<uint64_t>(
                                     unread->At(row, "events").integer()),
                                 "device event"),
                         unread->At(row, "source").text(),
                         HumanTime(unread->At(row, "busy_us").integer())),
             "", false});
      }
    }
    for (size_t row = 0; row < health->rows(); ++row) {
      if (health->At(row, "check").text() != "device_work") continue;
      std::string text(health->At(row, "meaning").text());
      while (text.ends_with('.')) text.pop_back();
      out_.warnings.push_back({std::move(text), "", false});
    }
  }

  bool IsOfRule(const Note& note) const {
    return std::any_of(d_.runs.begin(), d_.runs.end(), [&](const RuleRun& run) {
      return run.rule->id == note.id;
    });
  }

  std::string Sentence() const {
    const size_t devices = model_->devices().size();
    const BarPart* largest = &out_.bar[1];
    for (const BarPart& part : out_.bar) {
      if (part.spent != Spent::kCompute && part.ns > largest->ns)
        largest = &part;
    }
    const bool lost = largest->share >= kSentenceShare;
    const SpentWord& word = WordsOf(lost ? largest->spent : Spent::kCompute);
    const bool gpu = IsOfGpu(model_->trace());
    const std::string who =
        devices == 1 ? (gpu ? "The GPU" : "The device")
                     : fmt::format("{} {}", devices, gpu ? "GPUs" : "devices");
    const double share = lost ? largest->share : out_.bar[0].share;
    std::string text = fmt::format("{} {} {} of the time{}", who,
                                   devices == 1 ? word.one : word.many,
                                   SharePercent(share), word.tail);
    if (!lost && out_.mfu.value) {
      text += fmt::format(", at {} of {} peak", SharePercent(*out_.mfu.value),
                          devices == 1 ? "its" : "their");
    }
    return text + ".";
  }

  engine::Session& session_;
  const Diagnosis& d_;
  const ResultSet& report_;
  const analysis::Context* context_ = nullptr;
  const host::HostModel* model_ = nullptr;
  const host::Idle* idle_ = nullptr;
  std::vector<std::vector<Stretch>> stretches_;  // by device
  std::vector<const Finding*> findings_;         // that are fixes
  TraceAnswer out_;
};

void WriteSource(json::Writer& w, std::string_view key,
                 const std::optional<SourceLine>& line) {
  w.Key(key);
  if (!line) {
    w.Null();
    return;
  }
  w.Object();
  w.Text("path", line->path);
  w.Int("line", line->line);
  w.Text("function", line->function);
  w.Close();
}

// "1.08 s → 0.19 s", of two fixes or more.
std::string TogetherWords(const TraceAnswer& a) {
  if (a.known < 2) return "";
  const TimeForm time(a.window_ns);
  return time.Text(a.window_ns) + " → " +
         time.Text(a.window_ns - a.together_ns);
}

// "1.08 s window, MFU 2.4 %, limited by host: data loading"
std::string FactWords(const TraceAnswer& a) {
  std::string text = TimeForm(a.window_ns).Text(a.window_ns) + " window";
  if (!a.device_names.empty()) {
    text += ", MFU " + MfuWords(a) + ", limited by " + LimitWords(a.limited_by);
  }
  if (const std::string all = TogetherWords(a); !all.empty())
    text += ", all fixes " + all;
  return text;
}

// "−46 %"
std::string GainWords(const AnswerFix& fix) {
  return "−" + SharePercent(fix.share);
}

void WriteFix(json::Writer& w, const AnswerFix& fix, size_t rank) {
  const TimeForm time(fix.before_ns);
  w.Object();
  w.Int("rank", rank);
  w.Text("id", fix.id);
  w.Text("rule", fix.rule);
  w.Text("do", fix.todo);
  w.Int("gain_ns", fix.gain_ns);
  w.Int("low_ns", fix.low_ns);
  w.Int("high_ns", fix.high_ns);
  w.Int("before_ns", fix.before_ns);
  w.Int("after_ns", fix.after_ns);
  w.Real("share", fix.share);
  w.Text("how", fix.how);
  w.Text("sure", fix.sure);
  w.Text("effort", fix.effort);
  w.Text("what", fix.what);
  w.Texts("text", fix.text);
  w.Text("verify", fix.verify);
  w.Object("where");
  WriteSource(w, "own", fix.own);
  WriteSource(w, "lib", fix.library);
  w.Int("framework_frames", fix.framework_frames);
  w.Text("shown", PlaceWords(fix));
  w.Close();
  w.Object("shown");
  w.Text("before", time.Text(fix.before_ns));
  w.Text("after", time.Text(fix.after_ns));
  w.Text("gain", GainWords(fix));
  w.Close();
  w.Close();
}

}  // namespace

std::string_view SpentKey(Spent spent) { return WordsOf(spent).key; }
std::string_view SpentWords(Spent spent) { return WordsOf(spent).words; }

std::string SharePercent(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  // Nearly all is not all.
  if (share < 1 && percent >= 99.5)
    return fmt::format("{:.1f} %", std::floor(10 * percent) / 10);
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

TimeForm::TimeForm(int64_t like_ns) {
  static constexpr std::pair<double, const char*> kUnits[] = {
      {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  for (const auto& [ns, name] : kUnits) {
    unit_ns = ns;
    unit = name;
    if (static_cast<double>(like_ns) >= ns) break;
  }
  const double value = static_cast<double>(like_ns) / unit_ns;
  decimals = unit_ns == 1 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

std::string TimeForm::Number(int64_t ns) const {
  return fmt::format("{:.{}f}", static_cast<double>(ns) / unit_ns, decimals);
}

std::string MfuWords(const TraceAnswer& a) {
  if (a.device_names.empty()) return "";
  return a.mfu.value ? SharePercent(*a.mfu.value) : "unknown: " + a.mfu.why;
}

std::string WarningWords(const AnswerWarning& warning) {
  if (warning.todo.empty()) return warning.title + ".";
  std::string todo = warning.todo;
  todo.front() = LowerCase(todo.front());
  return warning.title + ": " + todo + ".";
}

std::string LimitWords(const TraceAnswer::Limit& limit) {
  const auto& [what, detail, share] = limit;
  if (detail.empty()) return std::string(what);
  return detail.starts_with(what) ? std::string(detail)
                                  : fmt::format("{}: {}", what, detail);
}

std::string PlaceWords(const AnswerFix& fix, std::string_view behind) {
  std::string text;
  const auto add = [&](const SourceLine& line, bool function) {
    if (!text.empty()) text += behind;
    text += fmt::format("{}:{}", line.path.substr(line.path.rfind('/') + 1),
                        line.line);
    if (function) text += " " + line.function;
  };
  if (fix.own) add(*fix.own, !fix.library);
  if (fix.library) add(*fix.library, true);
  return text;
}

Result<TraceAnswer> MakeAnswer(engine::Session& session, const Diagnosis& d,
                               const ResultSet& report) {
  return Maker(session, d, report).Make();
}

std::string AnswerJson(const TraceAnswer& a) {
  std::string out;
  json::Writer w(out, json::Writer::Spaces::kAfter, 2);
  using Lines = json::Writer::Lines;
  w.Object(Lines::kEach);
  w.Text("sentence", a.sentence);
  w.Int("window_ns", a.window_ns);
  w.Text("window", TimeForm(a.window_ns).Text(a.window_ns));
  w.Texts("devices", a.device_names);
  w.Text("device", a.device);
  w.Array("bar", Lines::kEach);
  for (const BarPart& part : a.bar) {
    w.Object();
    w.Text("key", SpentKey(part.spent));
    w.Text("words", SpentWords(part.spent));
    w.Int("ns", part.ns);
    w.Real("share", part.share);
    w.Object("shown");
    w.Text("time", HumanTime(part.ns));
    w.Text("share", SharePercent(part.share));
    w.Close();
    if (part.spent == Spent::kCompute) {
      w.Array("families");
      for (const Family& family : a.families) {
        w.Object();
        w.Text("family", family.name);
        w.Int("ns", family.ns);
        w.Close();
      }
      w.Close();
    }
    w.Close();
  }
  w.Close();
  w.Object("mfu");
  w.Key("value");
  if (a.mfu.value) {
    w.Real(*a.mfu.value);
  } else {
    w.Null();
  }
  w.Real("peak_flops", a.mfu.peak_flops);
  w.Text("type", a.mfu.type);
  w.Int("period_ns", a.mfu.period_ns);
  w.Text("why", a.mfu.why);
  w.Text("shown", MfuWords(a));
  w.Close();
  w.Object("limited_by");
  w.Text("class", a.limited_by.what);
  w.Text("detail", a.limited_by.detail);
  w.Real("share", a.limited_by.share);
  w.Text("shown", LimitWords(a.limited_by));
  w.Close();
  w.Texts("hot", a.hot);
  w.Array("fixes", Lines::kEach);
  for (size_t i = 0; i < a.fixes.size(); ++i) WriteFix(w, a.fixes[i], i + 1);
  w.Close();
  w.Array("warnings", Lines::kEach);
  for (const AnswerWarning& warning : a.warnings) {
    w.Object();
    w.Text("title", warning.title);
    w.Text("do", warning.todo);
    w.Close();
  }
  w.Close();
  w.Int("together_ns", a.together_ns);
  w.Text("together", TogetherWords(a));
  w.Object("more");
  w.Int("smaller", a.smaller);
  w.Int("rules_looked", a.looked);
  w.Int("rules", a.rules);
  w.Close();
  w.Close();
  return out;
}

std::string AnswerText(const TraceAnswer& a) {
  std::string out;
  const auto add = [&](const std::string& line) {
    out += EscapeTerminal(line) + "\n";
  };
  add(a.sentence);
  add(FactWords(a));
  for (const BarPart& part : a.bar) {
    if (part.ns > 0) {
      add(fmt::format("  {} {} {}", SpentWords(part.spent), HumanTime(part.ns),
                      SharePercent(part.share)));
    }
  }
  for (const std::string& text : a.hot) add("* " + text);
  for (size_t i = 0; i < a.fixes.size(); ++i) {
    const AnswerFix& fix = a.fixes[i];
    const TimeForm time(fix.before_ns);
    const std::string place = PlaceWords(fix);
    add(fmt::format("{}. {}: {} → {} ({}; {}, {}){}{}", i + 1, fix.todo,
                    time.Text(fix.before_ns), time.Text(fix.after_ns),
                    GainWords(fix), fix.how, fix.sure,
                    place.empty() ? "" : " at ", place));
  }
  for (const AnswerWarning& warning : a.warnings)
    add("! " + WarningWords(warning));
  return out;
}

std::string AnswerMarkdown(const TraceAnswer& a) {
  std::string out = "**" + EscapeMarkdown(a.sentence) + "**\n\n" +
                    EscapeMarkdown(FactWords(a)) + "\n";
  if (!a.device_names.empty()) {
    out += "\n| spent on | time | share |\n| --- | ---: | ---: |\n";
    for (const BarPart& part : a.bar) {
      if (part.ns > 0) {
        out += fmt::format("| {} | {} | {} |\n", SpentWords(part.spent),
                           HumanTime(part.ns), SharePercent(part.share));
      }
    }
  }
  if (!a.hot.empty()) out += "\n";
  for (const std::string& text : a.hot)
    out += "- " + EscapeMarkdown(text) + "\n";
  if (!a.fixes.empty()) {
    out +=
        "\n| | what to do | before | after | | known by | where |\n"
        "| ---: | --- | ---: | ---: | ---: | --- | --- |\n";
    for (size_t i = 0; i < a.fixes.size(); ++i) {
      const AnswerFix& fix = a.fixes[i];
      const TimeForm time(fix.before_ns);
      const std::string place = PlaceWords(fix);
      out += fmt::format("| {} | {} | {} | {} | {} | {}, {} | {} |\n", i + 1,
                         EscapeMarkdown(fix.todo), time.Text(fix.before_ns),
                         time.Text(fix.after_ns), GainWords(fix), fix.how,
                         fix.sure, place.empty() ? "" : MarkdownCode(place));
    }
  }
  if (!a.warnings.empty()) out += "\n";
  for (const AnswerWarning& warning : a.warnings)
    out += "- ⚠ " + EscapeMarkdown(WarningWords(warning)) + "\n";
  return out;
}

}  // namespace lamina::findings
