// SPDX-License-Identifier: Apache-2.0
//
// Functions of one row: how numbers are shown, parts of names, and what the
// cost models know.
//
// Why it is longer than 250 lines: a list of small functions with their docs.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <re2/re2.h>

#include "analysis/common/cost_view.h"
#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/string_pool.h"
#include "cost/arguments.h"
#include "cost/dtype.h"
#include "sql/impl.h"
#include "tree/modules.h"

namespace lamina::sql {
namespace {

re2::StringPiece Piece(std::string_view text) {
  return {text.data(), text.size()};
}

// A compiled pattern, and in which texts it was looked for: names of kernels
// and ops are few and come again in most rows.
struct Pattern {
  explicit Pattern(std::string_view text) : re(Piece(text), Options()) {}

  static RE2::Options Options() {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(8 << 20);
    return options;
  }
  bool Matches(std::string_view text) {
    constexpr size_t kMost = 4096;
    const auto known = seen.find(absl::string_view(text.data(), text.size()));
    if (known != seen.end()) return known->second;
    if (seen.size() >= kMost) seen.clear();
    const bool matches = RE2::PartialMatch(Piece(text), re);
    seen.emplace(std::string(text), matches);
    return matches;
  }

  RE2 re;
  absl::flat_hash_map<std::string, bool> seen;
};

// What the functions of a connection share: patterns are compiled once.
struct State {
  Database::Impl* impl;
  std::map<std::string, std::shared_ptr<Pattern>, std::less<>> patterns;
  // Of calls with these texts: kernels of one op come again and again.
  TextMap<std::optional<cost::Cost>> costs;

  std::shared_ptr<Pattern> Find(std::string_view text) {
    const auto it = patterns.find(text);
    if (it != patterns.end()) return it->second;
    if (patterns.size() > 256) patterns.clear();
    return patterns.emplace(text, std::make_shared<Pattern>(text))
        .first->second;
  }
};

struct Args {
  sqlite3_context* context;
  int count;
  sqlite3_value** values;

  State& state() const {
    return *static_cast<State*>(sqlite3_user_data(context));
  }
  bool null(int i) const {
    return i >= count || sqlite3_value_type(values[i]) == SQLITE_NULL;
  }
  // Text of any value; null has none.
  std::string_view text(int i) const {
    const auto* data =
        reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
    return data == nullptr
               ? std::string_view()
               : std::string_view(
                     data, static_cast<size_t>(sqlite3_value_bytes(values[i])));
  }
  // The same without the copy that a zero at the end may take.
  std::string_view bytes(int i) const {
    if (sqlite3_value_type(values[i]) != SQLITE_TEXT) return text(i);
    const auto* data = static_cast<const char*>(sqlite3_value_blob(values[i]));
    return {data, static_cast<size_t>(sqlite3_value_bytes(values[i]))};
  }
  int64_t integer(int i) const { return sqlite3_value_int64(values[i]); }
  double real(int i) const { return sqlite3_value_double(values[i]); }

