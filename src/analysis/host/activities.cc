// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/activities.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>
#include <mutex>

#include "base/parallel.h"
#include "base/run_sort.h"
#include "trace/order.h"

namespace lamina::analysis::host {
namespace {

using trace::Kind;

// Labels are (class, name): the number of a rule, or one of these behind them.
enum Plain : int {
  kNothing = -1,
  kOsCall = -2,
  kAnnotation = -3,
  kPython = -4,
  kCall = -5,
  kOp = -6,
  kSlowLaunch = -7,
  kOtherThread = -8,
  kPreempted = -9,
  kBlocked = -10,
  kOffProcessor = -11,
  kRunning = -12,
  // Time of a crowded thread that is of another cause.
  kInCopy = -13,
  kInSync = -14,
};
constexpr std::string_view PlainName(int label) {
  switch (label) {
    case kOsCall:
      return "os_call";
    case kAnnotation:
      return "annotation";
    case kPython:
      return "python";
    case kCall:
      return "call";
    case kOp:
      return "op";
    case kSlowLaunch:
      return "slow_launch";
    case kOtherThread:
      return "other_thread";
    case kPreempted:
      return "preempted";
    case kBlocked:
      return "blocked";
    case kOffProcessor:
      return "off_processor";
    case kRunning:
      return "running";
    default:
      return "nothing";
  }
}

struct Label {
  int what = kNothing;  // rule from 0, else Plain
  StringId name{};
  // Of a wait: the act in which the thread waits; kNothing: none.
  int act = kNothing;
  StringId act_name{};
  friend bool operator==(const Label&, const Label&) = default;
};

// What the `strength` of a rule says of frames that match it.
enum class Strength : uint8_t {
  kAct,       // names what is done, with all that runs inside
  kWait,      // the thread waits, while nothing else is recorded inside
  kPlumbing,  // says nothing: what is around it counts
};

// A stretch of one thread with one label.
struct Stretch {
  int64_t start_ns = 0;
  Label label;
};

class Labels {
 public:
  Labels(const HostModel& model, const rules::PatternTable& rules,
         std::span<const Gap> gaps, std::vector<std::vector<Part>>& pieces)
      : model_(model),
        trace_(model.trace()),
        rules_(rules),
        gaps_(gaps),
        pieces_(pieces),
        os_calls_(model.trace()) {
    for (const rules::PatternRule& rule : rules.rules()) {
      strengths_.push_back(rule.strength == "wait"       ? Strength::kWait
                           : rule.strength == "plumbing" ? Strength::kPlumbing
                                                         : Strength::kAct);
      const auto also = std::ranges::find(rules.rules(), rule.also,
                                          &rules::PatternRule::value);
      waiting_.push_back(rule.also.empty() || also == rules.rules().end()
                             ? kNothing
                             : static_cast<int>(also - rules.rules().begin()));
    }
  }

  void Run(std::vector<Activity>& activities) {
    Wanted();
    if (wanted_.empty()) return;
    const int threads = model_.context().settings.threads;
    Events();
    lines_.resize(events_.size());
    ParallelFor(threads, events_.size(), [&](size_t t) { Sweep(t); });
    times_.resize(lines_.size());
    for (const Thread& thread : model_.threads()) {
      const uint32_t place = place_[thread.track.value];
      if (place != kNone && MayScatter(thread)) AddUp(thread, place);
    }
    // Pieces number what they meet; all of them do so in order.
    std::vector<std::vector<Label>> met(pieces_.size());
    ParallelFor(threads, pieces_.size(), [&](size_t i) {
      Cutter cutter(*this);
      pieces_[i] = cutter.Cut(pieces_[i]);
      met[i] = std::move(cutter.met);
    });
    std::map<std::pair<int, uint32_t>, uint32_t> numbers;
    std::vector<std::vector<uint32_t>> number_of(pieces_.size());
    for (size_t i = 0; i < pieces_.size(); ++i) {
      for (const Label& label : met[i]) {
        const auto [it, is_new] =
            numbers.try_emplace({label.what, label.name.value},
                                static_cast<uint32_t>(activities.size()));
        if (is_new) activities.push_back(ActivityOf(label));
        number_of[i].push_back(it->second);
      }
    }
    ParallelFor(threads, pieces_.size(), [&](size_t i) {
      for (Part& part : pieces_[i]) {
        if (part.activity != kNone) part.activity = number_of[i][part.activity];
      }
    });
  }

