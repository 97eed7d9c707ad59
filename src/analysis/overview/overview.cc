// SPDX-License-Identifier: Apache-2.0
//
// The first answer: one or two sentences with the numbers that decided them,
// and the opportunities with their worth. Every writer prints these notes; no
// writer makes its own.
//
// Honesty rules. An opportunity is "at most": what would be won if the whole
// cause went away; opportunities overlap. A gap during which the host sits in
// a blocking call is not called host bound: the device may run work that is
// not in the file.
#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/gaps.h"
#include "analysis/common/record_advice.h"
#include "analysis/common/replayed.h"
#include "analysis/common/timeline.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "trace/categories.h"

namespace lamina::analysis::overview {
namespace {

// Shares of the window above which a cause is the verdict.
constexpr double kIdleShare = 0.20;
constexpr double kExposedCommunicationShare = 0.10;
constexpr double kExposedCopyShare = 0.10;
constexpr double kShortKernelShare = 0.30;
// Opportunities below this share of the window are not worth a line.
constexpr double kMinOpportunity = 0.01;
constexpr size_t kMaxOpportunities = 6;
// Of the kernel time, below graph launches: worth a hint.
constexpr double kReplayedShare = 0.10;
// A gap shorter than this is a hole between two launches, not a wait.
constexpr int64_t kSmallGapNs = 100000;

double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole)
                   : 0.0;
}

std::string Percent(int64_t part, int64_t whole) {
  return fmt::format("{:.0f} %", 100.0 * Ratio(part, whole));
}

class Overview {
 public:
  explicit Overview(const Context& context)
      : context_(context), trace_(context.trace) {}

  std::vector<Note> Make() {
    const auto slices = trace_.device_slices();
    if (slices.empty()) {
      notes_.push_back(MakeNote(
          Severity::kVerdict, "no_device_work",
          trace_.diagnostics.lost() > 0
              ? std::string("No GPU events in what could be read of "
                            "this trace.")
              : "No GPU events in this trace: " + DeviceActivityAdvice(trace_) +
                    ". The host tables are complete.",
          {{"trace_health", "check", "device_work", {}},
           {"gpu_timeline", "type", "busy_time", {}}}));
      LostRecords();
      return std::move(notes_);
    }
    const auto bucket = [&](SliceId s) { return context_.device.bucket(s); };
    timeline_ = MakeTimeline(trace_, slices, bucket);
    for (const DeviceWork& device : WorkByDevice(trace_))
      device_busy_ns_.push_back(
          MakeTimeline(trace_, device.slices, bucket).busy_ns);
    Families();
    Unlinked();
    Verdict();
    Opportunities();
    Warnings();
    return std::move(notes_);
  }

 private:
  void Families() {
    std::vector<int64_t> sums(context_.catalog.families().size(), 0);
    for (const SliceId s : trace_.device_slices())
      sums[context_.device.family(s)] += trace_.Duration(s);
    largest_family_ = static_cast<size_t>(
        std::max_element(sums.begin(), sums.end()) - sums.begin());
    largest_family_ns_ = sums[largest_family_];
    for (const int64_t sum : sums) all_families_ns_ += sum;
  }

  void Unlinked() {
    for (const SliceId s : trace_.device_slices()) {
      if (context_.tree.launch(s).valid()) continue;
      unlinked_ns_ += trace_.Duration(s);
      if (context_.tree.unlinked(s) != tree::Unlinked::kNoHost)
        launched_elsewhere_ns_ += trace_.Duration(s);
    }
  }

  // "62 % of the kernel time is matrix products". Work that op_categories has
  // as "unlinked" counts, too: it is as expensive.
  std::string LargestFamily() const {
    std::string title = context_.catalog.family(largest_family_).title;
    title[0] = static_cast<char>(std::tolower(title[0]));
    return fmt::format("{} of the kernel time is {}{}",
                       Percent(largest_family_ns_, all_families_ns_), title,
                       Ratio(launched_elsewhere_ns_, all_families_ns_) >= 0.01
                           ? ", with unlinked kernels by their names"
                           : "");
  }

  // "The GPU is busy 90 % of 2.00 ms". A union over several devices hides
  // that each of them waits for another one.
  std::string BusyShare() const {
    const Timeline& t = timeline_;
    if (!SeveralDevices()) {
      return fmt::format("The GPU is busy {} of {}",
                         Percent(t.busy_ns, t.total_ns), HumanTime(t.total_ns));
    }
    const std::vector<int64_t>& busy = device_busy_ns_;
    const int64_t sum = std::accumulate(busy.begin(), busy.end(), int64_t{0});
    const auto count = static_cast<int64_t>(busy.size());
    const auto [least, most] = std::minmax_element(busy.begin(), busy.end());
    return fmt::format(
        "{} GPUs are busy {} of {} in the mean ({} to {}), at least one {}",
        GroupDigits(count), Percent(sum / count, t.total_ns),
        HumanTime(t.total_ns), Percent(*least, t.total_ns),
        Percent(*most, t.total_ns), Percent(t.busy_ns, t.total_ns));
  }

