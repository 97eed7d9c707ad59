// SPDX-License-Identifier: Apache-2.0
#include "findings/export.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/decimal.h"
#include "base/escape.h"
#include "lamina/version.h"

namespace lamina::findings {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMarkdownBytes = 60'000;

std::string Dump(const Json& json) {
  // Broken UTF-8 of a trace becomes U+FFFD instead of an exception.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json FixesOf(const Finding& f) {
  Json fixes = Json::array();
  for (const Fix* const fix : f.fixes) {
    fixes.push_back(
        {{"layer", fix->layer}, {"effort", fix->effort}, {"text", fix->text}});
  }
  return fixes;
}

Json FindingJson(const Finding& f, const Diagnosis& d,
                 const std::vector<std::string>& inputs) {
  Json json;
  json["id"] = f.id;
  json["rule"] = f.rule->id;
  json["title"] = f.rule->title;
  json["category"] = f.rule->category;
  json["severity"] = f.severity;
  json["what"] = f.what;
  json["gain_ns"] = f.gain_ns;
  json["gain_kind"] = f.gain_kind();
  json["gain_low_ns"] = f.gain_low_ns;
  json["gain_high_ns"] = f.gain_high_ns;
  json["gain_after_ns"] = f.gain_after_ns;
  json["open_ns"] = f.open_ns;
  json["owned_ns"] = f.owned_ns;
  json["share"] = f.share;
  json["confidence"] = ConfidenceName(f.confidence);
  json["reason"] = f.reason;
  json["fix"] = FixesOf(f);
  json["verify"] = {
      {"command", VerifyCommand(*f.rule, inputs.empty() ? "" : inputs[0])},
      {"table", "findings"},
      {"column", "owned_ns"},
      {"now", f.owned_ns},
      {"expect", f.rule->verify}};
  if (!f.cannot_tell.empty()) json["cannot_tell"] = f.cannot_tell;
  json["suppressed"] = f.suppressed;
  Json values = Json::object();
  for (const auto& [name, text] : f.values) values[name] = text;
  json["values"] = std::move(values);
  json["claims"] = f.claims;
  Json events = Json::array(), ranges = Json::array();
  for (const Claim& claim : f.top) {
    if (claim.uid >= 0) {
      events.push_back({{"uid", claim.uid}, {"owned_ns", claim.owned_ns}});
      if (f.rule->over_ranks && claim.device < d.device_names.size())
        events.back()["device"] = d.device_names[claim.device];
    }
    if (claim.uid < 0 || claim.whole) {
      ranges.push_back({claim.device < d.device_names.size()
                            ? d.device_names[claim.device]
                            : "",
                        claim.start_ns, claim.start_ns + claim.dur_ns});
    }
  }
  json["events"] = std::move(events);
  json["ranges"] = std::move(ranges);
  return json;
}

// Markdown shows no more than this of a document.
void Cut(std::string& text) {
  if (text.size() <= kMarkdownBytes) return;
  text.resize(text.rfind('\n', kMarkdownBytes));
  text += "\n\nMore findings are left out.\n";
}

}  // namespace

std::string VerifyCommand(const Rule& rule, const std::string& input) {
  return fmt::format("lamina diagnose {} --only {}",
                     input.empty() ? "TRACE" : EscapeTerminal(input), rule.id);
}