  // The labels of one thread over `window`.
  void Of(MainThread& out) {
    place_.assign(trace_.tracks.size(), kNone);
    place_[out.track] = 0;
    wanted_.emplace_back(std::vector<Interval>{out.window});
    Events();
    lines_.resize(1);
    Sweep(0);
    std::map<std::pair<int, uint32_t>, uint32_t> numbers;
    const std::vector<Stretch>& line = lines_[0];
    for (size_t i = 0; i < line.size(); ++i) {
      const int64_t from = std::max(line[i].start_ns, out.window.start_ns);
      const int64_t to = std::min(
          i + 1 < line.size() ? line[i + 1].start_ns : from, out.window.end_ns);
      const Label& label = line[i].label;
      if (to <= from || label.what == kNothing) continue;
      const auto [it, is_new] =
          numbers.try_emplace({label.what, label.name.value},
                              static_cast<uint32_t>(out.activities.size()));
      if (is_new) out.activities.push_back(ActivityOf(label));
      out.stretches.push_back({from, to - from, it->second, kNone});
    }
  }

 private:
  const Call& CallOf(const Part& part) const {
    return model_.calls()[model_.call(gaps_[part.gap].next)];
  }
  uint32_t TrackOf(const Call& call) const {
    return trace_.slices.track[call.slice.value].value;
  }
  Activity ActivityOf(const Label& label) const {
    Activity activity;
    activity.what = label.what >= 0 ? rules_.rule(label.what).value
                                    : std::string(PlainName(label.what));
    if (label.name.valid()) activity.detail = trace_.Text(label.name);
    return activity;
  }

  // The time of each track that must be explained.
  void Wanted() {
    std::vector<std::map<uint32_t, IntervalSet>> found(pieces_.size());
    const int threads = model_.context().settings.threads;
    ParallelFor(threads, pieces_.size(), [&](size_t i) {
      uint32_t last = kNone;  // most parts are of the track of the one before
      IntervalSet* of_last = nullptr;
      for (const Part& part : pieces_[i]) {
        if (part.cause != Cause::kHostBound) continue;
        const uint32_t track = TrackOf(CallOf(part));
        if (of_last == nullptr || track != last) of_last = &found[i][track];
        last = track;
        of_last->AppendSorted({part.start_ns, part.start_ns + part.length_ns});
      }
    });
    std::map<uint32_t, std::vector<Interval>> by_track;
    for (const auto& piece : found) {
      for (const auto& [track, set] : piece) {
        const auto intervals = set.intervals();
        auto& all = by_track[track];
        all.insert(all.end(), intervals.begin(), intervals.end());
      }
    }
    place_.assign(trace_.tracks.size(), kNone);
    for (auto& [track, intervals] : by_track) {
      place_[track] = static_cast<uint32_t>(wanted_.size());
      wanted_.emplace_back(std::move(intervals));
    }
  }

