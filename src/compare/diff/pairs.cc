// SPDX-License-Identifier: Apache-2.0
#include "compare/diff/pairs.h"

#include <absl/container/flat_hash_map.h>
#include <tuple>

#include "base/sequence_match.h"

namespace lamina::analysis::diff {
namespace {

// Entries of one side by the matched op that their work is compared at.
struct Members {
  std::vector<uint32_t> anchor;  // by entry; kNone: alone
  std::vector<uint32_t> begin;   // by anchor, into list
  std::vector<uint32_t> list;    // entries with work of their own

  std::span<const uint32_t> Of(uint32_t entry) const {
    return {list.data() + begin[entry], list.data() + begin[entry + 1]};
  }
};

Members FindMembers(const Side& side, const std::vector<uint32_t>& partner) {
  const auto& entries = side.entries();
  Members out;
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
  PerSide<Members> members_;
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
