// SPDX-License-Identifier: Apache-2.0
//
// Why this file is long: reading the two rule files and their checks stand
// beside what they mean.
#include "memory/attribution.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.h"
#include "rules/pattern_compiler.h"

namespace lamina::memory {
namespace {

constexpr std::array<std::string_view, kCategories> kNames = {
    "parameter",     "gradient", "optimizer_state", "activation",
    "temporary",     "input",    "workspace",       "kv_cache",
    "communication", "resident", "unknown"};
constexpr std::string_view kEngine = "torch::autograd::Engine::";

re2::StringPiece View(std::string_view text) {
  return {text.data(), text.size()};
}

bool Matches(const std::unique_ptr<RE2>& pattern, std::string_view text) {
  return RE2::PartialMatch(View(text), *pattern);
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view Stem(std::string_view path) {
  const std::string_view base = BaseName(path);
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? base : base.substr(0, dot);
}

// "aten::mm" of at::_ops::mm::call; empty for other names.
std::string_view OpOf(std::string_view name) {
  constexpr std::string_view kPrefix = "at::_ops::";
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  const size_t end = name.find("::");
  if (end == std::string_view::npos || end == 0) return {};
  const std::string_view op = name.substr(0, end);
  if (!std::all_of(op.begin(), op.end(), IsWordCharacter)) return {};
  const std::string_view rest = name.substr(end + 2);
  for (const std::string_view call : {"call", "redispatch"}) {
    if (rest.starts_with(call) &&
        (rest.size() == call.size() || !IsWordCharacter(rest[call.size()])))
      return op;
  }
  return {};
}

std::string AnyOf(const std::vector<std::string>& patterns) {
  return fmt::format("{}", fmt::join(patterns, "|"));
}

Status Compile(const rules::DataFile& file, const rules::Node& node,
               const std::string& pattern, std::unique_ptr<RE2>* out) {
  rules::PatternCompiler compiler;
  const std::string wrong = compiler.Compile(pattern, pattern, *out);
  if (wrong.empty()) return {};
  return Fail(file.ErrorAt(node, wrong, "write it in RE2 syntax"));
}

Result<std::optional<bool>> OptionalBool(const rules::Members& members,
                                         std::string_view key) {
  if (members.Find(key) == nullptr) return std::optional<bool>();
  LAMINA_ASSIGN(const bool value, members.BoolOr(key, false));
  return std::optional<bool>(value);
}

}  // namespace

std::string_view CategoryName(Category category) {
  return kNames[static_cast<size_t>(category)];
}

bool IsPython(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyx") ||
         file.ends_with(".pyi") || file == "none" || file.starts_with('<') ||
         Contains(file, "ipykernel_") || file.starts_with("/tmp/ipy");
}

Result<std::shared_ptr<const Rules>> Rules::Load(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("memory"));
  auto out = std::make_shared<Rules>();
  // Rules of --rules come before ours: the first one decides.
  for (const bool builtin : {false, true}) {
    for (const auto& file : files) {
      const rules::Node* const table = file->root.Find("table");
      if (table == nullptr) continue;
      if (file->name.starts_with("builtin:") != builtin) continue;
      if (table->text == "memory_category")
        LAMINA_TRY(out->AddCategories(*file));
      if (table->text == "memory_frames") LAMINA_TRY(out->AddFrames(*file));
    }
  }
  if (out->glue_ == nullptr || out->rules_.empty()) {
    return Fail(InputError("data/memory", "no table memory_frames or no rules",
                           "keep frames.yaml and categories.yaml"));
  }
  if (out->rules_.size() > kMostRules) {
    return Fail(
        InputError(out->rules_.back().source,
                   fmt::format("more than {} rules of categories", kMostRules),
                   "join some"));
  }
  for (size_t i = 0; i < out->rules_.size(); ++i) {
    const CategoryRule& rule = out->rules_[i];
    const uint64_t bit = uint64_t{1} << i;
    if (rule.native == nullptr) out->no_native_ |= bit;
    if (rule.file == nullptr && rule.function == nullptr)
      out->no_python_ |= bit;
    if (rule.freed_file == nullptr && rule.freed_function == nullptr)
      out->no_freed_ |= bit;
    if (rule.annotation == nullptr) out->no_annotation_ |= bit;
  }
  return std::shared_ptr<const Rules>(std::move(out));
}

Status Rules::AddCategories(const rules::DataFile& file) {
  static constexpr std::string_view kFile[] = {"table", "rules"};
  LAMINA_ASSIGN(const auto top, rules::Members::Of(file, file.root, kFile));
  const rules::Node* const list = top.Find("rules");
  if (list == nullptr || !list->IsList())
    return Fail(file.ErrorAt(file.root, "expected a list 'rules'"));
  for (const rules::Node& item : list->items) {
    static constexpr std::string_view kKeys[] = {
        "id",         "category", "confidence", "native",
        "file",       "function", "freed_file", "freed_function",
        "annotation", "before",   "freed",      "outlives",
        "why",        "examples", "not"};
    LAMINA_ASSIGN(const auto members, rules::Members::Of(file, item, kKeys));
    CategoryRule rule;
    LAMINA_ASSIGN(rule.id, members.Text("id"));
    LAMINA_ASSIGN(const std::string category, members.Text("category"));
    const auto it = std::find(kNames.begin(), kNames.end(), category);
    if (it == kNames.end()) {
      return Fail(members.ErrorAt("unknown category '" + category +
                                  "'; known are " +
                                  fmt::format("{}", fmt::join(kNames, ", "))));
    }
    rule.category = static_cast<Category>(it - kNames.begin());
    LAMINA_ASSIGN(const std::string confidence, members.Text("confidence"));
    if (confidence == "high") {
      rule.confidence = Confidence::kHigh;
    } else if (confidence == "medium") {
      rule.confidence = Confidence::kMedium;
    } else if (confidence != "low") {
      return Fail(members.ErrorAt("unknown confidence '" + confidence +
                                  "'; known are high, medium, low"));
    }
    const struct {
      std::string_view key;
      std::unique_ptr<RE2>* to;
    } patterns[] = {{"native", &rule.native},
                    {"file", &rule.file},
                    {"function", &rule.function},
                    {"freed_file", &rule.freed_file},
                    {"freed_function", &rule.freed_function},
                    {"annotation", &rule.annotation}};
    const auto say = [&rule](std::string_view key, std::string_view value) {
      if (!rule.text.empty()) rule.text += ", ";
      rule.text += std::string(key) + ": " + std::string(value);
    };
    for (const auto& [key, to] : patterns) {
      const rules::Node* const node = members.Find(key);
      if (node == nullptr) continue;
      LAMINA_TRY(Compile(file, *node, node->text, to));
      say(key, node->text);
    }
    LAMINA_ASSIGN(rule.before, OptionalBool(members, "before"));
    LAMINA_ASSIGN(rule.freed, OptionalBool(members, "freed"));
    if (rule.before) say("before", *rule.before ? "true" : "false");
    if (rule.freed) say("freed", *rule.freed ? "true" : "false");
    const std::string outlives = members.TextOr("outlives", "");
    rule.outlives_backward = outlives == "backward";
    rule.outlives_optimizer = outlives == "optimizer";
    if (!outlives.empty()) {
      if (!rule.outlives_backward && !rule.outlives_optimizer)
        return Fail(
            members.ErrorAt("outlives: expected backward or "
                            "optimizer, found '" +
                            outlives + "'"));
      say("outlives", outlives);
    }
    rule.source = file.name;
    rule.line = item.line;
    for (const bool matches : {true, false}) {
      const rules::Node* const examples =
          members.Find(matches ? "examples" : "not");
      if (examples == nullptr) continue;
      if (!examples->IsList())
        return Fail(file.ErrorAt(*examples, "expected a list of examples"));
      for (const rules::Node& node : examples->items) {
        static constexpr std::string_view kExample[] = {
            "frames", "freed_frames", "lives"};
        LAMINA_ASSIGN(const auto example,
                      rules::Members::Of(file, node, kExample));
        CategoryRule::Example& added = rule.examples.emplace_back();
        LAMINA_ASSIGN(added.frames, example.Texts("frames"));
        LAMINA_ASSIGN(added.freed_frames, example.Texts("freed_frames"));
        LAMINA_ASSIGN(added.lives, example.Texts("lives"));
        added.matches = matches;
      }
    }
    rules_.push_back(std::move(rule));
  }
  return {};
}

Status Rules::AddFrames(const rules::DataFile& file) {
  static constexpr std::string_view kKeys[] = {"table", "glue",  "generated",
                                               "hops",  "noise", "noise_files"};
  LAMINA_ASSIGN(const auto members, rules::Members::Of(file, file.root, kKeys));
  LAMINA_ASSIGN(auto glue, members.Texts("glue"));
  LAMINA_ASSIGN(auto generated, members.Texts("generated"));
  LAMINA_ASSIGN(hops_, members.Texts("hops"));
  LAMINA_ASSIGN(auto noise, members.Texts("noise"));
  LAMINA_ASSIGN(auto noise_files, members.Texts("noise_files"));
  for (std::string& word : glue) word = RE2::QuoteMeta(word);
  std::string pattern = "^<|^none$";
  if (!glue.empty()) pattern += "|(?:^|/)(?:" + AnyOf(glue) + ")/";
  if (!generated.empty()) pattern += "|" + AnyOf(generated);
  LAMINA_TRY(Compile(file, file.root, pattern, &glue_));
  // The standard library, whose packages of others are not part of it.
  LAMINA_TRY(
      Compile(file, file.root, "/lib/python3[.0-9]*/([^/]*)/?", &library_));
  LAMINA_TRY(Compile(file, file.root, noise.empty() ? "^\\b$" : AnyOf(noise),
                     &noise_));
  LAMINA_TRY(Compile(file, file.root,
                     noise_files.empty() ? "^\\b$" : AnyOf(noise_files),
                     &noise_files_));
  return {};
}

uint64_t Rules::NativeMask(std::string_view name) const {
  uint64_t mask = 0;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].native != nullptr && Matches(rules_[i].native, name))
      mask |= uint64_t{1} << i;
  }
  return mask;
}

