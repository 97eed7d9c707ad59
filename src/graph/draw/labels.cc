// SPDX-License-Identifier: Apache-2.0
//
// Long, because what to call the weights of a node depends on all of them.
#include "graph/draw/labels.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/ascii.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "base/cpp_name.h"
#include "base/decimal.h"
#include "graph/layers/names.h"
#include "graph/layers/rules.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// What ends of names hold: tile sizes, numbers, overloads.
constexpr size_t kTail = 12;

std::string Typed(std::string_view shape, std::string_view dtype) {
  std::string out = OneShape(shape);
  if (dtype.empty() || dtype == "N/A" || dtype == "None" || dtype == "unknown")
    return out;
  if (!out.empty()) out += ' ';
  return out + std::string(ShortDType(dtype));
}

}  // namespace

std::string OneShape(std::string_view shape) {
  const auto dims = SplitShape(shape);
  if (!dims) return {};
  std::string out;
  for (const std::string_view dim : *dims) {
    if (!out.empty()) out += kTimes;
    out += dim;
  }
  return dims->empty() ? "scalar" : out;
}

std::string ShapeLabel(const LayerNode& node) {
  if (!node.dtype.starts_with('(')) return Typed(node.shape, node.dtype);
  const auto shapes = SplitTuple(node.shape);
  const auto dtypes = SplitTuple(node.dtype);
  std::string out;
  for (size_t i = 0; i < std::min(shapes.size(), dtypes.size()); ++i) {
    const std::string one = Typed(shapes[i], dtypes[i]);
    if (!out.empty()) out += ", ";
    out += one.empty() ? "?" : one;
  }
  return out;
}

std::string OpLabel(std::string_view op, const GroupRules& rules) {
  constexpr size_t kMost = 28;
  return ShortenInside(rules.LabelOf(op), kMost, kTail);
}

std::string KernelLabel(std::string_view name) {
  constexpr size_t kMost = 34;
  // Namespaces say least, then what half of all names have in common.
  for (size_t colons = name.find("::");
       name.size() > kMost && colons != std::string_view::npos;
       colons = name.find("::"))
    name.remove_prefix(colons + 2);
  std::string out(name);
  for (const std::string_view noise : {"_sm90", "_sm100", "_kernel"}) {
    const size_t at = out.find(noise);
    const size_t end = at == std::string::npos ? at : at + noise.size();
    if (out.size() > kMost && end != std::string::npos &&
        (end == out.size() || out[end] == '_'))
      out.erase(at, noise.size());
  }
  return ShortenInside(out, kMost, kTail);
}

namespace {

// "shared_experts_gate_proj" in "shared_experts", "gate" and "proj". Names
// that end in a number or have one word have no last word.
struct WordsOf {
  explicit WordsOf(std::string_view name) {
    const size_t cut = name.rfind('_');
    if (cut == std::string_view::npos || cut == 0 || cut + 1 == name.size() ||
        absl::ascii_isdigit(static_cast<unsigned char>(name.back())))
      return;
    last = name.substr(cut + 1);
    const size_t before = name.rfind('_', cut - 1);
    if (before != std::string_view::npos) stem = name.substr(0, before);
    middle = name.substr(stem.empty() ? 0 : before + 1,
                         cut - (stem.empty() ? 0 : before + 1));
  }
  std::string stem;
  std::string middle;
  std::string last;
};

// Weights of projections that are known by the first word alone.
bool IsGate(std::string_view middle) {
  return middle == "gate" || middle == "up" || middle == "down";
}

std::string Spaced(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// "input_layernorm" as "input norm", "post_attention_layernorm" as
// "post-attention norm", "shared_experts_up_proj" as "shared experts up".
std::string Plain(std::string_view name, std::string_view whole,
                  const GroupRules& rules) {
  // Fused weights are numbered behind their name.
  std::string_view bare = name;
  const size_t digits = bare.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits + 1 < bare.size() &&
      bare[digits] == '_')
    bare = bare.substr(0, digits);
  for (const std::string_view one : {whole, name, bare}) {
    for (const auto& [known, label] : rules.weight_labels) {
      if (known == one) return label;
    }
  }
  for (const std::string_view end : {"_layernorm", "_layer_norm", "_norm"}) {
    if (!name.ends_with(end)) continue;
    std::string stem(name.substr(0, name.size() - end.size()));
    if (stem.starts_with("post_") || stem.starts_with("pre_"))
      std::replace(stem.begin(), stem.end(), '_', '-');
    return stem + " norm";
  }
  for (const std::string_view end : {"gate_proj", "up_proj", "down_proj"}) {
    if (!name.ends_with(end)) continue;
    const size_t cut = name.size() - end.size();
    if (cut > 0 && name[cut - 1] != '_') continue;
    return Spaced(name.substr(0, cut)) +
           std::string(end.substr(0, end.size() - 5));
  }
  return std::string(name);
}

// Experts of one layer: their weights are one line.
struct Experts {
  std::set<std::string, std::less<>> numbers;
  std::vector<std::string> roles;  // "up_proj"
  int64_t stacked = 0;             // experts in one weight; 0: not known
  bool stack = false;

  void AddRole(std::string_view role) {
    if (std::find(roles.begin(), roles.end(), role) == roles.end())
      roles.emplace_back(role);
  }
};

// "experts_12_up_proj": number 12, role "up_proj". False for other names.
bool ReadExpert(std::string_view name, std::string_view& number,
                std::string_view& role) {
  constexpr std::string_view kWord = "experts_";
  if (!name.starts_with(kWord)) return false;
  name.remove_prefix(kWord.size());
  const size_t end = name.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos || name[end] != '_')
    return false;
  number = name.substr(0, end);
  role = name.substr(end + 1);
  return true;
}

