// SPDX-License-Identifier: Apache-2.0
#include "compare/diff/side.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>

#include "base/json/scan.h"
#include "base/text.h"

namespace lamina::analysis::diff {
namespace {

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ (hash >> 29);
}

// "ProfilerStep#12" and "execute_5_context_2": the numbers do not matter.
std::string StepLabel(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (!IsDigit(c)) {
      out += c;
    } else if (out.empty() || out.back() != '0') {
      out += '0';
    }
  }
  return out;
}

}  // namespace

std::string NormalName(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (size_t i = 0; i < name.size();) {
    // An address: at least six hexadecimal digits.
    if (name.substr(i).starts_with("0x")) {
      size_t end = i + 2;
      while (end < name.size() && IsHex(name[end])) ++end;
      if (end - i >= 8) {
        i = end;
        continue;
      }
    }
    if (name.substr(i).starts_with(".py(")) {
      size_t end = i + 4;
      while (end < name.size() && IsDigit(name[end])) ++end;
      if (end > i + 4 && end < name.size() && name[end] == ')') {
        out += ".py";
        i = end + 1;
        continue;
      }
    }
    out += name[i++];
  }
  return out;
}

std::string NormalApiName(std::string_view name) {
  if (name.find("LaunchKernel") != std::string_view::npos)
    return "LaunchKernel";
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  }
  // "_v2", "_ptsz": versions of one call.
  return NormalName(name.substr(0, name.find('_')));
}

std::string NormalKernelName(std::string_view name) {
  if (name.ends_with(".kd")) name.remove_suffix(3);
  return NormalName(name);
}

SideOptions LevelsOf(const Context& a, const Context& b) {
  SideOptions out;
  out.modules = !a.modules.empty() && !b.modules.empty();
  out.steps = !a.steps.steps().empty() && !b.steps.steps().empty();
  return out;
}

Side::Side(const Context& context, const SideOptions& options, Names& names)
    : context_(context) {
  const size_t strings = trace().strings.size();
  kernel_of_.resize(strings);
  canonical_.resize(strings);
  for (const SliceId s : trace().device_slices()) {
    StringId& kernel = kernel_of_[NameOf(s)];
    if (!kernel.valid()) kernel = names.Of(NormalKernelName(trace().Name(s)));
  }
  for (const std::string& text : context.modules.PathTexts())
    modules_.push_back(names.Of(text));
  Collect(options, names);
  Label(names);
  Hash();
}

