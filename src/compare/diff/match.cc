// SPDX-License-Identifier: Apache-2.0

#include "compare/diff/match.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>

#include "base/sequence_match.h"

namespace lamina::analysis::diff {

namespace {

using List = std::vector<uint32_t>;

// Wrappers around wrappers, at most.
constexpr int kMaxUnwraps = 24;
// How far below a left-over entry names of the other side are looked for.
constexpr uint32_t kLookLevels = 3;
constexpr uint32_t kLookEntries = 64;

class Matcher {
 public:
  Matcher(const Side& a, const Side& b) : a_(a), b_(b) {}

  Matching Run() {
    result_.partner_a.assign(a_.entries().size(), kNone);
    result_.partner_b.assign(b_.entries().size(), kNone);
    todo_.emplace_back(a_.Roots(), b_.Roots());
    while (!todo_.empty()) {
      auto [left, right] = std::move(todo_.back());
      todo_.pop_back();
      MatchLists(std::move(left), std::move(right));
    }
    std::sort(result_.moved.begin(), result_.moved.end());
    return std::move(result_);
  }

 private:
  // --- one pair ---
  void Pair(uint32_t i, uint32_t j) {
    const Entry& left = a_.entry(i);
    const Entry& right = b_.entry(j);
    if (left.exact == right.exact && left.end - i == right.end - j) {
      for (uint32_t k = 0; k < left.end - i; ++k) Join(i + k, j + k);
      return;
    }
    Join(i, j);
    if (left.end > i + 1 && right.end > j + 1)
      todo_.emplace_back(a_.Children(i), b_.Children(j));
  }
  void Join(uint32_t i, uint32_t j) {
    result_.partner_a[i] = j;
    result_.partner_b[j] = i;
  }

  // --- one list of siblings ---
  void MatchLists(List left, List right) {
    std::vector<SequencePair> pairs;
    for (int round = 0;; ++round) {
      FindNumberedClasses(left, right);
      pairs = Align(left, right);
      // A module that has moved is no wrapper to look into.
      if (FindMoved(left, right, pairs, true)) {
        Forget(left, result_.partner_a);
        Forget(right, result_.partner_b);
        pairs = Align(left, right);
      }
      if (round == kMaxUnwraps || !Unwrap(left, right, pairs)) break;
    }
    for (const SequencePair& pair : pairs) Pair(left[pair.a], right[pair.b]);
    FindMoved(left, right, pairs, false);
  }

  // Keys that an entry is known by. A module or step whose numbers mean the
  // same on both sides is known by its number too.
  using Key = uint64_t (Matcher::*)(const Entry&) const;
  uint64_t Full(const Entry& e) const { return Numbered(e, e.full); }
  uint64_t Shape(const Entry& e) const { return Numbered(e, e.shape); }
  uint64_t Label(const Entry& e) const { return Numbered(e, e.label.value); }
  bool HasNumber(const Entry& e) const {
    return e.numbered && by_number_.contains(e.label);
  }
  uint64_t Numbered(const Entry& e, uint64_t otherwise) const {
    return HasNumber(e) ? (uint64_t{1} << 63) + e.name.value : otherwise;
  }

  // As many equal names as possible; among such alignments one in which more
  // than the names agrees. Equal launches of different kernels count half:
  // without ops above them their names say nothing.
  std::vector<SequencePair> Align(const List& left, const List& right) const {
    static constexpr Key kKeys[] = {&Matcher::Full, &Matcher::Shape,
                                    &Matcher::Label};
    std::vector<SequencePair> best;
    size_t best_score = 0;
    for (size_t first = 0; first < std::size(kKeys); ++first) {
      std::vector<SequencePair> pairs;
      for (size_t k = first; k < std::size(kKeys); ++k)
        Refine(left, right, kKeys[k], pairs);
      size_t score = 0;
      for (const SequencePair& pair : pairs) {
        const Entry& a = a_.entry(left[pair.a]);
        score += a.api && a.full != b_.entry(right[pair.b]).full ? 1 : 2;
      }
      if (score > best_score) {
        best_score = score;
        best = std::move(pairs);
      }
      if (best_score == 2 * std::min(left.size(), right.size())) break;
    }
    return best;
  }

