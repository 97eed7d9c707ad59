// SPDX-License-Identifier: Apache-2.0
#include "findings/rule.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <re2/re2.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "findings/text.h"

namespace lamina::findings {
namespace {

using rules::DataFile;
using rules::Members;
using rules::Node;

constexpr std::array<Need, 11> kNeeds = {{
    {"device_events", "empty device_events", "see device_work in trace_health"},
    {"host_events", "empty host_events", "record CPU activities"},
    {"launches", "weak_links",
     "record the calls of the runtime with their correlation"},
    {"steps", "no_steps", "mark steps (profiler.step(), NVTX ranges)"},
    {"three_steps", "too_few steps", "record at least 3 steps after warm-up"},
    {"shapes", "no_column device_events.dims", "record_shapes=True"},
    {"stacks", "empty python_frame", "with_stack=True"},
    {"device_spec", "no_device_spec", "a device that is known, or its name"},
    {"grid", "no_column device_events.grid_blocks",
     "a profiler that records launch configurations"},
    {"ranks", "one_rank", "the folder with the traces of all ranks"},
    {"memory_series", "empty allocation", "profile_memory=True"},
}};

constexpr std::string_view kLayers[] = {"model",  "framework", "launcher",
                                        "kernel", "cluster",   "recording"};
constexpr std::string_view kEfforts[] = {"setting", "lines", "work"};
// As enum Confidence.
constexpr std::array<std::string_view, 3> kConfidences = {"fact", "likely",
                                                          "hint"};
constexpr std::string_view kGainKinds[] = {"measured", "bound", "estimate",
                                           "none"};
constexpr std::string_view kSeverities[] = {"blocker", "high", "medium", "low",
                                            "info"};

template <class List>
bool Among(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

template <class List>
Status OneOf(const DataFile& file, const Node& node, const List& list,
             std::string_view what) {
  if (Among(list, node.text)) return {};
  std::string known;
  for (const std::string_view word : list)
    known += (known.empty() ? "" : ", ") + std::string(word);
  return Fail(file.ErrorAt(node, fmt::format("'{}' is no {}", node.text, what),
                           "known are " + known));
}

class Reader {
 public:
  explicit Reader(const DataFile& file) : file_(file) {}

  Result<Rule> Read(const Node& node, bool own) {
    static constexpr std::string_view kKeys[] = {
        "rule",       "title",          "version",   "owner_rank", "needs",
        "params",     "kind",           "claims",    "group",      "anchor",
        "totals",     "when",           "gain",      "texts",      "fix",
        "confidence", "severity",       "verify",    "excludes",   "why",
        "examples",   "replaces",       "with_gaps", "over",       "abstain",
        "caps",       "without_device", "do",        "once"};
    LAMINA_ASSIGN(const Members m, Members::Of(file_, node, kKeys));
    Rule rule;
    rule.file = file_.name;
    rule.line = node.line;
    LAMINA_ASSIGN(rule.id, m.Text("rule"));
    static const RE2 id_form("[a-z]+\\.[a-z0-9_]+");
    if (!RE2::FullMatch(rule.id, id_form)) {
      return Fail(file_.ErrorAt(*node.Find("rule"),
                                "'" + rule.id + "' is no id of a rule",
                                "category.name, lower case"));
    }
    rule.category = rule.id.substr(0, rule.id.find('.'));
    LAMINA_ASSIGN(rule.title, m.Text("title"));
    LAMINA_TRY(ReadTodo(node, rule.todo));
    if (rule.todo.empty()) {
      if (!own) {
        return Fail(
            m.ErrorAt("the key 'do' is missing: what to do, in a few words"));
      }
      rule.todo = Shorten(rule.title, kMostTodo);
    }
    LAMINA_ASSIGN(rule.once, m.BoolOr("once", false));
    LAMINA_ASSIGN(const auto version, m.OptionalNumber("version"));
    rule.version = static_cast<int>(version.value_or(1));
    LAMINA_ASSIGN(const double rank, m.Number("owner_rank"));
    if (rank < 10 || rank > 99) {
      return Fail(
          file_.ErrorAt(*node.Find("owner_rank"), "an owner rank is 10 to 99"));
    }
    rule.owner_rank = static_cast<int>(rank);
    LAMINA_ASSIGN(rule.needs, m.Texts("needs"));
    if (const Node* needs = m.Find("needs")) LAMINA_TRY(CheckNeeds(*needs));
    const std::string over = m.TextOr("over", "trace");
    static constexpr std::string_view kOver[] = {"trace", "ranks"};
    if (const Node* node_of = m.Find("over"))
      LAMINA_TRY(OneOf(file_, *node_of, kOver, "thing to look over"));
    rule.over_ranks = over == "ranks";
    if (rule.over_ranks) rule.needs.push_back("ranks");
    LAMINA_ASSIGN(rule.without_device, m.BoolOr("without_device", false));
    LAMINA_TRY(ReadAbstentions(m, rule));
    LAMINA_TRY(ReadParams(m, rule));
    const std::string kind = m.TextOr("kind", "idle");
    if (kind != "idle" && kind != "busy" && kind != "none") {
      return Fail(file_.ErrorAt(*node.Find("kind"),
                                "'" + kind + "' is no kind of claim",
                                "idle, busy or none"));
    }
    rule.kind = kind == "idle"   ? ClaimKind::kIdle
                : kind == "busy" ? ClaimKind::kBusy
                                 : ClaimKind::kNone;
    LAMINA_ASSIGN(rule.with_gaps, m.BoolOr("with_gaps", false));
    LAMINA_ASSIGN(rule.claims, m.Text("claims"));
    LAMINA_ASSIGN(rule.group, m.Texts("group"));
    LAMINA_ASSIGN(rule.anchor, m.Texts("anchor"));
    for (const std::string& column : rule.anchor) {
      if (!Among(rule.group, column)) {
        return Fail(file_.ErrorAt(*node.Find("anchor"),
                                  "'" + column + "' is not in group"));
      }
    }
    if (const Node* totals = m.Find("totals")) {
      for (size_t i = 0; i < totals->keys.size(); ++i)
        rule.totals.emplace_back(totals->keys[i].text, totals->items[i].text);
    }
    LAMINA_ASSIGN(rule.when, m.Text("when"));
    LAMINA_TRY(ReadGain(m, rule));
    LAMINA_TRY(ReadConfidence(m, rule));
    LAMINA_TRY(ReadCaps(m, rule));
    rule.severity = m.TextOr("severity", "");
    if (!rule.severity.empty()) {
      LAMINA_TRY(OneOf(file_, *node.Find("severity"), kSeverities, "severity"));
    }
    LAMINA_TRY(ReadTexts(m, rule));
    LAMINA_TRY(ReadFixes(m, rule));
    rule.verify = m.TextOr("verify", "");
    LAMINA_ASSIGN(rule.excludes, m.Texts("excludes"));
    rule.why = m.TextOr("why", "");
    if (const Node* examples = m.Find("examples")) {
      static constexpr std::string_view kExampleKeys[] = {"finds", "silent"};
      LAMINA_ASSIGN(const Members e,
                    Members::Of(file_, *examples, kExampleKeys));
      LAMINA_ASSIGN(rule.finds, e.Texts("finds"));
      LAMINA_ASSIGN(rule.silent, e.Texts("silent"));
    }
    rule.proven = !rule.finds.empty() && rule.silent.size() >= 2;
    if (!own && (!rule.proven || rule.excludes.empty())) {
      return Fail(file_.ErrorAt(
          node, rule.id + " lacks examples or excludes",
          "at least one find, two silent examples and one exclude"));
    }
    return rule;
  }

 private:
  Status CheckNeeds(const Node& list) {
    const auto check = [&](const Node& node) -> Status {
      for (const Need& need : kNeeds) {
        if (need.name == node.text) return {};
      }
      std::vector<std::string_view> names;
      for (const Need& need : kNeeds) names.push_back(need.name);
      return OneOf(file_, node, names, "need");
    };
    if (list.IsScalar()) return check(list);
    for (const Node& item : list.items) LAMINA_TRY(check(item));
    return {};
  }

  Status ReadAbstentions(const Members& m, Rule& rule) {
    const Node* list = m.Find("abstain");
    if (list == nullptr) return {};
    if (!list->IsList()) return Fail(file_.ErrorAt(*list, "expected a list"));
    static constexpr std::string_view kKeys[] = {"if", "reason", "hint"};
    for (const Node& item : list->items) {
      LAMINA_ASSIGN(const Members a, Members::Of(file_, item, kKeys));
      Abstention one;
      LAMINA_ASSIGN(one.condition, a.Text("if"));
      LAMINA_ASSIGN(one.reason, a.Text("reason"));
      one.hint = a.TextOr("hint", "");
      rule.abstains.push_back(std::move(one));
    }
    return {};
  }

  Status ReadParams(const Members& m, Rule& rule) {
    rule.params = {{"min_share", 0.01}};
    const Node* params = m.Find("params");
    if (params == nullptr) return {};
    for (size_t i = 0; i < params->keys.size(); ++i) {
      const auto number = ParseDouble(params->items[i].text);
      if (!number) {
        return Fail(file_.ErrorAt(params->items[i], "expected a number"));
      }
      rule.params[params->keys[i].text] = *number;
    }
    return {};
  }

  Status ReadGain(const Members& m, Rule& rule) {
    const Node* gain = m.Find("gain");
    if (gain == nullptr) return Fail(m.ErrorAt("the key 'gain' is missing"));
    static constexpr std::string_view kKeys[] = {
        "formula", "kind", "low", "high", "open", "what_if", "past_path"};
    LAMINA_ASSIGN(const Members g, Members::Of(file_, *gain, kKeys));
    LAMINA_ASSIGN(rule.gain_kind, g.Text("kind"));
    LAMINA_TRY(OneOf(file_, *gain->Find("kind"), kGainKinds, "kind of gain"));
    rule.gain =
        g.TextOr("formula", rule.gain_kind == "none" ? "0" : "owned_ns");
    rule.low = g.TextOr("low", "");
    rule.high = g.TextOr("high", "");
    rule.open = g.TextOr("open", "");
    rule.gain_what_if = g.TextOr("what_if", "");
    LAMINA_ASSIGN(rule.past_path, g.BoolOr("past_path", false));
    return {};
  }

  Status ReadConfidence(const Members& m, Rule& rule) {
    const Node* list = m.Find("confidence");
    if (list == nullptr || !list->IsList())
      return Fail(m.ErrorAt("the key 'confidence' is missing, a list"));
    static constexpr std::string_view kKeys[] = {"if", "is", "reason"};
    for (const Node& item : list->items) {
      LAMINA_ASSIGN(const Members c, Members::Of(file_, item, kKeys));
      ConfidenceCase one;
      one.condition = c.TextOr("if", "");
      LAMINA_TRY(c.Text("is").map([](auto) {}));
      LAMINA_ASSIGN(one.is, ConfidenceOf(*item.Find("is")));
      LAMINA_ASSIGN(one.reason, c.Text("reason"));
      rule.confidence.push_back(std::move(one));
    }
    if (rule.confidence.empty() || !rule.confidence.back().condition.empty()) {
      return Fail(file_.ErrorAt(*list,
                                "the last case of confidence has no condition",
                                "{is, reason}"));
    }
    return {};
  }

  Result<Confidence> ConfidenceOf(const Node& node) {
    LAMINA_TRY(OneOf(file_, node, kConfidences, "confidence"));
    const auto at =
        std::find(kConfidences.begin(), kConfidences.end(), node.text);
    return static_cast<Confidence>(at - kConfidences.begin());
  }

  Status ReadCaps(const Members& m, Rule& rule) {
    const Node* list = m.Find("caps");
    if (list == nullptr) return {};
    if (!list->IsList()) return Fail(file_.ErrorAt(*list, "expected a list"));
    static constexpr std::string_view kKeys[] = {"rules", "needs", "at",
                                                 "reason"};
    for (const Node& item : list->items) {
      LAMINA_ASSIGN(const Members c, Members::Of(file_, item, kKeys));
      Cap one;
      LAMINA_ASSIGN(one.rules, c.Texts("rules"));
      LAMINA_ASSIGN(one.needs, c.Texts("needs"));
      if (const Node* needs = c.Find("needs")) LAMINA_TRY(CheckNeeds(*needs));
      if (one.rules.empty() == one.needs.empty())
        return Fail(file_.ErrorAt(item, "a cap has either rules or needs"));
      LAMINA_TRY(c.Text("at").map([](auto) {}));
      LAMINA_ASSIGN(one.at, ConfidenceOf(*item.Find("at")));
      LAMINA_ASSIGN(one.reason, c.Text("reason"));
      rule.caps.push_back(std::move(one));
    }
    return {};
  }

  Status ReadTexts(const Members& m, Rule& rule) {
    const Node* texts = m.Find("texts");
    if (texts == nullptr) return Fail(m.ErrorAt("the key 'texts' is missing"));
    static constexpr std::string_view kKeys[] = {"what", "cannot_tell"};
    LAMINA_ASSIGN(const Members t, Members::Of(file_, *texts, kKeys));
    LAMINA_ASSIGN(rule.what, t.Text("what"));
    rule.cannot_tell = t.TextOr("cannot_tell", "");
    for (const std::string_view key : {"what", "cannot_tell"}) {
      const Node* node = texts->Find(key);
      if (node == nullptr) continue;
      const std::string wrong = CheckTemplate(node->text);
      if (!wrong.empty()) return Fail(file_.ErrorAt(*node, wrong));
    }
    return {};
  }

  // What to do in one line: of the rule, or of one of its fixes.
  Status ReadTodo(const Node& of, std::string& todo) {
    const Node* node = of.Find("do");
    if (node == nullptr) return {};
    const std::string wrong = CheckTodo(node->text);
    if (!wrong.empty()) return Fail(file_.ErrorAt(*node, wrong));
    todo = node->text;
    return {};
  }

  Status ReadFixes(const Members& m, Rule& rule) {
    const Node* list = m.Find("fix");
    if (list == nullptr || !list->IsList() || list->items.empty())
      return Fail(m.ErrorAt("the key 'fix' is missing, a list"));
    static constexpr std::string_view kKeys[] = {"if", "layer", "effort",
                                                 "text", "do"};
    for (const Node& item : list->items) {
      LAMINA_ASSIGN(const Members f, Members::Of(file_, item, kKeys));
      Fix fix;
      fix.condition = f.TextOr("if", "");
      LAMINA_ASSIGN(fix.layer, f.Text("layer"));
      LAMINA_TRY(OneOf(file_, *item.Find("layer"), kLayers, "layer"));
      LAMINA_ASSIGN(fix.effort, f.Text("effort"));
      LAMINA_TRY(OneOf(file_, *item.Find("effort"), kEfforts, "effort"));
      LAMINA_ASSIGN(fix.text, f.Text("text"));
      LAMINA_TRY(ReadTodo(item, fix.todo));
      rule.fixes.push_back(std::move(fix));
    }
    if (!rule.fixes.back().condition.empty()) {
      return Fail(file_.ErrorAt(*list, "the last fix has no condition",
                                "{layer, effort, text}"));
    }
    return {};
  }

  const DataFile& file_;
};

}  // namespace

std::string_view ConfidenceName(Confidence confidence) {
  return kConfidences[static_cast<size_t>(confidence)];
}

double WeightOf(Confidence confidence) {
  switch (confidence) {
    case Confidence::kFact:
      return 1;
    case Confidence::kLikely:
      return 0.95;
    case Confidence::kHint:
      return 0.5;
  }
  return 0;
}

std::span<const Need> KnownNeeds() { return kNeeds; }

Status RuleSet::AddFile(const DataFile& file, bool own) {
  static const std::vector<Node> none;
  const Node* list = file.root.Find("rules");
  if (list != nullptr && !list->IsList())
    return Fail(file.ErrorAt(*list, "expected a list"));
  for (const Node& node : list != nullptr ? list->items : none) {
    LAMINA_ASSIGN(Rule rule, Reader(file).Read(node, own));
    const auto same =
        std::find_if(rules_.begin(), rules_.end(),
                     [&](const Rule& r) { return r.id == rule.id; });
    if (same == rules_.end()) {
      rules_.push_back(std::move(rule));
      continue;
    }
    const Node* replaces = node.Find("replaces");
    if (replaces == nullptr || replaces->text != "true") {
      return Fail(file.ErrorAt(
          node, fmt::format("{} stands in {} as well", rule.id, same->file),
          "with 'replaces: true' it takes its place"));
    }
    *same = std::move(rule);
  }
  const Node* disable = file.root.Find("disable");
  if (disable == nullptr) return {};
  for (const Node& node : disable->items) {
    const size_t before = rules_.size();
    std::erase_if(rules_, [&](const Rule& r) { return r.id == node.text; });
    if (rules_.size() == before) {
      return Fail(file.ErrorAt(node, "there is no rule " + node.text));
    }
  }
  return {};
}

Result<std::shared_ptr<const RuleSet>> RuleSet::Load(
    const rules::DataSet& data) {
  auto set = std::make_shared<RuleSet>();
  set->data_ = data;
  LAMINA_ASSIGN(auto files, data.Load("findings"));
  // Ours first: a rule of --rules may take the place of one of them.
  std::stable_partition(files.begin(), files.end(),
                        [](const auto& file) { return file->text.empty(); });
  for (const auto& file : files)
    LAMINA_TRY(set->AddFile(*file, !file->text.empty()));
  std::sort(
      set->rules_.begin(), set->rules_.end(), [](const Rule& a, const Rule& b) {
        return std::tie(a.owner_rank, a.id) < std::tie(b.owner_rank, b.id);
      });
  return set;
}

const Rule* RuleSet::Find(std::string_view id) const {
  for (const Rule& rule : rules_) {
    if (rule.id == id) return &rule;
  }
  return nullptr;
}

Result<std::set<std::string>> RuleSet::Match(
    const std::vector<std::string>& globs, std::string_view option) const {
  std::set<std::string> out;
  std::vector<std::string_view> names;
  for (const Rule& rule : rules_) names.push_back(rule.id);
  for (const std::string& glob : globs) {
    bool any = false;
    for (const Rule& rule : rules_) {
      if (!GlobMatches(glob, rule.id)) continue;
      out.insert(rule.id);
      any = true;
    }
    if (any) continue;
    const std::string_view near = rules::Nearest(glob, names);
    return Fail(UsageError(fmt::format("{}: there is no rule {}", option, glob),
                           near.empty()
                               ? "⟨lamina⟩ diagnose ⟨explain⟩ all lists them"
                               : fmt::format("did you mean {}?", near)));
  }
  return out;
}

bool Caps(const Rule& rule, const Cap& cap, const Rule& other) {
  return rule.id != other.id &&
         (std::any_of(cap.rules.begin(), cap.rules.end(),
                      [&](const std::string& glob) {
                        return GlobMatches(glob, other.id);
                      }) ||
          std::any_of(cap.needs.begin(), cap.needs.end(),
                      [&](const std::string& need) {
                        return Among(other.needs, need);
                      }));
}

bool GlobMatches(std::string_view glob, std::string_view text) {
  size_t g = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++;
      mark = t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace lamina::findings