  // Host events that overlap the wanted time of their track, in order, and
  // the rule of each name among them.
  void Events() {
    const trace::Slices& slices = trace_.slices;
    const uint32_t count = trace_.captured.empty()
                               ? static_cast<uint32_t>(slices.size())
                               : trace_.captured.first;
    constexpr size_t kGrain = size_t{1} << 17;
    rule_of_.assign(trace_.strings.size(), kUnread);
    // Of a range of slices, by place: what overlaps, and the names of all of it
    // in the order in which they come.
    struct Range {
      std::vector<std::vector<SliceId>> events;
      std::vector<StringId> names;
    };
    std::vector<Range> found((count + kGrain - 1) / kGrain);
    const int threads = model_.context().settings.threads;
    ParallelRanges(
        threads, count, kGrain, [&](size_t begin, size_t end, size_t part) {
          Range& range = found[part];
          range.events.resize(wanted_.size());
          absl::flat_hash_set<StringId> known;
          // Events of a thread follow each other: so do the answers.
          uint32_t last = kNone;
          size_t near = 0;
          for (size_t i = begin; i < end; ++i) {
            const uint32_t place = place_[slices.track[i].value];
            if (place == kNone || slices.dur_ns[i] == 0) continue;
            const Kind kind = slices.kind[i];
            if (!trace::IsHostTree(kind) && kind != Kind::kAnnotation &&
                !os_calls_.Has(trace_, static_cast<uint32_t>(i)))
              continue;
            const int64_t start = slices.start_ns[i];
            const Cover& wanted = wanted_[place];
            near = place == last ? wanted.FirstAfter(start, near)
                                 : wanted.FirstAfter(start);
            last = place;
            const auto all = wanted.intervals();
            if (near == all.size() ||
                all[near].start_ns >= start + slices.dur_ns[i])
              continue;
            range.events[place].push_back(SliceId(static_cast<uint32_t>(i)));
            if (known.insert(slices.name[i]).second)
              range.names.push_back(slices.name[i]);
          }
        });
    std::vector<StringId> names;
    for (const Range& range : found) {
      for (const StringId name : range.names) {
        if (rule_of_[name.value] != kUnread) continue;
        rule_of_[name.value] = kNothing;
        names.push_back(name);
      }
    }
    events_.resize(wanted_.size());
    ParallelFor(threads, events_.size(), [&](size_t place) {
      size_t events = 0;
      for (const Range& range : found) events += range.events[place].size();
      events_[place].reserve(events);
      for (const Range& range : found)
        events_[place].insert(events_[place].end(), range.events[place].begin(),
                              range.events[place].end());
    });
    found = {};
    std::vector<std::string_view> texts;
    for (const StringId name : names) texts.push_back(trace_.Text(name));
    const std::vector<int> rules = rules_.FindAll(texts, threads);
    for (size_t i = 0; i < names.size(); ++i)
      rule_of_[names[i].value] =
          rules[i] == rules::PatternTable::kNone ? int{kNothing} : rules[i];
    for (auto& events : events_) {
      RunSort(events, model_.context().settings.threads,
              [&](SliceId a, SliceId b) {
                if (trace_.Start(a) != trace_.Start(b))
                  return trace_.Start(a) < trace_.Start(b);
                return trace_.Duration(a) > trace_.Duration(b);
              });
    }
  }

  bool Is(int what, Strength strength) const {
    return what >= 0 && strengths_[static_cast<size_t>(what)] == strength;
  }

  // A wait tells least: what it is in says for what it waits.
  Label WaitIn(const Label& wait, const Label& outer) const {
    if (Is(outer.what, Strength::kWait)) return outer;
    if (!Is(outer.what, Strength::kAct)) return wait;
    const int waiting = waiting_[static_cast<size_t>(outer.what)];
    if (waiting == kNothing) return outer;
    return {waiting, outer.name, outer.what, outer.name};
  }

  Label LabelOf(SliceId s, const Label& outer) const {
    const StringId name = trace_.slices.name[s.value];
    const int rule = rule_of_[name.value];
    if (os_calls_.Has(trace_, s.value)) {
      // How what is around it works, unless that says nothing.
      if (outer.what >= 0 || outer.what == kCall) return outer;
      if (rule >= 0) return {rule, name};
      return outer.what < kOsCall ? outer : Label{kOsCall, name};
    }
    if (Is(rule, Strength::kWait)) return WaitIn({rule, name}, outer);
    if (Is(rule, Strength::kAct)) return {rule, name};
    if (Is(outer.what, Strength::kAct)) return outer;
    if (Is(rule, Strength::kPlumbing) && outer.what != kNothing) return outer;
    // A thread that runs something does not wait.
    const bool waited = Is(outer.what, Strength::kWait);
    if (waited && outer.act != kNothing) return {outer.act, outer.act_name};
    const int around = waited ? int{kNothing} : outer.what;
    int own = kOp;
    switch (trace_.KindOf(s)) {
      case Kind::kOp:
        return {kOp, name};
      case Kind::kPython:
        own = kPython;
        break;
      case Kind::kAnnotation:
        own = kAnnotation;
        break;
      default:
        own = kCall;
    }
    // An op says more than its calls, a call more than frames around it.
    return around < own ? outer : Label{own, name};
  }

