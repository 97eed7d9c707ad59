// SPDX-License-Identifier: Apache-2.0
#include "compare/runs/halves.h"

#include <algorithm>
#include <map>
#include <set>

namespace lamina::runs {

Result<rules::PatternTable> HalfRules(const Context& any) {
  LAMINA_ASSIGN(const auto files, any.input.data.Load("halves"));
  return rules::ReadPatternTable(files, "rules", "half");
}

Halves::Halves(const Context& context, const rules::PatternTable& rules)
    : context_(context), modules_(context.modules) {
  const auto& paths = modules_.paths();
  own_.resize(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const int rule =
        rules.Find(tree::Modules::ClassName(context.trace.Text(paths[i].name)));
    if (rule != rules::PatternTable::kNone) own_[i] = rules.rule(rule).value;
  }
  children_.resize(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].parent.valid())
      children_[paths[i].parent.value].push_back(static_cast<uint32_t>(i));
  }
  // A layer has both halves below it, directly.
  layer_.resize(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    std::set<std::string_view> halves;
    for (const uint32_t child : children_[i]) {
      if (!own_[child].empty()) halves.insert(own_[child]);
    }
    layer_[i] = halves.size() > 1;
  }
}

std::optional<std::string_view> Halves::Of(SliceId s) const {
  if (modules_.empty()) return std::nullopt;
  const tree::NodeId launcher = context_.device.launcher(s);
  if (!launcher.valid()) return std::nullopt;
  const auto owner = modules_.OwnerOf(launcher);
  if (!owner.path.valid()) return "outside";
  const auto& paths = modules_.paths();
  std::string_view named;
  for (tree::ModulePathId id = owner.path; id.valid();
       id = paths[id.value].parent) {
    if (named.empty()) named = own_[id.value];
    const tree::ModulePathId parent = paths[id.value].parent;
    if (!parent.valid() || !layer_[parent.value]) continue;
    if (!own_[id.value].empty()) return own_[id.value];
    return Behind(parent.value, id.value);
  }
  return named.empty() ? "outside" : named;
}

std::string_view Halves::Behind(uint32_t layer, uint32_t module) const {
  std::string_view half;
  for (const uint32_t child : children_[layer]) {
    if (own_[child].empty()) continue;
    half = own_[child];
    if (child > module) break;
  }
  return half;
}

namespace {

constexpr std::string_view kAttentionHalf = "attention",
                           kForwardHalf = "feed_forward", kNoHalf = "outside";

// What the last layer has behind the usual kernels of its last half belongs to
// no layer: the head of the model, sampling.
void CutLastHalf(const std::vector<size_t>& begins, size_t end,
                 std::vector<std::string_view>& halves) {
  std::map<size_t, size_t> lengths;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    size_t length = 0;
    while (halves[begins[i] + length] == kForwardHalf &&
           begins[i] + length < begins[i + 1])
      ++length;
    ++lengths[length];
  }
  if (lengths.empty()) return;
  const auto usual = std::max_element(
      lengths.begin(), lengths.end(),
      [](const auto& x, const auto& y) { return x.second < y.second; });
  for (size_t i = begins.back() + usual->first; i < end; ++i)
    halves[i] = kNoHalf;
}

}  // namespace

std::vector<std::string_view> HalvesBySequence(const Unit& unit) {
  const Context& context = *unit.context;
  const size_t n = unit.work.size();
  const size_t norm = context.catalog.FamilyIndex("norm"),
               attention = context.catalog.FamilyIndex("attention"),
               gemm = context.catalog.FamilyIndex("gemm"),
               light = context.catalog.FamilyIndex("elementwise");
  std::vector<size_t> family(n);
  for (size_t i = 0; i < n; ++i)
    family[i] = context.device.family(unit.work[i]);
  // A sum right before a norm is the residual of the half that begins there.
  const auto begin_of = [&](size_t at) {
    return at > 0 && family[at - 1] == light ? at - 1 : at;
  };
  std::vector<std::string_view> halves(n, kNoHalf);
  std::vector<size_t> forward;  // where feed-forward halves begin
  size_t behind = 0;            // what has no half yet
  for (size_t a = 0; a < n; ++a) {
    if (family[a] != attention) continue;
    size_t at = a;
    while (at > behind && family[at - 1] != gemm) --at;
    while (at > behind && family[at - 1] != norm) --at;
    size_t next = a + 1;
    while (next < n && family[next] != norm) ++next;
    // Several attention kernels of one half.
    if (at <= behind && !forward.empty() && next == behind) continue;
    if (at == 0 || family[at - 1] != norm) {
      if (forward.empty()) continue;
      at = behind + 1;
    }
    const size_t begin = begin_of(at - 1);
    if (!forward.empty()) {
      for (size_t i = forward.back(); i < begin; ++i) halves[i] = kForwardHalf;
    }
    const size_t end = next < n ? begin_of(next) : n;
    for (size_t i = begin; i < end; ++i) halves[i] = kAttentionHalf;
    if (next == n) break;
    forward.push_back(end);
    behind = next;
    a = next;
  }
  if (forward.empty()) return {};
  for (size_t i = forward.back(); i < n; ++i) halves[i] = kForwardHalf;
  CutLastHalf(forward, n, halves);
  return halves;
}

}  // namespace lamina::runs