std::string ToJson(const Diagnosis& d, const std::vector<std::string>& inputs) {
  Json json;
  json["lamina"] = std::string(Version());
  json["inputs"] = inputs;
  json["abstained"] =
      std::all_of(d.runs.begin(), d.runs.end(), [](const RuleRun& run) {
        return run.state == State::kAbstained || run.state == State::kFailed;
      });
  json["window"] = {{"window_ns", d.window_ns},
                    {"devices", d.device_names},
                    {"busy_ns", d.busy_ns},
                    {"idle_ns", d.idle_ns},
                    {"owned_idle_ns", d.owned_idle_ns}};
  json["headline"] = Headline(d);
  json["together_ns"] = d.together_ns;
  Json findings = Json::array();
  for (const Finding& f : d.findings)
    findings.push_back(FindingJson(f, d, inputs));
  json["findings"] = std::move(findings);
  Json runs = Json::array();
  for (const RuleRun& run : d.runs) {
    Json row;
    row["rule"] = run.rule->id;
    row["state"] = StateName(run.state);
    row["abstained"] = run.state == State::kAbstained;
    row["reason"] = run.reason;
    if (!run.hint.empty()) row["could_tell_with"] = run.hint;
    row["owned_ns"] = run.owned_ns;
    runs.push_back(std::move(row));
  }
  json["rules_run"] = std::move(runs);
  Json overlaps = Json::array();
  for (const auto& [pair, ns] : d.overlaps) {
    overlaps.push_back(
        {{"winner", pair.first}, {"loser", pair.second}, {"time_ns", ns}});
  }
  json["overlaps"] = std::move(overlaps);
  return Dump(json);
}