  // The labels of a thread over time. An event that overlaps the one around it
  // ends with it.
  void Sweep(size_t t) {
    struct Open {
      int64_t end;
      Label label;
      bool os_call;
    };
    std::vector<Open> open;
    std::vector<Stretch>& line = lines_[t];
    const auto say = [&](int64_t time, const Label& label) {
      if (!line.empty() && line.back().start_ns == time) {
        line.back().label = label;
      } else if (line.empty() || !(line.back().label == label)) {
        line.push_back({time, label});
      }
    };
    const auto close = [&](int64_t until) {
      while (!open.empty() && open.back().end <= until) {
        const int64_t end = open.back().end;
        open.pop_back();
        say(end, open.empty() ? Label() : open.back().label);
      }
    };
    for (const SliceId s : events_[t]) {
      close(trace_.Start(s));
      // What goes on past a call of the operating system is not inside of it:
      // two recorders do not agree to the nanosecond. Neither is what begins
      // within the last microsecond: start and length are rounded apart.
      const bool os_call = os_calls_.Has(trace_, s.value);
      while (!open.empty() && open.back().end < trace_.End(s) &&
             ((!os_call && open.back().os_call) ||
              open.back().end - trace_.Start(s) <= trace::kRoundingNs))
        open.pop_back();
      const Label label =
          LabelOf(s, open.empty() ? Label() : open.back().label);
      int64_t end = trace_.End(s);
      if (!open.empty()) end = std::min(end, open.back().end);
      if (end <= trace_.Start(s)) continue;
      open.push_back({end, label, os_call});
      say(trace_.Start(s), label);
    }
    close(std::numeric_limits<int64_t>::max());
  }

  // The time of a crowded thread by label, for sums over any of it: without the
  // part of silence in which other threads of its process work.
  void AddUp(const Thread& thread, uint32_t place) {
    const auto wanted = wanted_[place].intervals();
    if (wanted.empty()) return;
    const int64_t end = wanted.back().end_ns;
    const Cover silence(std::vector<Interval>{{wanted[0].start_ns, end}});
    const Cover& host = model_.host_of(thread);
    std::vector<std::vector<Interval>> found;
    std::vector<Label> labels;
    absl::flat_hash_map<std::pair<int, uint32_t>, size_t> numbers;
    const auto add = [&](const Label& label, int64_t from, int64_t to) {
      if (to <= from) return;
      const auto [it, is_new] =
          numbers.try_emplace({label.what, label.name.value}, labels.size());
      if (is_new) {
        labels.push_back(label);
        found.emplace_back();
      }
      found[it->second].push_back({from, to});
    };
    // What is in a call that waits belongs to that.
    const auto free = [&](const Label& label, int64_t from, int64_t to) {
      if (to <= from) return;
      if (label.what != kNothing || label.name.valid()) {
        add(label, from, to);
        return;
      }
      const Label other = OtherThread(from, to, thread.track.value);
      Cut(
          host, from, to, [&](int64_t a, int64_t b) { add(other, a, b); },
          [&](int64_t a, int64_t b) { add({}, a, b); });
    };
    const std::vector<Stretch>& line = lines_[place];
    int64_t at = wanted[0].start_ns;
    for (size_t i = 0; i <= line.size() && at < end; ++i) {
      const int64_t to =
          i == line.size() ? end : std::min(end, line[i].start_ns);
      const Label label = i == 0 ? Label() : line[i - 1].label;
      Cut(
          thread.blocked, at, to,
          [&](int64_t from, int64_t until) {
            Cut(
                thread.copies, from, until,
                [&](int64_t a, int64_t b) {
                  add({kInCopy, {}}, a, b);
                },
                [&](int64_t a, int64_t b) {
                  add({kInSync, {}}, a, b);
                });
          },
          [&](int64_t from, int64_t until) { free(label, from, until); });
      at = std::max(at, to);
    }
    for (size_t i = 0; i < labels.size(); ++i)
      times_[place].emplace_back(labels[i], Cover(std::move(found[i])));
  }