uint64_t Rules::PythonMask(const FrameText& frame) const {
  uint64_t mask = 0;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const CategoryRule& rule = rules_[i];
    if (rule.file == nullptr && rule.function == nullptr) continue;
    if ((rule.function == nullptr || Matches(rule.function, frame.name)) &&
        (rule.file == nullptr || Matches(rule.file, frame.file)))
      mask |= uint64_t{1} << i;
  }
  return mask;
}

uint64_t Rules::FreedMask(const FrameText& frame) const {
  uint64_t mask = 0;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const CategoryRule& rule = rules_[i];
    if (rule.freed_file == nullptr && rule.freed_function == nullptr) continue;
    if ((rule.freed_function == nullptr ||
         Matches(rule.freed_function, frame.name)) &&
        (rule.freed_file == nullptr || Matches(rule.freed_file, frame.file)))
      mask |= uint64_t{1} << i;
  }
  return mask;
}

uint64_t Rules::AnnotationMask(std::string_view name) const {
  uint64_t mask = 0;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].annotation != nullptr && Matches(rules_[i].annotation, name))
      mask |= uint64_t{1} << i;
  }
  return mask;
}

size_t Rules::First(uint64_t mask, const Life& life) const {
  for (size_t i = 0; i < rules_.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    const CategoryRule& rule = rules_[i];
    if ((rule.freed && *rule.freed != life.freed) ||
        (rule.before && *rule.before != life.before) ||
        (rule.outlives_backward && !life.backward) ||
        (rule.outlives_optimizer && !life.optimizer))
      continue;
    return i;
  }
  return rules_.size();
}

