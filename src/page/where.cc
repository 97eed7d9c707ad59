// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: the fields of conditions, and the test of each.
#include "page/where.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <functional>

#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/text.h"
#include "engine/report.h"
#include "page/device.h"
#include "rules/document.h"

namespace lamina::page {
namespace {

using Test = RowTest;

constexpr WhereField kFields[] = {
    {"group", "colour group of the family: gemm, attention, norm ..."},
    {"family", "family, as in the table kernels"},
    {"kernel", "name of the kernel"},
    {"op", "op above the launch, as in the table kernels"},
    {"op_efficiency",
     "row of op_efficiency (an op with shapes) by its first_uid; none: work "
     "in no op"},
    {"module", "path of a module, with all below it"},
    {"layers", "row of the table layers by its first_uid"},
    {"layer", "number of a layer, in every pass"},
    {"pass", "number of a pass"},
    {"stage", "stage of a pass: prefill, decode, mixed ..."},
    {"step", "name of a step, as in the table steps"},
    {"stream", "stream, or DEVICE/STREAM, or PROCESS/DEVICE/STREAM"},
    {"time", "span that it overlaps, from the first event: 10ms..20ms"},
    {"length", "span of lengths, end excluded: 10us.. or ..2us"},
    {"event", "number of an event of the trace"},
    {"text", "words that all occur in the kernel, in the op or in the module"},
};

struct Condition {
  std::string_view field;  // one of kFields
  bool negated = false;
  std::string value;
};

// "12.5ms", "3s", "100us" or "100".
std::optional<int64_t> ParseDuration(std::string_view text) {
  struct Unit {
    std::string_view suffix;
    int64_t ns;
  };
  // "s" last: the others end in it too.
  static constexpr Unit kUnits[] = {
      {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  int64_t unit = 1000;
  for (const Unit& known : kUnits) {
    if (!text.ends_with(known.suffix)) continue;
    text.remove_suffix(known.suffix.size());
    unit = known.ns;
    break;
  }
  const auto value = ParseDouble(text);
  constexpr double kMost = 1e18;
  if (!value || !(*value >= 0) || *value * static_cast<double>(unit) > kMost)
    return std::nullopt;
  return std::llround(*value * static_cast<double>(unit));
}

Result<Condition> ParseCondition(const std::string& text) {
  const size_t equals = text.find('=');
  Condition condition;
  std::string_view name = std::string_view(text).substr(0, equals);
  if (equals != std::string::npos) condition.value = text.substr(equals + 1);
  condition.negated = name.ends_with('!');
  if (condition.negated) name.remove_suffix(1);
  std::vector<std::string_view> names;
  std::string list;
  for (const WhereField& field : kFields) {
    if (field.name == name) condition.field = field.name;
    names.push_back(field.name);
    list += (list.empty() ? "" : ", ") + std::string(field.name);
  }
  if (equals == std::string::npos || condition.field.empty()) {
    const std::string_view near = rules::Nearest(name, names);
    return Fail(UsageError(
        "⟨where⟩: expected FIELD=VALUE or FIELD!=VALUE, found '" + text + "'",
        near.empty() || near == name
            ? "fields: " + list
            : "did you mean '" + std::string(near) + "'?"));
  }
  return condition;
}

tl::unexpected<Error> WrongValue(const Condition& condition,
                                 std::string_view expected) {
  return Fail(UsageError(
      fmt::format("⟨where⟩ {}: '{}' is no {}", condition.field, condition.value,
                  expected),
      "the first event of the trace is at 0; units are ns, us, ms and s"));
}

constexpr size_t kMostWords = 100;

// Words that must all occur in a text, in any case.
class WordTest {
 public:
  explicit WordTest(std::string_view words) {
    constexpr std::string_view kSpace = " \t\n\v\f\r";
    for (size_t at = words.find_first_not_of(kSpace);
         at != std::string_view::npos;) {
      const size_t end =
          std::min(words.find_first_of(kSpace, at), words.size());
      std::string& word = words_.emplace_back(words.substr(at, end - at));
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? c + 32 : c;
      at = words.find_first_not_of(kSpace, end);
    }
  }
  size_t words() const { return words_.size(); }
  bool operator()(std::string_view text) const {
    return std::all_of(words_.begin(), words_.end(), [&](const auto& word) {
      return ContainsIgnoringCase(text, word);
    });
  }

 private:
  std::vector<std::string> words_;
};

// Tests of device events, by the tables of the report that they belong to.
class Tests {
 public:
  Tests(const analysis::Context& context, const Document& document)
      : context_(context), trace_(context.trace), document_(document) {}

  Result<Test> Make(const Condition& condition) const {
    const std::string_view field = condition.field;
    const std::string& value = condition.value;
    if (field == "group" || field == "family") return Family(field, value);
    if (field == "kernel" || field == "op")
      return ByRow("kernels", field, value, &DeviceRow::kernel);
    if (field == "op_efficiency" && value == "none")
      return Test([](const DeviceRow& row) { return row.op == 0; });
    if (field == "op_efficiency")
      return ByRow(field, "first_uid", value, &DeviceRow::op);
    if (field == "module") return Module(value);
    if (field == "layers")
      return ByRow(field, "first_uid", value, &DeviceRow::layer);
    if (field == "layer")
      return ByRow("layers", field, value, &DeviceRow::layer);
    if (field == "pass" || field == "stage")
      return ByRow("passes", field, value, &DeviceRow::pass);
    if (field == "step") return ByRow("steps", "name", value, &DeviceRow::step);
    if (field == "stream") return Stream(value);
    if (field == "text") {
      const WordTest test(value);
      if (test.words() > kMostWords) {
        return Fail(UsageError("⟨where⟩ text: more than " +
                               std::to_string(kMostWords) + " words"));
      }
      return Text(test);
    }
    return Number(condition);
  }

 private:
  const Table* Find(std::string_view name) const {
    return document_.result.Find(name);
  }

  // Events of the rows of a table for which `holds`.
  template <typename Holds>
  Test OfRows(std::string_view name, uint32_t DeviceRow::*of,
              const Holds& holds) const {
    const Table* table = Find(name);
    std::vector<bool> allowed(table != nullptr ? table->rows() + 1 : 1);
    for (size_t row = 0; row + 1 < allowed.size(); ++row)
      allowed[row + 1] = holds(*table, row);
    return [allowed = std::move(allowed), of](const DeviceRow& row) {
      return row.*of < allowed.size() && allowed[row.*of];
    };
  }
  Test ByRow(std::string_view name, std::string_view column,
             const std::string& value, uint32_t DeviceRow::*of) const {
    return OfRows(name, of, [&](const Table& table, size_t row) {
      return CellText(table, row, table.schema().IndexOf(column)) == value;
    });
  }

  Test Family(std::string_view field, const std::string& value) const {
    std::vector<bool> allowed;
    for (const rules::Family& family : context_.catalog.families())
      allowed.push_back((field == "group" ? family.group : family.name) ==
                        value);
    return [allowed = std::move(allowed)](const DeviceRow& row) {
      return allowed[row.family];
    };
  }

  Test Module(const std::string& path) const {
    int64_t below = -1;  // depth of the module that this row is below
    return OfRows(
        "modules", &DeviceRow::module, [&](const Table& table, size_t row) {
          const int64_t depth = table.Int(row, table.schema().IndexOf("depth"));
          if (below >= 0 && depth <= below) below = -1;
          if (below < 0 && table.At(row, "module").text() == path)
            below = depth;
          return below >= 0;
        });
  }

  Test Stream(const std::string& value) const {
    const auto number = [](int64_t n) {
      return n == trace::kNoInt ? std::string("?") : std::to_string(n);
    };
    std::vector<bool> allowed;
    for (const trace::Stream& lane : trace_.streams) {
      const std::string stream = number(lane.stream);
      const std::string both = number(lane.device) + "/" + stream;
      allowed.push_back(value == stream || value == both ||
                        value ==
                            std::string(trace_.Text(lane.pid)) + "/" + both);
    }
    return [allowed = std::move(allowed)](const DeviceRow& row) {
      return allowed[row.lane];
    };
  }

  Test Text(const WordTest& test) const {
    Test kernels = OfRows(
        "kernels", &DeviceRow::kernel, [&](const Table& table, size_t row) {
          return test(table.At(row, "kernel").text()) ||
                 test(ShortCppName(table.At(row, "kernel").text())) ||
                 test(table.At(row, "op").text());
        });
    Test modules = OfRows("modules", &DeviceRow::module,
                          [&](const Table& table, size_t row) {
                            return test(table.At(row, "module").text());
                          });
    return [kernels, modules](const DeviceRow& row) {
      return kernels(row) || modules(row);
    };
  }

  Result<Test> Number(const Condition& condition) const {
    if (condition.field == "event") {
      const auto uid = ParseInt(condition.value);
      if (!uid) return WrongValue(condition, "number of an event");
      return Test([&trace = trace_, uid = *uid](const DeviceRow& row) {
        return int64_t{trace.Uid(row.slice)} == uid;
      });
    }
    const auto span = ParseSpan(condition.value);
    if (!span) return WrongValue(condition, "span like 10us..20us");
    if (condition.field == "length") {
      return Test([span = *span](const DeviceRow& row) {
        return row.dur_ns >= span.start_ns && row.dur_ns < span.end_ns;
      });
    }
    return Test([span = *span](const DeviceRow& row) {
      return row.start_ns < span.end_ns &&
             row.start_ns + row.dur_ns > span.start_ns;
    });
  }

  const analysis::Context& context_;
  const trace::Trace& trace_;
  const Document& document_;
};

// All conditions: of each field any of the values, and none of those not
// wanted.
class Conjunction {
 public:
  Status Add(const Tests& tests, const Condition& condition) {
    LAMINA_ASSIGN(Test test, tests.Make(condition));
    const auto field =
        static_cast<size_t>(std::find_if(std::begin(kFields), std::end(kFields),
                                         [&](const WhereField& known) {
                                           return known.name == condition.field;
                                         }) -
                            std::begin(kFields));
    (condition.negated ? unwanted_ : wanted_[field]).push_back(std::move(test));
    return {};
  }
  bool operator()(const DeviceRow& row) const {
    const auto holds = [&](const Test& test) { return test(row); };
    return std::none_of(unwanted_.begin(), unwanted_.end(), holds) &&
           std::all_of(wanted_.begin(), wanted_.end(), [&](const auto& any) {
             return any.empty() || std::any_of(any.begin(), any.end(), holds);
           });
  }

 private:
  std::array<std::vector<Test>, std::size(kFields)> wanted_;
  std::vector<Test> unwanted_;
};

}  // namespace

std::span<const WhereField> WhereFields() { return kFields; }

std::optional<Interval> ParseSpan(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::optional<int64_t> from = -trace::kMaxTimeNs;
  // From the first event on times are up to twice those of readers.
  std::optional<int64_t> to = 2 * trace::kMaxTimeNs;
  if (dots > 0) from = ParseDuration(text.substr(0, dots));
  if (dots + 2 < text.size()) to = ParseDuration(text.substr(dots + 2));
  if (!from || !to || *from >= *to) return std::nullopt;
  return Interval{*from, *to};
}

Result<Where> MakeWhere(const analysis::Context& context,
                        const Document& document,
                        std::span<const std::string> conditions,
                        const LiveWatch& watch) {
  if (conditions.empty()) return Where{};
  const Tests tests(context, document);
  Conjunction meets;
  std::vector<Interval> spans;
  for (const std::string& text : conditions) {
    LAMINA_TRY(Looked(watch));
    LAMINA_ASSIGN(const Condition condition, ParseCondition(text));
    LAMINA_TRY(meets.Add(tests, condition));
    if (condition.field == "time" && !condition.negated)
      spans.push_back(*ParseSpan(condition.value));
  }
  return Where{std::move(meets), IntervalSet::Of(std::move(spans))};
}

Result<std::vector<bool>> FindWhere(engine::Session& session,
                                    std::span<const std::string> conditions,
                                    int threads) {
  // Wrong ones are told before anything is read.
  for (const std::string& text : conditions)
    LAMINA_TRY(ParseCondition(text).map([](const Condition&) {}));
  ReportOptions report;
  report.threads = threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                session.ContextFor(tree::LinkMode::kAuto, false,
                                   engine::SettingsOf(report)));
  constexpr std::string_view kAnalyses[] = {"kernels", "modules", "steps",
                                            "efficiency"};
  Document document;
  LAMINA_ASSIGN(document.result, session.RunAnalyses(kAnalyses, *context));
  LAMINA_ASSIGN(const auto* const known,
                context->Get<analysis::layers::LayerRules>());
  LAMINA_ASSIGN(const auto* const layers,
                context->Get<analysis::layers::LayerModel>());
  analysis::layers::Options wanted;
  wanted.verdicts = false;
  LAMINA_ASSIGN(
      ResultSet tables,
      analysis::layers::LayerTables(*context, *known->rules, *layers, wanted));
  document.result.Append(std::move(tables));

  LAMINA_ASSIGN(const Where where, MakeWhere(*context, document, conditions));
  std::vector<bool> out(session.trace().slices.size());
  for (const DeviceRow& row : DeviceRows(*context, *layers, document)) {
    if (!where.test || where.test(row)) out[row.slice.value] = true;
  }
  return out;
}

}  // namespace lamina::page