// Entries of the trees of all threads, and the work of each.
void Side::Collect(const SideOptions& options, Names& names) {
  const tree::Tree& tree = context_.tree;
  std::vector<uint32_t> nearest(tree.size(), kNone);
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const NodeId node(n);
    const NodeId above = tree.parent(node);
    nearest[n] = above.valid() ? nearest[above.value] : kNone;
    if (!tree.HasDeviceWork(node)) continue;
    const uint32_t parent = nearest[n];
    const bool owns = !tree.OwnDeviceWork(node).empty();
    Entry entry;
    switch (tree.kind(node)) {
      case trace::Kind::kOp:
        if (tree.name(node) == "execute" && !owns) continue;
        entry.launches = true;
        break;
      case trace::Kind::kPython:
        entry.numbered = tree.name(node).starts_with(tree::kModulePrefix);
        entry.launches = owns;
        if (!(entry.numbered ? options.modules : options.python) && !owns)
          continue;
        break;
      case trace::Kind::kRuntime:
      case trace::Kind::kDriver:
        if (parent != kNone && entries_[parent].launches) continue;
        entry.api = true;
        entry.launches = true;
        break;
      default:
        if (!owns) continue;
        entry.launches = true;
    }
    entry.node = node;
    entry.parent = parent;
    nearest[n] = static_cast<uint32_t>(entries_.size());
    entries_.push_back(entry);
  }
  for (uint32_t i = static_cast<uint32_t>(entries_.size()); i-- > 0;) {
    Entry& entry = entries_[i];
    entry.end = std::max(entry.end, i + 1);
    if (entry.parent != kNone) {
      uint32_t& end = entries_[entry.parent].end;
      end = std::max(end, entry.end);
    }
  }
  // Work by entry, in the order of launches inside each.
  const auto entry_of = [&](SliceId s) {
    return nearest[tree.launch(s).value];
  };
  std::vector<uint32_t> begin(entries_.size() + 1, 0);
  for (const SliceId s : tree.launched()) {
    LAMINA_CHECK(entry_of(s) != kNone);
    ++begin[entry_of(s) + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  for (uint32_t i = 0; i < entries_.size(); ++i)
    entries_[i].work_begin = entries_[i].work_end = begin[i];
  work_.resize(tree.launched().size());
  for (const SliceId s : tree.launched())
    work_[entries_[entry_of(s)].work_end++] = s;
  Arrange(options, names);
}

// Puts every top under its step, thread by thread.
void Side::Arrange(const SideOptions& options, Names& names) {
  const tree::Tree& tree = context_.tree;
  const tree::Steps& steps = context_.steps;
  struct Top {
    uint32_t step;
    uint32_t thread;
    uint32_t entry;
  };
  std::vector<Top> tops;
  // Threads in the order of their first work on the device.
  absl::flat_hash_map<uint32_t, uint32_t> rank;
  for (const SliceId s : trace().device_slices()) {
    const NodeId launch = tree.launch(s);
    if (!launch.valid()) continue;
    rank.try_emplace(trace().slices.track[tree.slice(launch).value].value,
                     static_cast<uint32_t>(rank.size()));
  }
  for (uint32_t i = 0; i < entries_.size(); i = entries_[i].end) {
    const SliceId slice = tree.slice(entries_[i].node);
    const uint32_t step = options.steps ? steps.StepAt(trace().Start(slice))
                                        : tree::Steps::kOutside;
    tops.push_back({step, rank[trace().slices.track[slice.value].value], i});
  }
  std::stable_sort(tops.begin(), tops.end(), [](const Top& a, const Top& b) {
    return std::pair(a.step, a.thread) < std::pair(b.step, b.thread);
  });
  std::vector<Entry> arranged;
  arranged.reserve(entries_.size() + steps.steps().size() + 1);
  for (size_t t = 0; t < tops.size();) {
    const uint32_t step = tops[t].step;
    const auto at = static_cast<uint32_t>(arranged.size());
    Entry& entry = arranged.emplace_back();
    entry.numbered = true;
    const bool outside = step == tree::Steps::kOutside;
    const std::string_view name =
        outside ? "(outside)" : trace().Name(steps.steps()[step].slice);
    entry.name = names.Of(name);
    entry.label = names.Of(StepLabel(name));
    for (; t < tops.size() && tops[t].step == step; ++t) {
      const uint32_t first = tops[t].entry;
      const auto to = static_cast<uint32_t>(arranged.size());
      for (uint32_t i = first; i < entries_[first].end; ++i) {
        Entry moved = entries_[i];
        moved.parent = i == first ? at : moved.parent - first + to;
        moved.end = moved.end - first + to;
        arranged.push_back(moved);
      }
    }
    arranged[at].end = static_cast<uint32_t>(arranged.size());
  }
  entries_ = std::move(arranged);
}

StringId Side::Canonical(StringId raw, Names& names) {
  if (!raw.valid()) return raw;
  StringId& known = canonical_[raw.value];
  if (!known.valid()) known = names.Of(json::Canonical(trace().Text(raw)));
  return known;
}

void Side::Label(Names& names) {
  const tree::Tree& tree = context_.tree;
  std::vector<StringId> label_of(trace().strings.size());
  std::vector<StringId> name_of(trace().strings.size());
  titles_.resize(entries_.size());
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (!entry.node.valid()) {
      titles_[i] = entry.name;
      continue;
    }
    const std::string_view text = tree.name(entry.node);
    const uint32_t raw =
        trace().slices.name[tree.slice(entry.node).value].value;
    if (!name_of[raw].valid()) {
      name_of[raw] = names.Of(NormalName(text));
      label_of[raw] =
          entry.numbered ? names.Of(std::string(tree::kModulePrefix) +
                                    std::string(tree::Modules::ClassName(text)))
          : trace::IsApiCall(tree.kind(entry.node))
              ? names.Of(NormalApiName(text))
              : name_of[raw];
    }
    entry.name = name_of[raw];
    entry.label = label_of[raw];
    titles_[i] = entry.name;
    if (trace::IsApiCall(tree.kind(entry.node)) &&
        entry.work_end - entry.work_begin == 1) {
      titles_[i] =
          names.Of(std::string(text) + ": " +
                   std::string(names.Text(Kernel(work_[entry.work_begin]))));
    }
    if (const trace::OpArgs* op = trace().Op(tree.slice(entry.node))) {
      Canonical(op->dims, names);
      Canonical(op->types, names);
    }
  }
}

void Side::Hash() {
  for (uint32_t i = static_cast<uint32_t>(entries_.size()); i-- > 0;) {
    Entry& entry = entries_[i];
    uint64_t shape = Mix(entry.label.value, Dims(i).value);
    shape = Mix(shape, Types(i).value);
    uint64_t full = Mix(shape, entry.work_end - entry.work_begin);
    uint64_t exact = Mix(shape, entry.name.value);
    for (const SliceId s : Work(i)) full = Mix(full, Kernel(s).value);
    for (uint32_t c = i + 1; c < entry.end; c = entries_[c].end) {
      shape = Mix(shape, entries_[c].shape);
      full = Mix(full, entries_[c].full);
      exact = Mix(exact, entries_[c].exact);
    }
    entry.shape = Mix(shape, entry.end - i);
    entry.full = Mix(full, entry.end - i);
    entry.exact = Mix(exact, entry.end - i);
  }
}

std::vector<uint32_t> Side::Roots() const {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < entries_.size(); i = entries_[i].end)
    out.push_back(i);
  return out;
}

std::vector<uint32_t> Side::Children(uint32_t entry) const {
  std::vector<uint32_t> out;
  for (uint32_t i = entry + 1; i < entries_[entry].end; i = entries_[i].end)
    out.push_back(i);
  return out;
}

StringId Side::Dims(uint32_t entry) const {
  const NodeId node = entries_[entry].node;
  const trace::OpArgs* op =
      node.valid() ? trace().Op(context_.tree.slice(node)) : nullptr;
  return op != nullptr && op->dims.valid() ? canonical_[op->dims.value]
                                           : StringId();
}

StringId Side::Types(uint32_t entry) const {
  const NodeId node = entries_[entry].node;
  const trace::OpArgs* op =
      node.valid() ? trace().Op(context_.tree.slice(node)) : nullptr;
  return op != nullptr && op->types.valid() ? canonical_[op->types.value]
                                            : StringId();
}

StringId Side::Module(uint32_t entry) const {
  const NodeId node = entries_[entry].node;
  if (!node.valid()) return StringPool::kEmpty;
  const auto owner = context_.modules.OwnerOf(node);
  return owner.path.valid() ? modules_[owner.path.value] : StringPool::kEmpty;
}

}  // namespace lamina::analysis::diff