bool Rules::IsOwn(std::string_view path) const {
  if (Matches(glue_, path)) return false;
  // A path may go through several; RE2 finds the first, which is the nearest
  // to the root: look at all.
  re2::StringPiece rest = View(path);
  std::string package;
  while (RE2::FindAndConsume(&rest, *library_, &package)) {
    if (package != "site-packages" && package != "dist-packages") return false;
  }
  return true;
}

bool Rules::IsHop(std::string_view function) const {
  return std::find(hops_.begin(), hops_.end(), function) != hops_.end();
}

bool Rules::IsNoise(const FrameText& frame) const {
  return Matches(noise_, frame.name) || Matches(noise_files_, frame.file);
}

std::vector<std::string> Rules::CheckExamples() const {
  std::vector<std::string> problems;
  const auto masks = [&](const std::vector<std::string>& frames, bool freed) {
    uint64_t native = no_native_, python = no_python_, gone = no_freed_;
    for (const std::string& frame : frames) {
      const size_t space = frame.find(' ');
      const FrameText text{space == std::string::npos
                               ? std::string_view(frame)
                               : std::string_view(frame).substr(space + 1),
                           space == std::string::npos
                               ? std::string_view()
                               : std::string_view(frame).substr(0, space)};
      if (IsPython(text.file)) {
        python |= PythonMask(text);
        gone |= FreedMask(text);
      } else {
        native |= NativeMask(text.name);
      }
    }
    return freed ? gone : native & python;
  };
  for (size_t i = 0; i < rules_.size(); ++i) {
    const CategoryRule& rule = rules_[i];
    const auto complain = [&](std::string_view what) {
      problems.push_back(fmt::format("{}:{}: rule {} {}", rule.source,
                                     rule.line, rule.id, what));
    };
    bool any = false;
    for (const CategoryRule::Example& example : rule.examples) {
      any |= example.matches;
      Life life;
      for (const std::string& word : example.lives) {
        life.before |= word == "before";
        life.freed |= word == "freed";
        life.backward |= word == "backward";
        life.optimizer |= word == "optimizer";
      }
      life.optimizer |= !life.freed;
      uint64_t mask = masks(example.frames, false) & no_annotation_;
      mask &= life.before ? masks(example.freed_frames, true) : no_freed_;
      const size_t found = First(mask, life);
      const std::string text =
          fmt::format("{}", fmt::join(example.frames, "; "));
      if (example.matches && found != i) {
        complain(
            fmt::format("does not decide its example '{}': {} does", text,
                        found < rules_.size() ? rules_[found].id : "no rule"));
      } else if (!example.matches && found == i) {
        complain("decides its counter-example '" + text + "'");
      }
    }
    if (!any) complain("has no example");
  }
  return problems;
}