// "fused_moe_w3_w1_stacked_4": role "w3_w1"; empty for other names.
std::string_view StackRole(std::string_view name) {
  constexpr std::string_view kFused = "fused_moe_";
  const size_t end = name.find("_stacked");
  if (!name.starts_with(kFused) || end == std::string_view::npos ||
      end <= kFused.size())
    return {};
  return name.substr(kFused.size(), end - kFused.size());
}

// "self_attn_q_proj" as "q_proj": the box stands in the frame of its owner.
std::string_view WithoutOwner(std::string_view name, const GroupRules& rules) {
  for (const std::string& owner : rules.weight_owners) {
    if (name.size() > owner.size() + 1 && name.starts_with(owner) &&
        name[owner.size()] == '_')
      return name.substr(owner.size() + 1);
  }
  return name;
}

}  // namespace

std::vector<std::string> WeightLabels(const LayerNode& node,
                                      const GroupRules& rules) {
  struct Name {
    std::string_view text;
    std::string_view shape;
  };
  std::vector<Name> names;
  absl::flat_hash_set<std::string_view> weights;
  for (const LayerWeight& weight : node.weights) {
    const auto layer = ParseLayerName(weight.name);
    names.push_back(
        {layer ? layer->rest : std::string_view(weight.name), weight.shape});
    std::string_view& name = names.back().text;
    for (const std::string_view end : {"_weight", "_kernel"}) {
      if (!name.ends_with(end)) continue;
      name.remove_suffix(end.size());
      weights.insert(name);
      break;
    }
  }
  struct Family {
    std::string family;
    std::string_view first;
    std::string_view whole;  // with its owner
    size_t count = 0;
    bool experts = false;  // all of them
  };
  std::vector<Family> families;
  absl::flat_hash_map<std::string, size_t> known;
  Experts experts;
  for (const Name& one : names) {
    std::string_view number;
    std::string_view role;
    if (ReadExpert(WithoutOwner(one.text, rules), number, role))
      experts.numbers.emplace(number);
  }
  for (const Name& one : names) {
    std::string_view name = one.text;
    // Biases and scales are not listed beside their weight.
    const auto companion = std::find_if(
        rules.weight_companions.begin(), rules.weight_companions.end(),
        [&](const std::string& end) { return name.ends_with(end); });
    if (companion != rules.weight_companions.end()) {
      const std::string_view stem =
          name.substr(0, name.size() - companion->size());
      if (weights.contains(stem)) continue;
      if (*companion == "_bias") name = stem;
    }
    const std::string_view whole = name;
    name = WithoutOwner(name, rules);
    std::string_view number;
    std::string_view role = StackRole(name);
    const bool stack = !role.empty();
    const bool expert =
        stack || (experts.numbers.size() > 1 && ReadExpert(name, number, role));
    if (expert) experts.AddRole(role);
    if (stack) {
      experts.stack = true;
      const auto dims = SplitShape(one.shape);
      if (dims && dims->size() > 1)
        experts.stacked = ParseInt((*dims)[0]).value_or(0);
    }
    std::string family = expert ? "experts" : WithoutNumbers(name);
    const auto [found, fresh] = known.try_emplace(family, families.size());
    if (fresh) families.push_back({std::move(family), name, whole, 0, expert});
    ++families[found->second].count;
  }
  // "q_proj", "k_proj", "v_proj" are one line.
  std::vector<std::string> out;
  for (size_t i = 0; i < families.size();) {
    const Family& family = families[i];
    if (family.experts) {
      const size_t count = experts.numbers.size() > 1
                               ? experts.numbers.size()
                               : static_cast<size_t>(experts.stacked);
      std::string line = "experts";
      if (count > 0) line += fmt::format(" {}{}", kTimes, count);
      if (experts.roles.size() == 1) {
        line += " ";
        line += experts.stack
                    ? Spaced(experts.roles[0])
                    : Plain(experts.roles[0], experts.roles[0], rules);
      }
      out.push_back(std::move(line));
      ++i;
      continue;
    }
    const auto name_of = [](const Family& one) {
      std::string name(one.count > 1 ? std::string_view(one.family)
                                     : one.first);
      if (one.count > 1) std::replace(name.begin(), name.end(), '#', '*');
      return name;
    };
    const WordsOf words(name_of(family));
    bool gates = words.last == "proj" && IsGate(words.middle);
    size_t end = i + 1;
    for (; end < families.size() && words.last.size() > 1; ++end) {
      const WordsOf next(name_of(families[end]));
      if (families[end].experts || next.stem != words.stem ||
          next.last != words.last || families[end].count != family.count)
        break;
      gates &= IsGate(next.middle);
    }
    std::string line;
    if (end > i + 1) {
      line = gates ? Spaced(words.stem) : words.stem;
      for (size_t k = i; k < end; ++k)
        line +=
            (line.empty() ? "" : " ") + WordsOf(name_of(families[k])).middle;
      if (!gates) line += " " + words.last;
    } else {
      line = Plain(name_of(family), family.whole, rules);
    }
    if (family.count > 1) line += fmt::format(" {}{}", kTimes, family.count);
    out.push_back(std::move(line));
    i = end;
  }
  return out;
}

}  // namespace lamina::graph