  // Aligns the stretches between the pairs found so far.
  void Refine(const List& left, const List& right, Key key,
              std::vector<SequencePair>& pairs) const {
    std::vector<uint64_t> keys_a, keys_b;
    for (const uint32_t i : left) keys_a.push_back((this->*key)(a_.entry(i)));
    for (const uint32_t j : right) keys_b.push_back((this->*key)(b_.entry(j)));
    std::vector<SequencePair> all;
    uint32_t begin_a = 0, begin_b = 0;
    const auto gap = [&](uint32_t end_a, uint32_t end_b) {
      if (begin_a < end_a && begin_b < end_b) {
        const auto part = [](const std::vector<uint64_t>& keys, uint32_t begin,
                             uint32_t end) {
          return std::span(keys).subspan(begin, end - begin);
        };
        for (const SequencePair& pair : MatchSequences(
                 part(keys_a, begin_a, end_a), part(keys_b, begin_b, end_b)))
          all.push_back({begin_a + pair.a, begin_b + pair.b});
      }
    };
    for (const SequencePair& pair : pairs) {
      gap(pair.a, pair.b);
      all.push_back(pair);
      begin_a = pair.a + 1;
      begin_b = pair.b + 1;
    }
    gap(static_cast<uint32_t>(left.size()),
        static_cast<uint32_t>(right.size()));
    pairs = std::move(all);
  }

  // Numbers of a class mean the same when the names of one side are all among
  // those of the other; otherwise another number of modules was made before,
  // and only the order says which is which.
  void FindNumberedClasses(const List& left, const List& right) {
    struct Count {
      uint32_t a = 0, b = 0;
    };
    absl::flat_hash_map<std::pair<StringId, StringId>, Count> names;
    for (const uint32_t i : left) {
      const Entry& e = a_.entry(i);
      if (e.numbered) ++names[{e.label, e.name}].a;
    }
    for (const uint32_t j : right) {
      const Entry& e = b_.entry(j);
      if (e.numbered) ++names[{e.label, e.name}].b;
    }
    struct Class {
      uint32_t a = 0, b = 0, both = 0;
    };
    absl::flat_hash_map<StringId, Class> classes;
    for (const auto& [name, count] : names) {
      Class& entry = classes[name.first];
      entry.a += count.a;
      entry.b += count.b;
      entry.both += std::min(count.a, count.b);
    }
    by_number_.clear();
    for (const auto& [label, count] : classes) {
      if (count.both > 0 && count.both == std::min(count.a, count.b))
        by_number_.insert(label);
    }
  }

  // --- what is left ---
  static List LeftOver(const List& list, const std::vector<SequencePair>& pairs,
                       uint32_t SequencePair::*side) {
    List out;
    size_t next = 0;
    for (uint32_t at = 0; at < list.size(); ++at) {
      if (next < pairs.size() && pairs[next].*side == at) {
        ++next;
      } else {
        out.push_back(list[at]);
      }
    }
    return out;
  }

  // Puts the children of left-over wrappers in their place. False when there
  // is nothing to unwrap.
  bool Unwrap(List& left, List& right,
              const std::vector<SequencePair>& pairs) const {
    const List rest_a = LeftOver(left, pairs, &SequencePair::a);
    const List rest_b = LeftOver(right, pairs, &SequencePair::b);
    if (rest_a.empty() || rest_b.empty()) return false;
    const absl::flat_hash_set<uint64_t> labels_a = Labels(a_, rest_a);
    const absl::flat_hash_set<uint64_t> labels_b = Labels(b_, rest_b);
    const absl::flat_hash_set<uint64_t> inside_a = ChildLabels(a_, rest_a);
    const absl::flat_hash_set<uint64_t> inside_b = ChildLabels(b_, rest_b);
    const bool changed_a = Replace(a_, left, rest_a, labels_b, inside_b);
    const bool changed_b = Replace(b_, right, rest_b, labels_a, inside_a);
    return changed_a || changed_b;
  }
  absl::flat_hash_set<uint64_t> Labels(const Side& side,
                                       const List& list) const {
    absl::flat_hash_set<uint64_t> out;
    for (const uint32_t i : list) out.insert(side.entry(i).label.value);
    return out;
  }
  static absl::flat_hash_set<uint64_t> ChildLabels(const Side& side,
                                                   const List& list) {
    absl::flat_hash_set<uint64_t> out;
    for (const uint32_t i : list) {
      for (const uint32_t c : side.Children(i))
        out.insert(side.entry(c).label.value);
    }
    return out;
  }
  // At least half of the children have names that occur there.
  static bool Continues(const Side& side, uint32_t i,
                        const absl::flat_hash_set<uint64_t>& insides) {
    size_t known = 0, all = 0;
    for (const uint32_t c : side.Children(i)) {
      ++all;
      known += insides.contains(side.entry(c).label.value) ? 1 : 0;
    }
    return 2 * known >= all;
  }
  static bool Replace(const Side& side, List& list, const List& rest,
                      const absl::flat_hash_set<uint64_t>& labels,
                      const absl::flat_hash_set<uint64_t>& insides) {
    List out;
    bool changed = false;
    size_t next = 0;
    for (const uint32_t i : list) {
      const bool left_over = next < rest.size() && rest[next] == i;
      if (left_over) ++next;
      if (left_over && side.entry(i).end > i + 1 &&
          (HoldsLabel(side, i, labels) || Continues(side, i, insides))) {
        const List children = side.Children(i);
        out.insert(out.end(), children.begin(), children.end());
        changed = true;
      } else {
        out.push_back(i);
      }
    }
    list = std::move(out);
    return changed;
  }
  static bool HoldsLabel(const Side& side, uint32_t entry,
                         const absl::flat_hash_set<uint64_t>& labels) {
    const uint32_t end =
        std::min(side.entry(entry).end, entry + 1 + kLookEntries);
    uint32_t level[kLookEntries + 1] = {0};
    for (uint32_t i = entry + 1; i < end; ++i) {
      const uint32_t above = level[side.entry(i).parent - entry];
      level[i - entry] = above + 1;
      if (above < kLookLevels && labels.contains(side.entry(i).label.value))
        return true;
    }
    return false;
  }