StackFacts Attribution::FactsOf(const Snapshot& snapshot, uint32_t stack,
                                const RE2* own) const {
  StackFacts out;
  const Stacks& stacks = snapshot.stacks;
  const std::span<const uint32_t> frames = stacks.Of(stack);
  struct Python {
    FrameText text;
    int32_t line;
  };
  std::vector<Python> python;
  std::string_view op;
  bool before_python = true;
  for (const uint32_t id : frames) {
    const Frame& frame = stacks.frame(id);
    const FrameText text{snapshot.strings[frame.name],
                         snapshot.strings[frame.file]};
    if (IsPython(text.file)) {
      before_python = false;
      python.push_back({text, frame.line});
      out.optimizer |= text.name == "step" && Contains(text.file, "optim");
      out.forward |= text.name == "forward";
      continue;
    }
    out.any_native = true;
    out.engine |= Contains(text.name, kEngine);
    if (!before_python) continue;
    if (const std::string_view found = OpOf(text.name); !found.empty())
      op = found;
  }
  const Python* line = nullptr;
  for (const Python& frame : python) {
    const bool is_own = own != nullptr
                            ? RE2::PartialMatch(View(frame.text.file), *own)
                            : rules_->IsOwn(frame.text.file);
    if (is_own) {
      line = &frame;
      break;
    }
  }
  if (line == nullptr && !python.empty()) line = &python.front();
  const std::string_view none = frames.empty() ? "(no stack)"
                                : out.engine   ? "(backward)"
                                               : "(native)";
  if (line != nullptr) {
    out.file = line->text.file;
    out.function = line->text.name;
    out.line_number = line->line;
    out.line = fmt::format("{}:{} {}", BaseName(line->text.file), line->line,
                           line->text.name);
    out.line_key =
        fmt::format("{} {}", BaseName(line->text.file), line->text.name);
  } else {
    out.line = out.line_key = none;
  }
  out.op = !op.empty()      ? "aten::" + std::string(op)
           : frames.empty() ? "(no stack)"
                            : "(none)";
  for (size_t i = python.size(); i-- > 0;) {
    if (python[i].text.name != "forward") continue;
    int32_t caller = 0;
    for (size_t k = i + 1; k < python.size(); ++k) {
      if (rules_->IsHop(python[k].text.name)) continue;
      caller = python[k].line;
      break;
    }
    const std::string_view stem = Stem(python[i].text.file);
    if (!out.module.empty()) {
      out.module += '/';
      out.module_key += '/';
    }
    out.module += fmt::format("{}@{}", stem, caller);
    out.module_key += stem;
  }
  if (out.module.empty())
    out.module = out.module_key = python.empty() ? none : "(outside)";
  return out;
}