  // Replaces the host_bound parts of a piece by theirs.
  class Cutter {
   public:
    explicit Cutter(Labels& labels)
        : of_(labels), model_(labels.model_), trace_(labels.trace_) {}

    // Activities of the result are of `met`.
    std::vector<Part> Cut(const std::vector<Part>& parts) {
      out_.reserve(parts.size() + parts.size() / 8);
      for (const Part& part : parts) {
        if (part.cause == Cause::kHostBound) {
          Add(part);
        } else {
          out_.push_back(part);
        }
      }
      return std::move(out_);
    }

    std::vector<Label> met;

   private:
    void Add(const Part& part) {
      const Call& call = of_.CallOf(part);
      const uint32_t place = of_.place_[of_.TrackOf(call)];
      const std::vector<Stretch>& line = of_.lines_[place];
      const int64_t end = part.start_ns + part.length_ns;
      int64_t at = part.start_ns;
      size_t& near = near_[place];
      near = BoundNear(line.size(), near,
                       [&](size_t i) { return line[i].start_ns <= at; });
      auto next = line.begin() + static_cast<ptrdiff_t>(near);
      const bool slow = call.slow && trace_.Start(call.slice) < end;
      if (part.scattered != Scattered::kNo ||
          (!slow && MayScatter(model_.threads()[call.thread]) &&
           near + kMostPieces < line.size() &&
           line[near + kMostPieces].start_ns < end)) {
        Sums(part, of_.times_[place]);
        return;
      }
      const auto& states = model_.threads()[call.thread].os.states;
      auto state = std::partition_point(
          states.begin(), states.end(),
          [&](const ThreadState& s) { return s.interval.end_ns <= at; });
      while (at < end) {
        int64_t to = next == line.end() ? end : std::min(end, next->start_ns);
        // A slow call says more than the op that it is in.
        const int64_t called = trace_.Start(call.slice);
        if (call.slow && at < called) to = std::min(to, called);
        Label label = next == line.begin() ? Label() : std::prev(next)->label;
        if (call.slow && at >= called)
          label = {kSlowLaunch, trace_.slices.name[call.slice.value]};
        if (state != states.end()) {
          const Interval& known = state->interval;
          to =
              std::min(to, known.start_ns > at ? known.start_ns : known.end_ns);
          if (known.start_ns <= at) label = In(*state, label);
        }
        const bool silent = label.what == kNothing || label.what == kBlocked ||
                            label.what == kOffProcessor;
        if (silent && !label.name.valid()) {
          Elsewhere(part, at, to, label);
        } else {
          Piece(part, at, to, Number(label));
        }
        at = to;
        while (state != states.end() && state->interval.end_ns <= at) ++state;
        if (next != line.end() && next->start_ns <= at) ++next;
      }
    }

    // One piece for each label.
    void Sums(const Part& part,
              const std::vector<std::pair<Label, Cover>>& times) {
      const int64_t end = part.start_ns + part.length_ns;
      int64_t at = part.start_ns;
      for (const auto& [label, cover] : times) {
        const int64_t ns = cover.Over(part.start_ns, end);
        if (ns == 0) continue;
        Part piece = part;
        piece.scattered = Scattered::kNo;
        piece.start_ns = at;
        piece.length_ns = ns;
        at += ns;
        if (label.what == kInCopy || label.what == kInSync) {
          piece.cause = label.what == kInCopy ? Cause::kMemcpy : Cause::kSync;
        } else if (label.what == kNothing && !label.name.valid() &&
                   part.scattered == Scattered::kQuiet) {
          piece.cause = Cause::kNoWork;
        } else {
          piece.activity = Number(label);
        }
        piece.after_sync = part.after_sync && piece.cause == Cause::kHostBound;
        out_.push_back(piece);
      }
      LAMINA_CHECK(at == end);
    }