  // Entries of the same number, or else with the same inside, that stand at
  // another place. False when there are none.
  bool FindMoved(const List& left, const List& right,
                 const std::vector<SequencePair>& pairs, bool numbered) {
    const List rest_a = LeftOver(left, pairs, &SequencePair::a);
    const List rest_b = LeftOver(right, pairs, &SequencePair::b);
    if (rest_a.empty() || rest_b.empty()) return false;
    absl::flat_hash_map<uint64_t, List> places;  // in order, last first
    for (auto it = rest_b.rbegin(); it != rest_b.rend(); ++it) {
      if (!numbered || HasNumber(b_.entry(*it)))
        places[Shape(b_.entry(*it))].push_back(*it);
    }
    bool any = false;
    for (const uint32_t i : rest_a) {
      if (numbered && !HasNumber(a_.entry(i))) continue;
      const auto found = places.find(Shape(a_.entry(i)));
      if (found == places.end() || found->second.empty()) continue;
      const uint32_t j = found->second.back();
      found->second.pop_back();
      Pair(i, j);
      result_.moved.emplace_back(i, j);
      any = true;
    }
    return any;
  }
  static void Forget(List& list, const std::vector<uint32_t>& partner) {
    std::erase_if(list, [&](uint32_t i) { return partner[i] != kNone; });
  }

  const Side& a_;
  const Side& b_;
  std::vector<std::pair<List, List>> todo_;
  absl::flat_hash_set<StringId> by_number_;
  Matching result_;
};

}  // namespace

Matching MatchSides(const Side& a, const Side& b) {
  return Matcher(a, b).Run();
}

namespace {

// Entries of one side by the matched op that their work is compared at.
struct EntryMembers {
  std::vector<uint32_t> anchor;  // by entry; kNone: alone
  std::vector<uint32_t> begin;   // by anchor, into list
  std::vector<uint32_t> list;    // entries with work of their own

  std::span<const uint32_t> Of(uint32_t entry) const {
    return {list.data() + begin[entry], list.data() + begin[entry + 1]};
  }
};

EntryMembers FindMembers(const Side& side,
                         const std::vector<uint32_t>& partner) {
  const auto& entries = side.entries();
  EntryMembers out;
  out.anchor.assign(entries.size(), kNone);
  out.begin.assign(entries.size() + 1, 0);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const uint32_t parent = entries[i].parent;
    if (partner[i] != kNone) {
      if (entries[i].launches) out.anchor[i] = i;
    } else if (parent != kNone) {
      out.anchor[i] = out.anchor[parent];
    }
    if (out.anchor[i] != kNone && !side.Work(i).empty())
      ++out.begin[out.anchor[i] + 1];
  }
  for (size_t i = 1; i < out.begin.size(); ++i)
    out.begin[i] += out.begin[i - 1];
  out.list.resize(out.begin.back());
  std::vector<uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (out.anchor[i] != kNone && !side.Work(i).empty())
      out.list[next[out.anchor[i]]++] = i;
  }
  return out;
}