  bool SeveralDevices() const { return device_busy_ns_.size() > 1; }

  void Verdict() {
    const Timeline& t = timeline_;
    Note note;
    note.severity = Severity::kVerdict;
    std::string text = BusyShare();
    note.evidence.push_back({"gpu_timeline", "type", "busy_time", {}});
    if (Ratio(t.idle_ns, t.total_ns) >= kIdleShare) {
      IdleVerdict(note, text);
    } else if (Ratio(t.exposed_communication_ns, t.total_ns) >=
               kExposedCommunicationShare) {
      note.id = "exposed_communication";
      text += fmt::format(
          "; {} ({}) of the time {}. {}.",
          Percent(t.exposed_communication_ns, t.total_ns),
          HumanTime(t.exposed_communication_ns),
          SeveralDevices() ? "they only communicate" : "it only communicates",
          Capital(LargestFamily()));
      note.evidence.push_back(
          {"gpu_timeline", "type", "exposed_comm_time", {}});
    } else if (Ratio(t.exposed_copies_ns, t.total_ns) >= kExposedCopyShare) {
      note.id = "exposed_copies";
      text +=
          fmt::format("; {} ({}) of the time {}. {}.",
                      Percent(t.exposed_copies_ns, t.total_ns),
                      HumanTime(t.exposed_copies_ns),
                      SeveralDevices() ? "they only copy" : "it only copies",
                      Capital(LargestFamily()));
      note.evidence.push_back(
          {"gpu_timeline", "type", "exposed_memcpy_time", {}});
    } else {
      note.id = "busy";
      text += "; " + LargestFamily() + ".";
      note.evidence.push_back({"op_categories",
                               "category",
                               context_.catalog.family(largest_family_).name,
                               {}});
    }
    note.text = std::move(text);
    notes_.push_back(std::move(note));
  }

  void IdleVerdict(Note& note, std::string& text) {
    const Timeline& t = timeline_;
    int64_t small = 0;
    size_t small_count = 0;
    int64_t large = 0;
    for (const Interval& gap : t.Gaps()) {
      if (gap.length_ns() < kSmallGapNs) {
        small += gap.length_ns();
        ++small_count;
      } else {
        large += gap.length_ns();
      }
    }
    note.evidence.push_back({"gpu_timeline", "type", "idle_time", {}});
    text += fmt::format("; {} ({}) {} idle", Percent(t.idle_ns, t.total_ns),
                        HumanTime(t.idle_ns),
                        SeveralDevices() ? "all are" : "it is");
    if (small > large) {
      note.id = "launch_bound";
      text += fmt::format(
          ", most of it in {} gaps under 100 us between kernels: the host "
          "launches too slowly. {}.",
          GroupDigits(static_cast<int64_t>(small_count)),
          Capital(LargestFamily()));
      return;
    }
    const auto gaps = LongestGaps(context_.tree, t, 1);
    const Gap& longest = gaps[0];
    note.evidence.push_back(
        {"gaps", "start_us",
         FormatMicroseconds(longest.interval.start_ns - trace_.first_ns),
         longest.next.valid() ? std::vector<uint32_t>{trace_.Uid(longest.next)}
                              : std::vector<uint32_t>{}});
    const std::string host = longest.host.valid()
                                 ? Shorten(trace_.Name(longest.host), 80)
                                 : std::string();
    text += fmt::format(". The longest gap is {}",
                        HumanTime(longest.interval.length_ns()));
    switch (longest.cause) {
      case GapCause::kHostBusy:
        note.id = "waits_on_host";
        text += host.empty() ? ", while the host ran many small events"
                             : ", while the host ran " + host;
        break;
      case GapCause::kHostBlocked:
        note.id = "idle_host_blocked";
        text += ", while the host sat in " + host +
                " (work outside this trace may have run)";
        break;
      case GapCause::kLaunchLatency:
        note.id = "idle_after_launch";
        text += ", although its work was launched before";
        break;
      case GapCause::kUnknown:
        note.id = "idle";
        text += "; the trace does not show its launch";
        break;
    }
    text += ". " + Capital(LargestFamily()) + ".";
  }

  void AddOpportunity(std::string id, int64_t worth, std::string claim,
                      std::string text, Evidence evidence) {
    if (Ratio(worth, timeline_.total_ns) < kMinOpportunity) return;
    Note note = MakeNote(Severity::kOpportunity, std::move(id), std::move(text),
                         {std::move(evidence)});
    note.worth_ns = worth;
    note.claim = std::move(claim);
    opportunities_.push_back(std::move(note));
  }