    uint32_t Number(const Label& label) {
      const auto [it, is_new] = numbers_.try_emplace(
          {label.what, label.name.value}, static_cast<uint32_t>(met.size()));
      if (is_new) met.push_back(label);
      return it->second;
    }

    void Piece(const Part& part, int64_t from, int64_t to, uint32_t activity) {
      if (to <= from) return;
      if (!out_.empty() && out_.back().gap == part.gap &&
          out_.back().activity == activity &&
          out_.back().after_sync == part.after_sync &&
          out_.back().start_ns + out_.back().length_ns == from) {
        out_.back().length_ns += to - from;
        return;
      }
      out_.push_back(part);
      out_.back().start_ns = from;
      out_.back().length_ns = to - from;
      out_.back().activity = activity;
    }

    // Time in which the launching thread recorded nothing but perhaps its
    // state.
    void Elsewhere(const Part& part, int64_t from, int64_t to,
                   const Label& label) {
      const Thread& thread = model_.threads()[of_.CallOf(part).thread];
      const Cover& host = model_.host_of(thread);
      const auto all = host.intervals();
      const uint32_t nothing = Number(label);
      // Of the whole: threads that hand over to each other leave short
      // stretches.
      const uint32_t other =
          Number(of_.OtherThread(from, to, of_.TrackOf(of_.CallOf(part))));
      int64_t at = from;
      size_t& near = near_host_[thread.process];
      near = host.FirstAfter(from, near);
      for (size_t i = near; i < all.size() && all[i].start_ns < to; ++i) {
        const int64_t start = std::max(at, all[i].start_ns);
        const int64_t end = std::min(to, all[i].end_ns);
        Piece(part, at, start, nothing);
        Piece(part, start, end, other);
        at = end;
      }
      Piece(part, at, to, nothing);
    }

    Labels& of_;
    const HostModel& model_;
    const Trace& trace_;
    absl::flat_hash_map<uint32_t, size_t> near_;       // by line
    absl::flat_hash_map<uint32_t, size_t> near_host_;  // by process
    absl::flat_hash_map<std::pair<int, uint32_t>, uint32_t> numbers_;
    std::vector<Part> out_;
  };

  // What a thread did that was in this state.
  static Label In(const ThreadState& state, const Label& label) {
    switch (state.state) {
      case ProcessorState::kPreempted:
        return {kPreempted, label.name};
      case ProcessorState::kRunning:
        return label.what == kNothing ? Label{kRunning, {}} : label;
      case ProcessorState::kBlocked:
      case ProcessorState::kOff:
        break;
    }
    if (label.what >= 0 || label.what == kSlowLaunch) return label;
    return {state.state == ProcessorState::kOff ? kOffProcessor : kBlocked,
            label.name};
  }

  // The thread that worked most in a stretch, by what it runs on the outside.
  Label OtherThread(int64_t from, int64_t to, uint32_t own_track) {
    // Short stretches are hand-overs; naming each of millions says nothing.
    constexpr int64_t kLong = 100000;
    if (to - from < kLong) return {kOtherThread, {}};
    std::call_once(roots_made_, [this] { MakeRoots(); });
    int64_t most = 0;
    StringId name;
    for (size_t t = 0; t < roots_.size(); ++t) {
      const int64_t over = roots_[t].Over(from, to);
      if (over <= most || root_tracks_[t] == own_track) continue;
      most = over;
      const trace::Track& track = trace_.tracks[root_tracks_[t]];
      name = track.thread_name.valid() ? track.thread_name : track.tid;
    }
    return most > 0 ? Label{kOtherThread, name} : Label();
  }

