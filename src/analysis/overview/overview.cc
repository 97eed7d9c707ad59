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
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/device_advice.h"
#include "analysis/common/gaps.h"
#include "analysis/common/host_view.h"
#include "analysis/common/lost_work.h"
#include "analysis/common/mean_timeline.h"
#include "analysis/common/replayed.h"
#include "analysis/common/timeline.h"
#include "analysis/host/tables.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "trace/categories.h"
#include "trace/losses.h"

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

  // Errors: data files that cannot be used.
  Result<std::vector<Note>> Make() {
    const auto slices = trace_.device_slices();
    if (slices.empty()) {
      HostVerdict();
      Doubts();
      LostRecords();
      return std::move(notes_);
    }
    const auto bucket = [&](SliceId s) { return context_.device.bucket(s); };
    timeline_ = MakeTimeline(trace_, slices, bucket);
    size_t tpus = 0;
    for (const DeviceWork& device : WorkByDevice(trace_)) {
      devices_.push_back(MakeTimeline(trace_, device.slices, bucket));
      tpus += IsTpu(device.slices.front());
    }
    if (tpus > 0) device_word_ = tpus == devices_.size() ? "TPU" : "device";
    // One device has the figures of the union; of several the mean adds up.
    mean_ = MeanOf(devices_, timeline_.total_ns);
    if (devices_.size() == 1) mean_.idle_ns = timeline_.idle_ns;
    for (const Timeline& device : devices_) {
      for (const Interval& gap : device.busy.Gaps(timeline_.window))
        gaps_.push_back(gap);
    }
    if (context_.settings.idle_causes) LAMINA_TRY(FindIdleCauses());
    Families();
    Unlinked();
    Verdict();
    Doubts();
    Opportunities();
    Warnings();
    return std::move(notes_);
  }

 private:
  Status FindIdleCauses() {
    LAMINA_ASSIGN(const auto* const model, context_.Get<host::HostModel>());
    LAMINA_ASSIGN(const auto* const idle, context_.Get<host::Idle>());
    idle_causes_ = host::LargestCauses(*model, *idle);
    idle_gaps_ = idle->gaps.size();
    int64_t idle_ns = 0, held_ns = 0;
    for (const host::IdleSum& sum : idle->devices) {
      idle_ns += sum.idle_ns();
      held_ns += sum.times[static_cast<size_t>(host::Cause::kHostBound)] +
                 sum.times[static_cast<size_t>(host::Cause::kLaunchOverhead)];
    }
    host_holds_ = 2 * held_ns >= idle_ns;
    return {};
  }

  // What is left to say where no device work was read.
  void HostVerdict() {
    const HostView host = HostView::Build(context_);
    const int64_t window = host.window.length_ns();
    std::string text;
    const std::string unread = UnreadDevice();
    if (!unread.empty()) text = unread + ". ";
    std::string ops;
    if (host.top.valid()) {
      size_t threads = 0;
      for (const HostThread& thread : host.threads) threads += thread.calls > 0;
      ops = fmt::format(
          "{} take {} of {} on {}; most: {} ({} self, {})",
          host.without_ops ? "calls and ranges" : "ops",
          HumanTime(host.ops.length_ns()), HumanTime(window),
          Counted(threads, "thread"), Shorten(trace_.Text(host.top), 80),
          HumanTime(host.top_self_ns), Percent(host.top_self_ns, host.self_ns));
    }
    const std::string machine = trace_.info.devices.empty()
                                    ? std::string()
                                    : trace_.info.devices.front().name;
    bool calls = false;
    for (const trace::Kind kind : trace_.slices.kind)
      calls = calls || trace::IsApiCall(kind);
    if (!unread.empty()) {
      text += ops.empty() ? "The host has no ops in this trace."
                          : Capital(ops) + ".";
    } else if (trace_.diagnostics.lost() > 0) {
      text += "No GPU events in what could be read of this trace";
      text += ops.empty() ? "." : "; " + ops + ".";
    } else if (!machine.empty() || calls) {
      text += machine.empty()
                  ? std::string("No device work was recorded")
                  : fmt::format(
                        "No device work was recorded (the machine has "
                        "{})",
                        EscapeTerminal(machine));
      text += ops.empty() ? "." : ": " + ops + ".";
      text += " " + DeviceAdvice(trace_);
    } else if (!ops.empty()) {
      text += "No GPU events, CPU only: " + ops + ".";
      if (host.longest_share < 0.2) {
        text += fmt::format(
            " {} of it is outside ops: record with with_stack=True.",
            Percent(window - host.ops.length_ns(), window));
      }
    } else {
      text += "No GPU events and no ops in this trace. " + DeviceAdvice(trace_);
    }
    std::vector<Evidence> evidence = {
        {"trace_health", "check", "device_work", {}},
        {"gpu_timeline", "type", "busy_time", {}}};
    if (!unread.empty())
      evidence.insert(evidence.begin(),
                      {"unread_events", "of_device", "yes", {}});
    if (host.top.valid()) {
      evidence.insert(
          evidence.begin(),
          {"host_ops", "op", std::string(trace_.Text(host.top)), {}});
    }
    notes_.push_back(MakeNote(Severity::kVerdict, "no_device_work",
                              std::move(text), std::move(evidence)));
  }

  // "25,814 device events of MTIA (7.70 s busy) are not read yet", empty
  // without any.
  std::string UnreadDevice() const {
    std::string text;
    for (const UnreadEvents& u : FindUnread(trace_)) {
      if (!u.device) continue;
      const std::string of =
          u.process.empty() || u.process == u.source
              ? u.source
              : u.process + (u.category.empty() ? "" : ", " + u.category);
      text += fmt::format(
          "{}{} of {} ({} in sum, {} busy: {})", text.empty() ? "" : "; ",
          Counted(u.events, "device event"), EscapeTerminal(Shorten(of, 80)),
          HumanTime(u.time_ns), HumanTime(u.busy_ns), u.reason);
    }
    return text.empty() ? text : text + " are not read yet";
  }

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
      if (context_.tree.unlinked(s) == tree::Unlinked::kNoHost) continue;
      launched_elsewhere_ns_ += trace_.Duration(s);
      if (context_.device.family(s) == largest_family_)
        largest_unlinked_ns_ += trace_.Duration(s);
    }
  }

  // "62 % of the kernel time is matrix products". Work that op_categories has
  // as "unlinked" counts, too: it is as expensive. Where that makes the share
  // another one than the table's, the sentence has both.
  std::string LargestFamily() const {
    std::string title = context_.catalog.family(largest_family_).title;
    title[0] = LowerCase(title[0]);
    const int64_t linked = largest_family_ns_ - largest_unlinked_ns_;
    std::string text =
        fmt::format("{} of the kernel time is {}",
                    Percent(largest_family_ns_, all_families_ns_), title);
    if (Ratio(largest_unlinked_ns_, all_families_ns_) < 0.005) return text;
    if (Ratio(linked, all_families_ns_) < 0.005)
      return text +
             ", all without a launch, recognised by the names of kernels";
    // Rounded so that the parts add up to the whole.
    const double whole =
        std::round(100 * Ratio(largest_family_ns_, all_families_ns_));
    const double own = std::round(100 * Ratio(linked, all_families_ns_));
    text += fmt::format(
        ": {:.0f} % with a launch (in op_categories) and {:.0f} % of unlinked "
        "kernels, recognised by their names",
        own, whole - own);
    return text;
  }

  // "The GPU is busy 90 % of 2.00 ms". A union over several devices hides
  // that each of them waits for another one.
  std::string BusyShare() const {
    const Timeline& t = timeline_;
    if (!SeveralDevices()) {
      return fmt::format("The {} is busy {} of {}", device_word_,
                         Percent(t.busy_ns, t.total_ns), HumanTime(t.total_ns));
    }
    const auto [least, most] =
        std::minmax_element(devices_.begin(), devices_.end(),
                            [](const Timeline& a, const Timeline& b) {
                              return a.busy_ns < b.busy_ns;
                            });
    return fmt::format(
        "{} are busy {} of {} on average ({} to {}), at least one {}",
        Counted(devices_.size(), device_word_),
        Percent(mean_.busy_ns, t.total_ns), HumanTime(t.total_ns),
        Percent(least->busy_ns, t.total_ns), Percent(most->busy_ns, t.total_ns),
        Percent(t.busy_ns, t.total_ns));
  }

  bool IsTpu(SliceId s) const {
    const StringId process = trace_.TrackOf(s).process_name;
    return process.valid() &&
           trace_.Text(process).find("TPU") != std::string_view::npos;
  }

  bool SeveralDevices() const { return devices_.size() > 1; }
  const char* InTheMean() const {
    return SeveralDevices() ? " on average" : "";
  }

  void Verdict() {
    const MeanTimeline& t = mean_;
    Note note;
    note.severity = Severity::kVerdict;
    std::string text = BusyShare();
    note.evidence.push_back({"gpu_timeline", "type", "busy_time", {}});
    if (Ratio(t.idle_ns, t.total_ns) >= kIdleShare) {
      IdleVerdict(note, text);
      // Of queued work the queue is the cause.
      if (!idle_causes_.empty() && note.id != "idle_queued") {
        text += " Idle time: " + idle_causes_ + ".";
        note.evidence.push_back(IdleEvidence());
      }
    } else if (Ratio(t.exposed_communication_ns, t.total_ns) >=
               kExposedCommunicationShare) {
      note.id = "exposed_communication";
      text += fmt::format(
          "; {} ({}) of the time {}{}. {}.",
          Percent(t.exposed_communication_ns, t.total_ns),
          HumanTime(t.exposed_communication_ns),
          SeveralDevices() ? "each only communicates" : "it only communicates",
          InTheMean(), Capital(LargestFamily()));
      note.evidence.push_back(
          {"gpu_timeline", "type", "exposed_comm_time", {}});
    } else if (Ratio(t.exposed_copies_ns, t.total_ns) >= kExposedCopyShare) {
      note.id = "exposed_copies";
      text +=
          fmt::format("; {} ({}) of the time {}{}. {}.",
                      Percent(t.exposed_copies_ns, t.total_ns),
                      HumanTime(t.exposed_copies_ns),
                      SeveralDevices() ? "each only copies" : "it only copies",
                      InTheMean(), Capital(LargestFamily()));
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
    const MeanTimeline& t = mean_;
    int64_t small = 0;
    size_t small_count = 0;
    int64_t large = 0;
    for (const Interval& gap : gaps_) {
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
                        SeveralDevices() ? "of each is on average" : "it is");
    if (small > large) {
      // Who records no launch cannot blame the host for it.
      const bool launches = !context_.tree.launched().empty();
      // Nor do short gaps alone: the causes decide.
      const bool host = launches && host_holds_;
      note.id = host ? "launch_bound" : "idle";
      text += fmt::format(
          ", most of it in {} under 100 us between kernels{}. {}.",
          Counted(small_count, "gap"),
          host       ? ": the host launches too slowly"
          : launches ? ""
                     : ": the trace records no launches, so why is unknown",
          Capital(LargestFamily()));
      return;
    }
    // Of several devices that in which none works, else that of one.
    auto gaps = LongestGaps(context_.tree, timeline_, 1);
    bool of_one = false;
    if (gaps.empty() || 2 * gaps[0].interval.length_ns() < LongestOfOne()) {
      of_one = SeveralDevices();
      // The first with the longest; what is behind it is found for that alone.
      const Timeline* idle = nullptr;
      int64_t longest = gaps.empty() ? 0 : gaps[0].interval.length_ns();
      for (const Timeline& device : devices_) {
        for (const Interval& gap : device.Gaps()) {
          if (gap.length_ns() <= longest) continue;
          longest = gap.length_ns();
          idle = &device;
        }
      }
      if (idle != nullptr) gaps = LongestGaps(context_.tree, *idle, 1);
    }
    // Devices that work in windows of their own have no gaps inside them.
    if (gaps.empty()) {
      note.id = "idle";
      text += ". " + Capital(LargestFamily()) + ".";
      return;
    }
    const Gap& longest = gaps[0];
    note.evidence.push_back(
        {"gaps", "start_us",
         FormatMicroseconds(longest.interval.start_ns - trace_.first_ns),
         longest.next.valid() ? std::vector<uint32_t>{trace_.Uid(longest.next)}
                              : std::vector<uint32_t>{}});
    const std::string host = longest.host.valid()
                                 ? Shorten(trace_.Name(longest.host), 80)
                                 : std::string();
    text += fmt::format(". The longest gap{} is {}", of_one ? " of one" : "",
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
      case GapCause::kQueued:
        note.id = "idle_queued";
        text += fmt::format(
            "; its work was launched {} before it began and waited in the "
            "queue",
            HumanTime(longest.interval.end_ns - trace_.Start(longest.host)));
        break;
      case GapCause::kUnknown:
        note.id = "idle";
        text += "; the trace does not show its launch";
        break;
    }
    text += ". " + Capital(LargestFamily()) + ".";
  }

  int64_t LongestOfOne() const {
    int64_t longest = 0;
    for (const Timeline& device : devices_) {
      for (const Interval& gap : device.Gaps())
        longest = std::max(longest, gap.length_ns());
    }
    return longest;
  }

  void AddOpportunity(std::string id, int64_t worth, std::string claim,
                      std::string text, std::vector<Evidence> evidence) {
    if (Ratio(worth, timeline_.total_ns) < kMinOpportunity) return;
    Note note = MakeNote(Severity::kOpportunity, std::move(id), std::move(text),
                         std::move(evidence));
    note.worth_ns = worth;
    note.claim = std::move(claim);
    if (SeveralDevices())
      note.claim = fmt::format("mean per {}, {}", device_word_, note.claim);
    opportunities_.push_back(std::move(note));
  }

  static Evidence IdleEvidence() {
    return {"idle_causes", "scope", "device", {}};
  }

  void IdleOpportunity() {
    const Evidence evidence =
        SeveralDevices() ? Evidence{"gpu_timeline", "type", "idle_time", {}}
                         : Evidence{"gaps", "", "", {}};
    if (!idle_causes_.empty()) {
      AddOpportunity(
          "device_idle", mean_.idle_ns, "measured",
          "idle in " + Counted(idle_gaps_, "gap") + ": " + idle_causes_ + ".",
          {IdleEvidence(), evidence});
      return;
    }
    AddOpportunity("device_idle", mean_.idle_ns, "measured",
                   (SeveralDevices() ? "a device does not work in "
                                     : "no device works in ") +
                       Counted(gaps_.size(), "gap") + ".",
                   {evidence});
  }

  void Opportunities() {
    const MeanTimeline& t = mean_;
    IdleOpportunity();
    AddOpportunity("exposed_communication", t.exposed_communication_ns,
                   "measured", "collectives that nothing hides.",
                   {{"collectives", "", "", {}}});
    AddOpportunity("exposed_copies", t.exposed_copies_ns, "measured",
                   "copies that nothing hides.",
                   {{"kernels", "kind", "memcpy", {}}});
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
    // One alone has nothing to be fused with.
    if (kernels < 2 || Ratio(static_cast<int64_t>(shorter.size()),
                             static_cast<int64_t>(kernels)) < kShortKernelShare)
      return;
    const std::vector<bool> replayed = ReplayedWork(context_.tree);
    const auto in_graphs = static_cast<size_t>(
        std::count_if(shorter.begin(), shorter.end(),
                      [&](SliceId s) { return replayed[s.value]; }));
    AddOpportunity(
        "short_kernels", time / static_cast<int64_t>(devices_.size()), "bound",
        fmt::format("{} of {} {} shorter than {}: {}.",
                    GroupDigits(static_cast<int64_t>(shorter.size())),
                    Counted(kernels, "kernel"),
                    shorter.size() == 1 ? "is" : "are",
                    HumanTime(context_.settings.short_kernel_ns),
                    Advice(shorter.size(), in_graphs)),
        {{"short_kernels", "", "", {}}});
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
    const LaunchesWithoutWork lost = FindLaunchesWithoutWork(context_.tree);
    if (lost.Doubtful()) {
      notes_.push_back(MakeNote(
          Severity::kWarning, "lost_device_records",
          lost.Text() +
              ": records of device work are missing, so idle time is too high "
              "and sums are too low.",
          {{"trace_health", "check", "launches_without_work", {}}}));
    }
    int64_t unread_ns = 0;
    for (const UnreadEvents& u : FindUnread(trace_))
      unread_ns += u.device ? u.busy_ns : 0;
    if (Ratio(unread_ns, timeline_.busy_ns) > 0.01) {
      notes_.push_back(MakeNote(Severity::kWarning, "unread_device_events",
                                UnreadDevice() + ".",
                                {{"unread_events", "of_device", "yes", {}}}));
    }
    WaitsOnDevice();
    LostRecords();
  }

  // Ascend records waits on its streams as events like kernels: who counts the
  // events of the file misses them in the tables.
  void WaitsOnDevice() {
    std::vector<bool> ascend;  // by track
    for (const trace::Track& track : trace_.tracks) {
      ascend.push_back(trace_.Text(track.process_name) == "Ascend Hardware");
    }
    if (std::find(ascend.begin(), ascend.end(), true) == ascend.end()) return;
    size_t all = 0, waits = 0;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      if (!ascend[trace_.slices.track[i].value]) continue;
      ++all;
      waits += trace_.slices.kind[i] == trace::Kind::kOther;
    }
    if (waits * 10 < all || waits == 0) return;
    notes_.push_back(
        MakeNote(Severity::kWarning, "device_waits",
                 fmt::format("{} of {} events of Ascend Hardware only wait or "
                             "record: no work of the device.",
                             GroupDigits(static_cast<int64_t>(waits)), all),
                 {{"unread_events", "category", "npu_sync", {}}}));
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
                    "and has no op of its own: ⟨capture⟩ with a trace of the "
                    "capture shows ops, shapes and modules.",
                    Percent(replayed_ns, all_families_ns_),
                    HumanTime(replayed_ns)),
        {{"trace_health", "check", "graph_launches", {}}}));
  }

  // What was mended comes before what follows from it.
  void Doubts() {
    for (const trace::Doubt& doubt : trace::FindDoubts(trace_.diagnostics)) {
      notes_.push_back(
          MakeNote(Severity::kWarning, std::string(doubt.reason), doubt.text,
                   {{"trace_health", "check", std::string(doubt.reason), {}}}));
    }
  }

  void LostRecords() {
    const trace::Losses losses = trace::FindLosses(trace_.diagnostics);
    if (losses.any()) {
      notes_.push_back(MakeNote(Severity::kWarning, "lost_records",
                                trace::LossText(losses) + "; see trace_health.",
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
  std::vector<Timeline> devices_;
  std::string_view device_word_ = "GPU";
  MeanTimeline mean_;
  std::vector<Interval> gaps_;  // of each device in the window of all
  bool host_holds_ = true;      // it has half of the idle time, or who knows
  std::string idle_causes_;     // empty: not asked for, or none
  size_t idle_gaps_ = 0;        // that they are of
  size_t largest_family_ = 0;
  int64_t largest_family_ns_ = 0;
  int64_t largest_unlinked_ns_ = 0;  // of it, "unlinked" in op_categories
  int64_t all_families_ns_ = 0;
  int64_t unlinked_ns_ = 0;
  int64_t launched_elsewhere_ns_ = 0;  // unlinked, in a trace of a host
  std::vector<Note> notes_;
  std::vector<Note> opportunities_;
};

Result<ResultSet> Run(const Context& context) {
  ResultSet result;
  LAMINA_ASSIGN(result.notes, Overview(context).Make());
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"overview", "The verdict and the opportunities, as notes.",
          [] { return std::vector<Schema>{}; }, &Run};
}

}  // namespace lamina::analysis::overview