Life Attribution::LifeOf(const Device& device, const Allocation& a) const {
  Life life;
  life.before = a.before();
  life.freed = a.freed();
  const Moment end = life.freed ? a.active_until : device.moments();
  const auto inside = [&](const std::vector<Moment>& events) {
    const auto it = std::upper_bound(events.begin(), events.end(), a.start);
    return it != events.end() && *it < end;
  };
  life.backward = inside(backward_);
  life.optimizer = !life.freed || inside(optimizer_);
  return life;
}

Result<std::unique_ptr<Attribution>> Attribution::Make(
    std::shared_ptr<const Rules> rules, Device* device,
    const AttributionOptions& options) {
  auto out = std::make_unique<Attribution>();
  out->rules_ = std::move(rules);
  const Rules& r = *out->rules_;
  std::unique_ptr<RE2> own;
  if (!options.own.empty()) {
    rules::PatternCompiler compiler;
    std::string wrong = compiler.Compile(options.own, options.own, own);
    if (!wrong.empty())
      return Fail(UsageError("--own: " + wrong, "write it in RE2 syntax"));
  }
  const Snapshot& snapshot = device->snapshot();
  const Stacks& stacks = snapshot.stacks;
  // Each distinct frame is held against the rules once.
  struct FrameMasks {
    uint64_t native = 0, python = 0, freed = 0;
  };
  std::vector<FrameMasks> masks(stacks.frames());
  for (uint32_t id = 0; id < stacks.frames(); ++id) {
    const Frame& frame = stacks.frame(id);
    const FrameText text{snapshot.strings[frame.name],
                         snapshot.strings[frame.file]};
    if (IsPython(text.file)) {
      masks[id].python = r.PythonMask(text);
      masks[id].freed = r.FreedMask(text);
    } else {
      masks[id].native = r.NativeMask(text.name);
    }
  }
  out->facts_.reserve(stacks.size());
  for (uint32_t stack = 0; stack < stacks.size(); ++stack) {
    StackFacts facts = out->FactsOf(snapshot, stack, own.get());
    uint64_t native = r.no_native(), python = r.no_python(),
             freed = r.no_freed();
    for (const uint32_t id : stacks.Of(stack)) {
      native |= masks[id].native;
      python |= masks[id].python;
      freed |= masks[id].freed;
    }
    facts.rules = native & python;
    facts.freed_rules = freed;
    out->facts_.push_back(std::move(facts));
  }
  // What the autograd thread allocates has no frames where only those of
  // Python are recorded.
  const Events& events = device->events();
  size_t allocs = 0, with_frames = 0;
  for (size_t i = 0; i < events.count(); ++i) {
    if (events.stack[i] != 0) out->any_frames_ = true;
    if (events.action[i] != Action::kAlloc) continue;
    ++allocs;
    with_frames += events.stack[i] != 0;
    out->any_native_ |= out->facts_[events.stack[i]].any_native;
  }
  out->python_only_ =
      with_frames > 0 && 2 * with_frames >= allocs && !out->any_native_;
  out->thread_.line = out->thread_.line_key = "(backward)";
  out->thread_.module = out->thread_.module_key = "(backward)";
  out->thread_.op = "(no stack)";
  out->thread_.engine = true;
  out->thread_.rules = (r.no_native() | r.NativeMask(kEngine)) & r.no_python();
  out->thread_.freed_rules = r.no_freed();

  for (size_t i = 0; i < events.count(); ++i) {
    if (events.action[i] != Action::kAlloc) continue;
    const bool thread = out->python_only_ && events.stack[i] == 0;
    const StackFacts& facts =
        thread ? out->thread_ : out->facts_[events.stack[i]];
    const auto event = static_cast<Moment>(i);
    if (facts.engine)
      out->backward_.push_back(event);
    else if (facts.forward)
      out->forward_.push_back(event);
    if (facts.optimizer) out->optimizer_.push_back(event);
  }
  // Steps of an optimizer that only annotations tell of.
  for (const Annotation& a : snapshot.annotations) {
    if (a.end || a.device != device->ordinal() || a.time_us == kNoTime ||
        !snapshot.strings[a.name].starts_with("Optimizer.step#"))
      continue;
    out->optimizer_.push_back(device->MomentAt(a.time_us));
  }
  std::sort(out->optimizer_.begin(), out->optimizer_.end());

  // The innermost annotation at each event, where a rule asks for it.
  const bool annotated =
      r.no_annotation() != ~uint64_t{0} &&
      (~r.no_annotation() &
       ((r.rules().size() == 64) ? ~uint64_t{0}
                                 : (uint64_t{1} << r.rules().size()) - 1)) != 0;
  std::vector<std::pair<Moment, uint64_t>> annotation_masks;
  if (annotated) {
    std::vector<std::pair<int64_t, const Annotation*>> order;
    for (const Annotation& a : snapshot.annotations) {
      if (a.device == device->ordinal() && a.time_us != kNoTime)
        order.emplace_back(a.time_us, &a);
    }
    std::stable_sort(
        order.begin(), order.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<StringId> open;
    for (const auto& [time, a] : order) {
      if (!a->end) {
        open.push_back(a->name);
      } else {
        const auto it = std::find(open.rbegin(), open.rend(), a->name);
        if (it != open.rend()) open.erase(std::next(it).base());
      }
      annotation_masks.emplace_back(
          device->MomentAt(time),
          open.empty() ? 0 : r.AnnotationMask(snapshot.strings[open.back()]));
    }
  }
  const auto annotation_mask = [&](Moment event) -> uint64_t {
    const auto it = std::upper_bound(
        annotation_masks.begin(), annotation_masks.end(), event,
        [](Moment m, const auto& entry) { return m < entry.first; });
    return r.no_annotation() |
           (it == annotation_masks.begin() ? 0 : std::prev(it)->second);
  };

  for (Allocation& a : device->allocations()) {
    a.autograd_thread = out->python_only_ && a.stack == 0 && !a.before();
    const Life life = out->LifeOf(*device, a);
    uint64_t mask = out->Of(a).rules;
    mask &= a.before() ? out->facts_[a.free_stack].freed_rules : r.no_freed();
    if (annotated) mask &= annotation_mask(a.start);
    const size_t rule = r.First(mask, life);
    if (rule < r.rules().size()) {
      a.rule = static_cast<uint8_t>(rule);
      a.category = static_cast<uint8_t>(r.rules()[rule].category);
      a.confidence =
          a.autograd_thread ? Confidence::kLow : r.rules()[rule].confidence;
    } else {
      a.rule = 0xFF;
      a.category = static_cast<uint8_t>(Category::kUnknown);
    }
    const Tag& tag = snapshot.tags[a.tag];
    if (tag.category.valid() && tag.category != StringPool::kEmpty) {
      const std::string_view text = snapshot.strings[tag.category];
      for (size_t k = 0; k < kCategories; ++k) {
        if (text == kNames[k] ||
            (text == "autograd_detail" && kNames[k] == "temporary")) {
          a.category = static_cast<uint8_t>(k);
          a.confidence = Confidence::kFact;
          a.rule = 0xFF;
        }
      }
    }
  }
  return out;
}

}  // namespace lamina::memory
