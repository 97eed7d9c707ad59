// SPDX-License-Identifier: Apache-2.0
//
// What the rule tables say of every kernel name of a trace: type, short name,
// stage, markers, each with the rule that said so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/layers/classic.h"
#include "analysis/layers/layers.h"

namespace lamina::analysis::layers {

struct Label {
  ClassicKernel kernel;  // `vote` by name alone
  std::string_view short_name;
  // Positions in the tables of the profile; PatternTable::kNone: no rule.
  int type_rule = rules::PatternTable::kNone;
  int stage_rule = rules::PatternTable::kNone;
  int short_rule = rules::PatternTable::kNone;
  bool ssm = false;     // part of a state-space model
  bool silent = false;  // votes for no stage, whatever its grid
  bool known = false;
};

// What the classes of modules below a layer, and the ops that launched its
// kernels, say of it: bits of HostSign.
enum HostSign : uint8_t {
  kHostMoe = 1,
  kHostMla = 2,
  kHostGdn = 4,
  kHostSsm = 8,
  kHostAttention = 16
};
struct HostSigns {
  uint8_t modules = 0;
  uint8_t ops = 0;
};

// Each name is looked up once, when it is first asked for.
class Labels {
 public:
  // `grid_threshold`: blocks in x above which a kernel votes for decode and
  // below 200 for prefill; null: the grid says nothing.
  Labels(const Context& context, const Rules& rules, Profile profile,
         std::optional<int64_t> grid_threshold);

  const Label& Of(SliceId s);
  // The kernel with its own vote, which may depend on its grid.
  ClassicKernel Kernel(SliceId s);
  HostSigns HostSignsOf(const Layer& layer);
  const NameRules& tables() const { return rules_.names(profile_); }
  // "id" of the rule; "-" where none matched.
  std::string_view TypeRule(const Label& label) const;
  std::string_view StageRule(const Label& label) const;
  std::string_view ShortRule(const Label& label) const;

 private:
  Label Find(SliceId s) const;
  uint8_t SignOf(StringId name, std::string_view text);

  const Context& context_;
  const Trace& trace_;
  const Rules& rules_;
  Profile profile_;
  std::optional<int64_t> grid_threshold_;
  std::vector<Label> labels_;   // by name
  std::vector<uint8_t> signs_;  // by name; kUnasked: not asked yet
};

}  // namespace lamina::analysis::layers