class Collector {
 public:
  Collector(const Side& a, const Side& b, const Matching& matching)
      : sides_{&a, &b},
        partners_{&matching.partner_a, &matching.partner_b},
        members_{FindMembers(a, matching.partner_a),
                 FindMembers(b, matching.partner_b)} {
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const size_t slices = sides_[s]->trace().device.size();
      rows_.op_of[s].assign(slices, kNone);
      rows_.kernel_of[s].assign(slices, kNone);
    }
  }

  PairRows Run() {
    const Side& a = *sides_[0];
    for (uint32_t i = 0; i < a.entries().size(); ++i) {
      const uint32_t j = (*partners_[0])[i];
      if (j == kNone || !a.entry(i).launches) continue;
      const auto left = members_[0].Of(i);
      const auto right = members_[1].Of(j);
      if (!left.empty() && !right.empty()) {
        AddPair(i, j, left, right);
      } else {
        for (const uint32_t e : left) AddAlone(0, e);
        for (const uint32_t e : right) AddAlone(1, e);
      }
    }
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Side& side = *sides_[s];
      for (uint32_t i = 0; i < side.entries().size(); ++i) {
        if (members_[s].anchor[i] == kNone && !side.Work(i).empty())
          AddAlone(s, i);
      }
      AddUnlinked(s);
    }
    return std::move(rows_);
  }

 private:
  using OpKey = std::tuple<StringId, StringId, StringId, StringId, StringId,
                           StringId, Change>;

  OpRow& Op(StringId op, StringId module, PerSide<StringId> dims,
            PerSide<StringId> types, Change change) {
    const OpKey key(op, module, dims[0], dims[1], types[0], types[1], change);
    const auto [it, is_new] = op_ids_.try_emplace(key, rows_.ops.size());
    if (is_new) {
      OpRow& row = rows_.ops.emplace_back();
      row.id = static_cast<uint32_t>(it->second);
      row.op = op;
      row.module = module;
      row.dims = dims;
      row.types = types;
      row.change = change;
    }
    return rows_.ops[it->second];
  }
  KernelRow& Kernel(StringId op, StringId a, StringId b) {
    const auto [it, is_new] =
        kernel_ids_.try_emplace(std::tuple(op, a, b), rows_.kernels.size());
    if (is_new) {
      KernelRow& row = rows_.kernels.emplace_back();
      row.id = static_cast<uint32_t>(it->second);
      row.op = op;
      row.kernel = {a, b};
    }
    return rows_.kernels[it->second];
  }
  void Count(OpRow& row, size_t s, uint32_t entry, int64_t time_ns) const {
    ++row.count[s];
    row.time_ns[s] += time_ns;
    const NodeId node = sides_[s]->entry(entry).node;
    if (!row.uid[s] && node.valid()) {
      row.uid[s] =
          sides_[s]->trace().Uid(sides_[s]->context().tree.slice(node));
    }
  }
  void CountKernel(StringId op, size_t s, SliceId slice) {
    const StringId name = sides_[s]->Kernel(slice);
    Tally(Kernel(op, s == 0 ? name : StringId(), s == 1 ? name : StringId()), s,
          slice);
  }
  void Tally(KernelRow& row, size_t s, SliceId slice) {
    ++row.count[s];
    row.time_ns[s] += sides_[s]->trace().Duration(slice);
    rows_.kernel_of[s][Detail(s, slice)] = row.id;
  }
  uint32_t Detail(size_t s, SliceId slice) const {
    return sides_[s]->trace().slices.detail[slice.value];
  }

  void AddAlone(size_t s, uint32_t entry) {
    const Side& side = *sides_[s];
    PerSide<StringId> dims, types;
    dims[s] = side.Dims(entry);
    types[s] = side.Types(entry);
    int64_t time = 0;
    for (const SliceId slice : side.Work(entry)) {
      time += side.trace().Duration(slice);
      CountKernel(side.Title(entry), s, slice);
    }
    OpRow& row = Op(side.Title(entry), side.Module(entry), dims, types,
                    s == 0 ? Change::kOnlyA : Change::kOnlyB);
    Count(row, s, entry, time);
    for (const SliceId slice : side.Work(entry))
      rows_.op_of[s][Detail(s, slice)] = row.id;
  }

  void AddPair(uint32_t i, uint32_t j, std::span<const uint32_t> left,
               std::span<const uint32_t> right) {
    const Side& a = *sides_[0];
    const Side& b = *sides_[1];
    PerSide<std::vector<SliceId>> work;
    PerSide<std::vector<uint64_t>> kernels;
    PerSide<int64_t> time{};
    for (const size_t s : {size_t{0}, size_t{1}}) {
      for (const uint32_t e : s == 0 ? left : right) {
        for (const SliceId slice : sides_[s]->Work(e)) {
          work[s].push_back(slice);
          kernels[s].push_back(sides_[s]->Kernel(slice).value);
          time[s] += sides_[s]->trace().Duration(slice);
        }
      }
    }
    const PerSide<StringId> dims{a.Dims(i), b.Dims(j)};
    const PerSide<StringId> types{a.Types(i), b.Types(j)};
    const auto differ = [](const PerSide<StringId>& x) {
      return x[0].valid() && x[1].valid() && x[0] != x[1];
    };
    const Change change = differ(dims)               ? Change::kOtherShape
                          : differ(types)            ? Change::kOtherType
                          : kernels[0] != kernels[1] ? Change::kOtherKernel
                                                     : Change::kChanged;
    // B's name of a module counts only where A has none.
    StringId module = a.Module(i);
    if (module == StringPool::kEmpty) module = b.Module(j);
    const StringId title = a.Title(i);
    OpRow& row = Op(title, module, dims, types, change);
    const StringId module_b = b.Module(j);
    if (module_b != module && module_b != StringPool::kEmpty &&
        !row.module_b.valid())
      row.module_b = module_b;
    Count(row, 0, i, time[0]);
    Count(row, 1, j, time[1]);
    for (const size_t s : {size_t{0}, size_t{1}}) {
      for (const SliceId slice : work[s])
        rows_.op_of[s][Detail(s, slice)] = row.id;
    }
    AddKernelPairs(title, work, kernels);
  }

  // Equal names in order; what is left between them by kind, one to one where
  // both sides have as many: the copy for the copy, the kernel for the kernel.
  void AddKernelPairs(StringId op, const PerSide<std::vector<SliceId>>& work,
                      const PerSide<std::vector<uint64_t>>& kernels) {
    std::vector<SequencePair> pairs = MatchSequences(kernels[0], kernels[1]);
    pairs.push_back({static_cast<uint32_t>(work[0].size()),
                     static_cast<uint32_t>(work[1].size())});
    SequencePair at{0, 0};
    for (const SequencePair& pair : pairs) {
      AddGap(op, std::span(work[0]).subspan(at.a, pair.a - at.a),
             std::span(work[1]).subspan(at.b, pair.b - at.b));
      if (pair.a < work[0].size()) Both(op, work[0][pair.a], work[1][pair.b]);
      at = {pair.a + 1, pair.b + 1};
    }
  }
  void AddGap(StringId op, std::span<const SliceId> left,
              std::span<const SliceId> right) {
    for (const trace::Kind kind : {trace::Kind::kKernel, trace::Kind::kMemcpy,
                                   trace::Kind::kMemset, trace::Kind::kGraph}) {
      PerSide<std::vector<SliceId>> of_kind;
      for (const size_t s : {size_t{0}, size_t{1}}) {
        for (const SliceId slice : s == 0 ? left : right) {
          if (sides_[s]->trace().KindOf(slice) == kind)
            of_kind[s].push_back(slice);
        }
      }
      if (of_kind[0].size() == of_kind[1].size()) {
        for (size_t k = 0; k < of_kind[0].size(); ++k)
          Both(op, of_kind[0][k], of_kind[1][k]);
      } else {
        for (const size_t s : {size_t{0}, size_t{1}}) {
          for (const SliceId slice : of_kind[s]) CountKernel(op, s, slice);
        }
      }
    }
  }
  void Both(StringId op, SliceId a, SliceId b) {
    KernelRow& row = Kernel(op, sides_[0]->Kernel(a), sides_[1]->Kernel(b));
    Tally(row, 0, a);
    Tally(row, 1, b);
  }

  // Work without a launch has only its name to be known by.
  void AddUnlinked(size_t s) {
    const Side& side = *sides_[s];
    for (const SliceId slice : side.trace().device_slices()) {
      if (side.context().tree.launch(slice).valid()) continue;
      const StringId name = side.Kernel(slice);
      Tally(Kernel(StringPool::kEmpty, name, name), s, slice);
    }
  }

  PerSide<const Side*> sides_;
  PerSide<const std::vector<uint32_t>*> partners_;
  PerSide<EntryMembers> members_;
  PairRows rows_;
  absl::flat_hash_map<OpKey, size_t> op_ids_;
  absl::flat_hash_map<std::tuple<StringId, StringId, StringId>, size_t>
      kernel_ids_;
};

}  // namespace

std::string_view ChangeName(Change change) {
  switch (change) {
    case Change::kChanged:
      return "changed";
    case Change::kOnlyA:
      return "only_a";
    case Change::kOnlyB:
      return "only_b";
    case Change::kOtherKernel:
      return "other_kernel";
    case Change::kOtherShape:
      return "other_shape";
    case Change::kOtherType:
      return "other_dtype";
  }
  return "";
}

PairRows CollectRows(const Side& a, const Side& b, const Matching& matching) {
  return Collector(a, b, matching).Run();
}

}  // namespace lamina::analysis::diff