  void Opportunities() {
    const Timeline& t = timeline_;
    AddOpportunity(
        "device_idle", t.idle_ns, "measured",
        "no device works in " + Counted(t.Gaps().size(), "gap") + ".",
        {"gaps", "", "", {}});
    AddOpportunity("exposed_communication", t.exposed_communication_ns,
                   "measured", "collectives that nothing hides.",
                   {"collectives", "", "", {}});
    AddOpportunity("exposed_copies", t.exposed_copies_ns, "measured",
                   "copies that nothing hides.",
                   {"kernels", "kind", "memcpy", {}});
    ShortKernels();
    std::stable_sort(
        opportunities_.begin(), opportunities_.end(),
        [](const Note& a, const Note& b) { return *a.worth_ns > *b.worth_ns; });
    if (opportunities_.size() > kMaxOpportunities)
      opportunities_.resize(kMaxOpportunities);
    for (Note& note : opportunities_) notes_.push_back(std::move(note));
  }

  void ShortKernels() {
    std::vector<SliceId> shorter;
    size_t kernels = 0;
    int64_t time = 0;
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      ++kernels;
      if (trace_.Duration(s) >= context_.settings.short_kernel_ns) continue;
      shorter.push_back(s);
      time += trace_.Duration(s);
    }
    if (Ratio(static_cast<int64_t>(shorter.size()),
              static_cast<int64_t>(kernels)) < kShortKernelShare)
      return;
    const std::vector<bool> replayed = ReplayedWork(context_.tree);
    const auto in_graphs = static_cast<size_t>(
        std::count_if(shorter.begin(), shorter.end(),
                      [&](SliceId s) { return replayed[s.value]; }));
    AddOpportunity(
        "short_kernels", time, "bound",
        fmt::format("{} of {} {} shorter than {}: {}.",
                    GroupDigits(static_cast<int64_t>(shorter.size())),
                    Counted(kernels, "kernel"),
                    shorter.size() == 1 ? "is" : "are",
                    HumanTime(context_.settings.short_kernel_ns),
                    Advice(shorter.size(), in_graphs)),
        {"short_kernels", "", "", {}});
  }

  static std::string Advice(size_t kernels, size_t in_graphs) {
    if (in_graphs == 0) return "fuse them or replay them in a graph";
    if (in_graphs == kernels)
      return "fuse them; they are replayed in graphs already";
    return fmt::format(
        "fuse them; {} of them are replayed in graphs already, the others "
        "could be",
        GroupDigits(static_cast<int64_t>(in_graphs)));
  }

  void Warnings() {
    if (Ratio(unlinked_ns_, all_families_ns_) >= 0.005) {
      notes_.push_back(MakeNote(
          Severity::kWarning, "unlinked_device_work",
          fmt::format("{} of the kernel time ({}) has no launch in this trace; "
                      "{}.",
                      Percent(unlinked_ns_, all_families_ns_),
                      HumanTime(unlinked_ns_),
                      launched_elsewhere_ns_ > 0
                          ? "op tables show it as \"unlinked\""
                          : "it has no ops, and op_categories goes by the "
                            "names of kernels"),
          {{"op_categories",
            "kind",
            launched_elsewhere_ns_ > 0 ? "unlinked" : "category",
            {}}}));
    }
    ReplayedGraphs();
    LostRecords();
  }

  // Where graphs hide most ops, and what shows them.
  void ReplayedGraphs() {
    if (!trace_.captured.empty()) return;
    const tree::Tree& tree = context_.tree;
    int64_t replayed_ns = 0;
    for (const SliceId s : tree.launched()) {
      if (trace::IsGraphLaunch(tree.name(tree.launch(s))))
        replayed_ns += trace_.Duration(s);
    }
    if (Ratio(replayed_ns, all_families_ns_) < kReplayedShare) return;
    notes_.push_back(MakeNote(
        Severity::kInfo, "replayed_graphs",
        fmt::format("{} of the kernel time ({}) is replayed by graph launches "
                    "and has no op of its own: --capture with a trace of the "
                    "capture shows ops, shapes and modules.",
                    Percent(replayed_ns, all_families_ns_),
                    HumanTime(replayed_ns)),
        {{"trace_health", "check", "graph_launches", {}}}));
  }

  void LostRecords() {
    const uint64_t lost = trace_.diagnostics.lost();
    if (lost > 0) {
      notes_.push_back(
          MakeNote(Severity::kWarning, "lost_records",
                   Counted(lost, "record") +
                       " of the input could not be used; see trace_health.",
                   {{"trace_health", "status", "lost", {}}}));
    }
  }

  static std::string Capital(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(text[0]));
    return text;
  }

  const Context& context_;
  const Trace& trace_;
  Timeline timeline_;
  std::vector<int64_t> device_busy_ns_;
  size_t largest_family_ = 0;
  int64_t largest_family_ns_ = 0;
  int64_t all_families_ns_ = 0;
  int64_t unlinked_ns_ = 0;
  int64_t launched_elsewhere_ns_ = 0;  // unlinked, in a trace of a host
  std::vector<Note> notes_;
  std::vector<Note> opportunities_;
};

Result<ResultSet> Run(const Context& context) {
  ResultSet result;
  result.notes = Overview(context).Make();
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"overview", "The verdict and the opportunities, as notes.",
          [] { return std::vector<Schema>{}; }, &Run};
}

}  // namespace lamina::analysis::overview