  // Of threads that recorded ops, calls, frames or annotations.
  void MakeRoots() {
    constexpr size_t kMostThreads = 64;
    std::vector<size_t> place(trace_.tracks.size(), kMostThreads);
    std::vector<std::vector<Interval>> outer;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const Kind kind = trace_.slices.kind[i];
      if (trace_.captured.Has(SliceId(i)) ||
          (!trace::IsHostTree(kind) && kind != Kind::kAnnotation))
        continue;
      const uint32_t track = trace_.slices.track[i].value;
      if (place[track] == kMostThreads) {
        if (outer.size() == kMostThreads) continue;
        place[track] = outer.size();
        outer.emplace_back();
        root_tracks_.push_back(track);
      }
      std::vector<Interval>& of = outer[place[track]];
      const Interval here{trace_.Start(SliceId(i)), trace_.End(SliceId(i))};
      // What lies in the one before adds nothing.
      if (of.empty() || here.start_ns < of.back().start_ns ||
          here.end_ns > of.back().end_ns)
        of.push_back(here);
    }
    for (std::vector<Interval>& of : outer) roots_.emplace_back(std::move(of));
  }

  static constexpr int kUnread = -100;

  const HostModel& model_;
  const Trace& trace_;
  const rules::PatternTable& rules_;
  const std::span<const Gap> gaps_;
  std::vector<std::vector<Part>>& pieces_;
  const OsCalls os_calls_;
  std::vector<Strength> strengths_;  // by rule
  std::vector<int> waiting_;         // by rule: what it becomes in a wait
  std::vector<uint32_t> place_;      // by track: of wanted_
  std::vector<Cover> wanted_;
  std::vector<std::vector<SliceId>> events_;
  std::vector<int> rule_of_;  // by name
  std::vector<std::vector<Stretch>> lines_;
  // Of crowded threads, by place.
  std::vector<std::vector<std::pair<Label, Cover>>> times_;
  std::once_flag roots_made_;
  std::vector<Cover> roots_;
  std::vector<uint32_t> root_tracks_;
};

}  // namespace

void LabelHostParts(const HostModel& model, const rules::PatternTable& rules,
                    std::span<const Gap> gaps,
                    std::vector<std::vector<Part>>& pieces,
                    std::vector<Activity>& activities) {
  Labels(model, rules, gaps, pieces).Run(activities);
}

Result<MainThread> MainThread::Of(const Context& context) {
  MainThread out;
  LAMINA_ASSIGN(const HostModel* const model, context.Get<HostModel>());
  LAMINA_ASSIGN(const auto rules, LoadRules(context.input.data));
  const Trace& trace = context.trace;
  if (!trace.device_slices().empty()) return out;
  // What is recorded of each thread, once where it is nested.
  std::vector<std::vector<Interval>> all(trace.tracks.size());
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const Kind kind = trace.slices.kind[i];
    if (!trace::IsHostTree(kind) && kind != Kind::kAnnotation) continue;
    all[trace.slices.track[i].value].push_back(
        {trace.Start(SliceId(i)), trace.End(SliceId(i))});
  }
  const auto& steps = context.steps.steps();
  int64_t most_ns = 0;
  std::vector<Cover> covers;
  for (auto& intervals : all) covers.emplace_back(std::move(intervals));
  for (uint32_t t = 0; t < covers.size(); ++t) {
    int64_t ns = 0;
    for (const Interval& i : covers[t].intervals()) ns += i.length_ns();
    if (ns <= most_ns) continue;
    most_ns = ns;
    out.track = t;
  }
  if (!steps.empty())
    out.track = trace.slices.track[steps.front().slice.value].value;
  if (out.track == kNone || covers[out.track].intervals().empty()) return out;
  const auto own = covers[out.track].intervals();
  out.window = {own.front().start_ns, own.back().end_ns};
  std::vector<std::vector<Part>> none;
  Labels(*model, *rules, {}, none).Of(out);
  for (Stretch& s : out.stretches) {
    const auto after = std::partition_point(
        steps.begin(), steps.end(),
        [&](const auto& step) { return step.host.start_ns <= s.start_ns; });
    if (after != steps.begin())
      s.step = static_cast<uint32_t>(after - steps.begin() - 1);
  }
  return out;
}

Result<std::shared_ptr<const rules::PatternTable>> LoadRules(
    const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("host"));
  LAMINA_ASSIGN(auto table,
                rules::ReadPatternTable(files, "rules", "activity"));
  return std::make_shared<const rules::PatternTable>(std::move(table));
}

}  // namespace lamina::analysis::host