  void Give(std::string_view value) const {
    SetResult(context, Value(value), SQLITE_TRANSIENT);
  }
  void Give(int64_t value) const { sqlite3_result_int64(context, value); }
  void Give(double value) const {
    SetResult(context, Value(value), SQLITE_TRANSIENT);
  }
  void Fail(const std::string& message) const {
    sqlite3_result_error(context, message.c_str(), -1);
  }
};

struct Scalar {
  const char* name;
  int min_args, max_args;
  // Null when one of these first arguments is null.
  int strict;
  const char* signature;
  const char* doc;
  const char* example;
  void (*call)(const Args&);
};

// The pattern of an argument; a constant one is kept at its call.
Pattern* FindPattern(const Args& args, int i) {
  using KeptPattern = std::shared_ptr<Pattern>;
  if (void* const kept = sqlite3_get_auxdata(args.context, i))
    return static_cast<KeptPattern*>(kept)->get();
  const KeptPattern pattern = args.state().Find(args.text(i));
  if (!pattern->re.ok()) {
    args.Fail("not a pattern of RE2: " + pattern->re.error());
    return nullptr;
  }
  sqlite3_set_auxdata(
      args.context, i, new KeptPattern(pattern),
      [](void* kept) { delete static_cast<KeptPattern*>(kept); });
  return pattern.get();
}

const RE2* PatternOf(const Args& args, int i) {
  const Pattern* const pattern = FindPattern(args, i);
  return pattern == nullptr ? nullptr : &pattern->re;
}

// Numbers in a JSON list of lists, multiplied per list and added up.
std::optional<double> Elements(std::string_view dims) {
  auto call = cost::ParseCall("", dims, "", "");
  if (!call) {
    // One shape alone: "[2, 3]".
    call = cost::ParseCall("", "[" + std::string(dims) + "]", "", "");
    if (!call) return std::nullopt;
  }
  double sum = 0;
  for (const cost::Argument& argument : call->arguments) {
    if (argument.dims.empty() && argument.list.empty()) continue;
    if (!argument.dims.empty()) {
      double product = 1;
      for (const double d : argument.dims) product *= d;
      sum += product;
    }
    for (const auto& list : argument.list) {
      double product = 1;
      for (const double d : list) product *= d;
      sum += product;
    }
  }
  return sum;
}

// The cost of a call, by the models of the session; nothing without a model.
std::optional<cost::Cost> CostOf(const Args& args) {
  constexpr size_t kMost = 4096;
  const auto costs =
      args.state().impl->first().input().Get<analysis::CostModels>();
  if (!costs) {
    args.Fail(costs.error().what);
    return std::nullopt;
  }
  const std::string_view op = args.bytes(0);
  const cost::OpModel* model = (*costs)->models->Find(op);
  if (model == nullptr) return std::nullopt;
  std::array<std::string_view, 4> texts = {op};
  // With their lengths, as a text may hold any character.
  std::string key = fmt::format("{}:{}", op.size(), op);
  for (int i = 1; i < 4; ++i) {
    if (!args.null(i)) texts[static_cast<size_t>(i)] = args.bytes(i);
    const std::string_view text = texts[static_cast<size_t>(i)];
    key += fmt::format("{}:{}", text.size(), text);
  }
  auto& known = args.state().costs;
  if (const auto it = known.find(key); it != known.end()) return it->second;
  std::optional<cost::Cost> cost;
  if (const auto call = cost::ParseCall(op, texts[1], texts[2], texts[3])) {
    if (auto found = (*costs)->models->Evaluate(*model, *call)) {
      cost = *std::move(found);
      cost->parameters.clear();  // they may point into the call
    }
  }
  if (known.size() >= kMost) known.clear();
  known.emplace(std::move(key), cost);
  return cost;
}

const Scalar kScalars[] = {
    {"fmt_ns", 1, 1, 1, "fmt_ns(ns)", "A time for people: '1.23 ms'.",
     "SELECT fmt_ns(1234567)",
     [](const Args& a) { a.Give(HumanTime(a.integer(0))); }},
    {"fmt_bytes", 1, 1, 1, "fmt_bytes(bytes)", "A size for people: '2.00 KiB'.",
     "SELECT fmt_bytes(2048)",
     [](const Args& a) { a.Give(HumanBytes(a.real(0))); }},
    {"fmt_count", 1, 1, 1, "fmt_count(x)", "A number for people: '12.3 k'.",
     "SELECT fmt_count(12345)",
     [](const Args& a) { a.Give(HumanCount(a.real(0))); }},
    {"ns_to_us", 1, 1, 1, "ns_to_us(ns)", "Microseconds.",
     "SELECT ns_to_us(1500)", [](const Args& a) { a.Give(a.real(0) / 1e3); }},
    {"ns_to_ms", 1, 1, 1, "ns_to_ms(ns)", "Milliseconds.",
     "SELECT ns_to_ms(1500000)",
     [](const Args& a) { a.Give(a.real(0) / 1e6); }},
    {"ns_to_s", 1, 1, 1, "ns_to_s(ns)", "Seconds.",
     "SELECT ns_to_s(1500000000)",
     [](const Args& a) { a.Give(a.real(0) / 1e9); }},
    {"parse_time", 1, 1, 1, "parse_time(text)",
     "Nanoseconds of '1.5ms', '20 us', '3s', '7ns'.",
     "SELECT parse_time('1.5ms')",
     [](const Args& a) {
       std::string_view text = a.text(0);
       size_t unit = text.size();
       while (unit > 0 && text[unit - 1] >= 'a' && text[unit - 1] <= 'z')
         --unit;
       std::string_view name = text.substr(unit);
       std::string_view digits = text.substr(0, unit);
       while (digits.ends_with(' ')) digits.remove_suffix(1);
       // Exact: microseconds are parsed as digits, and shifted before.
       const auto power = name == "ns"   ? std::optional(-3)
                          : name == "us" ? std::optional(0)
                          : name == "ms" ? std::optional(3)
                          : name == "s"  ? std::optional(6)
                                         : std::nullopt;
       const auto parsed = power && digits.find('e') == std::string_view::npos
                               ? ParseMicroseconds(std::string(digits) + "e" +
                                                   std::to_string(*power))
                               : std::nullopt;
       if (parsed) a.Give(parsed->ns);
     }},
    {"regexp", 2, 2, 2, "x REGEXP pattern",
     "1 where the pattern of RE2 matches somewhere in x.",
     "SELECT 'aten::mm' REGEXP '::m+$'",
     [](const Args& a) {
       if (Pattern* const pattern = FindPattern(a, 0))
         a.Give(int64_t{pattern->Matches(a.bytes(1))});
     }},
    {"regexp_extract", 2, 3, 2, "regexp_extract(x, pattern[, group])",
     "What a group of the pattern matches, 0: all of it; null: no match.",
     "SELECT regexp_extract('tile_128x64', '([0-9]+)x', 1)",
     [](const Args& a) {
       const RE2* pattern = PatternOf(a, 1);
       if (pattern == nullptr) return;
       const int64_t group = a.count > 2 ? a.integer(2) : 0;
       const int groups = pattern->NumberOfCapturingGroups();
       if (group < 0 || group > groups) {
         a.Fail("the pattern has " + std::to_string(groups) + " groups");
         return;
       }
       std::vector<re2::StringPiece> found(static_cast<size_t>(group) + 1);
       const auto text = Piece(a.text(0));
       if (pattern->Match(text, 0, text.size(), RE2::UNANCHORED, found.data(),
                          static_cast<int>(found.size())) &&
           found.back().data() != nullptr)
         a.Give(std::string_view(found.back().data(), found.back().size()));
     }},
    {"regexp_replace", 3, 3, 3, "regexp_replace(x, pattern, replacement)",
     "x with every match replaced; \\1 stands for a group.",
     "SELECT regexp_replace('gemm_128x64', '[0-9]+', 'N')",
     [](const Args& a) {
       const RE2* pattern = PatternOf(a, 1);
       if (pattern == nullptr) return;
       std::string text(a.text(0));
       RE2::GlobalReplace(&text, *pattern, Piece(a.text(2)));
       a.Give(text);
     }},
    {"short_name", 1, 1, 1, "short_name(kernel)",
     "A kernel's C++ name in fewer characters.",
     "SELECT short_name('void a::b<float>(int)')",
     [](const Args& a) { a.Give(ShortCppName(a.text(0))); }},
    {"demangle", 1, 1, 1, "demangle(symbol)", "A C++ symbol as source text.",
     "SELECT demangle('_ZN2at3addIfEEvPT_')",
     [](const Args& a) { a.Give(Demangle(a.text(0))); }},
    {"class_name", 1, 1, 1, "class_name(module)",
     "'Linear' of 'Model_0/Layer_3/Linear_21'.",
     "SELECT class_name('Model_0/Linear_21')",
     [](const Args& a) {
       std::string_view text = a.text(0);
       if (const size_t slash = text.rfind('/');
           slash != std::string_view::npos)
         text = text.substr(slash + 1);
       std::string recorded(text);
       if (!text.starts_with(tree::kModulePrefix))
         recorded = std::string(tree::kModulePrefix) + recorded;
       a.Give(tree::Modules::ClassName(recorded));
     }},
    {"module_depth", 1, 1, 1, "module_depth(path)",
     "Modules around the one that a path names.",
     "SELECT module_depth('Model_0/Linear_21')",
     [](const Args& a) {
       const std::string_view text = a.text(0);
       int64_t depth = 0;
       for (const char c : text) depth += c == '/';
       a.Give(depth);
     }},
    {"family", 1, 1, 1, "family(name)",
     "Family of an op or a kernel by its name.", "SELECT family('aten::mm')",
     [](const Args& a) {
       const auto& catalog = a.state().impl->first().catalog();
       const std::string_view op = catalog.OpFamily(a.text(0));
       a.Give(op.empty() ? catalog.KernelFamily(a.text(0)) : op);
     }},
    {"dtype_bytes", 1, 1, 1, "dtype_bytes(type)",
     "Bytes of an element: 2 for 'c10::BFloat16'; null for an unknown type.",
     "SELECT dtype_bytes('c10::BFloat16')",
     [](const Args& a) {
       if (const auto type = cost::FindDType(a.text(0))) a.Give(type->bytes);
     }},
    {"numel", 1, 1, 1, "numel(dims)",
     "Elements of all tensors of a recorded list of shapes.",
     "SELECT numel('[[2, 3], [4]]')",
     [](const Args& a) {
       if (const auto count = Elements(a.text(0))) a.Give(*count);
     }},
    {"flops", 2, 4, 1, "flops(op, dims[, types[, concrete]])",
     "FLOPs of one call by the cost model of the op; null without one.",
     "SELECT flops('aten::mm', '[[4, 8], [8, 2]]', '[\"float\", \"float\"]')",
     [](const Args& a) {
       if (const auto cost = CostOf(a)) a.Give(cost->flops);
     }},
    {"bytes_moved", 2, 4, 1, "bytes_moved(op, dims[, types[, concrete]])",
     "Bytes that one call reads and writes at least, by its cost model.",
     "SELECT bytes_moved('aten::mm', '[[4, 8], [8, 2]]', '[\"float\", "
     "\"float\"]')",
     [](const Args& a) {
       if (const auto cost = CostOf(a)) a.Give(cost->bytes);
     }},
    {"roofline_ns", 2, 4, 1, "roofline_ns(op, dims[, types[, concrete]])",
     "Least time of one call on the device of the trace.",
     "SELECT roofline_ns('aten::mm', '[[4096, 4096], [4096, 4096]]', "
     "'[\"c10::BFloat16\", \"c10::BFloat16\"]')",
     [](const Args& a) {
       const auto cost = CostOf(a);
       if (!cost) return;
       const auto device = a.state().impl->first().input().Device();
       if (!device || !*device) return;
       if (const auto line = cost::RooflineOf(*cost, **device, cost->Spec()))
         a.Give(line->seconds * 1e9);
     }},
};

template <size_t kIndex>
void Call(sqlite3_context* context, int count, sqlite3_value** values) {
  const Scalar& scalar = kScalars[kIndex];
  const Args args{context, count, values};
  if (count < scalar.min_args || count > scalar.max_args) {
    args.Fail(std::string("wrong number of arguments; ") + scalar.signature);
    return;
  }
  for (int i = 0; i < scalar.strict; ++i) {
    if (args.null(i)) return;
  }
  scalar.call(args);
}

template <size_t... kIndex>
void RegisterAll(Database::Impl& impl, std::index_sequence<kIndex...>) {
  const auto add = [&](const Scalar& scalar, auto call) {
    // Patterns are kept per function: no function calls another.
    auto* state = new State{&impl, {}};
    sqlite3_create_function_v2(
        impl.db, scalar.name, -1,
        SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC, state, call,
        nullptr, nullptr, [](void* p) { delete static_cast<State*>(p); });
  };
  (add(kScalars[kIndex], &Call<kIndex>), ...);
}

}  // namespace

void RegisterScalars(Database::Impl& impl) {
  RegisterAll(impl, std::make_index_sequence<std::size(kScalars)>());
}

std::vector<FunctionInfo> ScalarInfos() {
  std::vector<FunctionInfo> out;
  for (const Scalar& s : kScalars)
    out.push_back({s.name, "scalar", s.signature, s.doc, s.example});
  return out;
}

}  // namespace lamina::sql