std::string ToSarif(const Diagnosis& d,
                    const std::vector<std::string>& inputs) {
  Json rules = Json::array(), results = Json::array(), notes = Json::array();
  for (const Rule& rule : d.rules->rules()) {
    std::string help;
    for (const Fix& fix : rule.fixes)
      help += fmt::format("[{}, {}] {}\n", fix.layer, fix.effort, fix.text);
    rules.push_back({{"id", rule.id},
                     {"shortDescription", {{"text", rule.title}}},
                     {"help", {{"text", help}}}});
  }
  for (const Finding& f : d.findings) {
    if (f.open_ns > 0) continue;  // nothing to mend
    if (f.small) continue;
    const char* const level = f.severity == "high" || f.severity == "blocker"
                                  ? "error"
                              : f.severity == "medium" ? "warning"
                                                       : "note";
    Json result;
    result["ruleId"] = f.rule->id;
    result["level"] = level;
    std::string text = f.what;
    if (f.gain_kind() != "none") {
      text +=
          fmt::format(" Gain: {} ({}).", HumanTime(f.gain_ns), f.gain_kind());
    }
    result["message"] = {{"text", text}};
    result["partialFingerprints"] = {{"lamina", f.id}};
    Json places = Json::array();
    for (const auto& [name, value] : f.values) {
      if (value.empty() || (name != "module" && name != "op")) continue;
      places.push_back({{"fullyQualifiedName", value}, {"kind", name}});
    }
    if (!places.empty())
      result["locations"] = {{{"logicalLocations", std::move(places)}}};
    if (f.suppressed) result["suppressions"] = {{{"kind", "external"}}};
    result["properties"] = {{"gain_ns", f.gain_ns},
                            {"gain_kind", f.gain_kind()},
                            {"confidence", ConfidenceName(f.confidence)},
                            {"share", f.share}};
    results.push_back(std::move(result));
  }
  for (const RuleRun& run : d.runs) {
    if (run.state != State::kAbstained) continue;
    notes.push_back(
        {{"level", "note"},
         {"associatedRule", {{"id", run.rule->id}}},
         {"message",
          {{"text", "could not look: " + run.reason +
                        (run.hint.empty() ? "" : "; " + run.hint)}}}});
  }
  Json artifacts = Json::array();
  for (const std::string& input : inputs)
    artifacts.push_back({{"location", {{"uri", input}}}});
  Json run;
  run["tool"] = {{"driver",
                  {{"name", "lamina"},
                   {"version", std::string(Version())},
                   {"rules", std::move(rules)}}}};
  run["invocations"] = {{{"executionSuccessful", true},
                         {"toolExecutionNotifications", std::move(notes)}}};
  run["artifacts"] = std::move(artifacts);
  run["results"] = std::move(results);
  Json json;
  json["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  json["version"] = "2.1.0";
  json["runs"] = {std::move(run)};
  return Dump(json);
}

std::string ToMarkdown(const Diagnosis& d,
                       const std::vector<std::string>& inputs) {
  std::string out = EscapeMarkdown(Headline(d)) + "\n\n" +
                    EscapeMarkdown(LookedText(d)) + "\n";
  if (!d.findings.empty()) {
    out +=
        "\n| # | finding | gain | share | kind | confidence |\n"
        "|--:|---|--:|--:|---|---|\n";
    size_t rank = 0;
    for (const Finding& f : d.findings) {
      out += fmt::format("| {} | {} | {} | {:.1f} % | {} | {} |\n", ++rank,
                         EscapeMarkdown(f.rule->title), HumanTime(f.gain_ns),
                         100 * f.share, f.gain_kind(),
                         ConfidenceName(f.confidence));
    }
  }
  size_t rank = 0;
  for (const Finding& f : d.findings) {
    out += fmt::format("\n**{}. {}** ({})\n\n{}\n\n", ++rank,
                       EscapeMarkdown(f.rule->title), MarkdownCode(f.id),
                       EscapeMarkdown(f.what));
    for (const Fix* const fix : f.fixes) {
      out += fmt::format("- Fix ({}, {}): {}\n", fix->layer, fix->effort,
                         EscapeMarkdown(fix->text));
    }
    out += fmt::format(
        "- Confidence: {}, {}\n- Gone when {} says so{}\n",
        ConfidenceName(f.confidence), EscapeMarkdown(f.reason),
        MarkdownCode(VerifyCommand(*f.rule, inputs.empty() ? "" : inputs[0])),
        f.rule->verify.empty() ? "" : ": " + EscapeMarkdown(f.rule->verify));
    if (!f.cannot_tell.empty())
      out += "- Cannot tell: " + EscapeMarkdown(f.cannot_tell) + "\n";
  }
  Cut(out);
  return out;
}

std::string Explain(const Rule& rule) {
  std::string out = fmt::format("{} - {}\n\n", rule.id, rule.title);
  const auto add = [&](std::string_view head, const std::string& text) {
    if (!text.empty()) out += fmt::format("{}\n{}\n\n", head, text);
  };
  const auto list = [](const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items)
      text += (text.empty() ? "  " : "\n  ") + item;
    return text;
  };
  add("Claims", rule.claims);
  add("Speaks when", "  " + rule.when);
  std::string params;
  for (const auto& [name, value] : rule.params) {
    params += fmt::format("{}  :{} = {}", params.empty() ? "" : "\n", name,
                          FormatDouble(value));
  }
  add("Parameters (--param RULE.NAME=VALUE)", params);
  add("Why these", rule.why.empty() ? "" : "  " + rule.why);
  add("Gain", fmt::format("  {} ({}), owner rank {}", rule.gain, rule.gain_kind,
                          rule.owner_rank));
  add("Needs", list(rule.needs));
  add("Leaves out", list(rule.excludes));
  std::string sure;
  for (const ConfidenceCase& one : rule.confidence) {
    sure += fmt::format(
        "{}  {}{}: {}", sure.empty() ? "" : "\n", ConfidenceName(one.is),
        one.condition.empty() ? "" : " if " + one.condition, one.reason);
  }
  add("Confidence", sure);
  std::string caps;
  for (const Cap& cap : rule.caps) {
    caps += caps.empty() ? "  " : "\n  ";
    for (const std::string& glob : cap.rules) caps += glob + " ";
    for (const std::string& need : cap.needs)
      caps += "rules that need " + need + " ";
    caps += fmt::format("at most {}: {}", ConfidenceName(cap.at), cap.reason);
  }
  add("Leaves of others", caps);
  std::string fixes;
  for (const Fix& fix : rule.fixes) {
    fixes += fmt::format(
        "{}  [{}, {}]{} {}", fixes.empty() ? "" : "\n", fix.layer, fix.effort,
        fix.condition.empty() ? "" : " if " + fix.condition + ":", fix.text);
  }
  add("Fix", fixes);
  add("Gone when", rule.verify.empty() ? "" : "  " + rule.verify);
  add("Finds", list(rule.finds));
  add("Stays silent on", list(rule.silent));
  out += fmt::format("{}:{}\n", rule.file, rule.line);
  return out;
}

}  // namespace lamina::findings
