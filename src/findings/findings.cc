// SPDX-License-Identifier: Apache-2.0
//
// The run of all rules over one trace.
//
// Why it is longer than 250 lines: one class walks from claims to ranked
// findings, and its steps share the facts of the trace.
#include "findings/findings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <fmt/core.h>
#include <malloc.h>
#include <numeric>
#include <tuple>

#include "analysis/common/cost_view.h"
#include "analysis/common/device_advice.h"
#include "analysis/host/activities.h"
#include "analysis/host/idle.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/text.h"
#include "findings/claims_ahead.h"
#include "findings/text.h"
#include "findings/what_if.h"
#include "findings/world.h"
#include "sql/database.h"
#include "sql/table_def.h"

namespace lamina::findings {
namespace {

using Claimed = sql::Collected;  // rows of the claims of a rule

constexpr double kLinkedShare = 0.9;
// A device that works less than this share of the busiest one's time is not
// what the run is about: nobody keeps it idle.
constexpr double kUsedShare = 0.01;
constexpr size_t kTop = 20;
// "{detail_share}": how much of the time has the name of the column detail.
constexpr std::string_view kShareOf = "_share";
constexpr int kMostThreads = 8;

// 31 bits that tell anchors apart and never change (FNV-1a, folded). In hex it
// begins with a digit: "x@word" is a user at a host for those that redact.
uint32_t HashOf(std::string_view text) {
  const uint64_t h = Fnv1a(text);
  return static_cast<uint32_t>((h ^ (h >> 32)) & 0x7fffffff);
}

// Lower case, numbers as *: steps, layers and sizes do not enter an id.
std::string AnchorText(std::string_view text) {
  std::string out;
  bool number = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && number) continue;
    number = digit;
    out += digit                  ? '*'
           : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a')
                                  : c;
  }
  return out;
}

// The whole text of a cell, as a key.
std::string KeyText(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "";
    case Value::Kind::kText:
      return std::string(value.text());
    case Value::Kind::kReal:
      return FormatDouble(value.real());
    default:
      return std::to_string(value.integer());
  }
}

}  // namespace

std::string_view Finding::gain_kind() const {
  const bool wide = 10 * (gain_high_ns - gain_low_ns) >= gain_ns;
  return rule->gain_kind == "measured" && gain_ns > 0 && wide
             ? std::string_view("estimate")
             : std::string_view(rule->gain_kind);
}

bool Before(const Finding& a, const Finding& b) {
  const bool first = a.severity == "blocker";
  const bool second = b.severity == "blocker";
  if (first != second) return first;
  if (a.gain_ns != b.gain_ns) return a.gain_ns > b.gain_ns;
  const bool x = a.severity == "medium", y = b.severity == "medium";
  if (x != y) return x;
  const int64_t more = std::max(a.open_ns, a.gain_after_ns);
  const int64_t than = std::max(b.open_ns, b.gain_after_ns);
  return more != than ? more > than : a.id < b.id;
}

namespace {

class Run {
 public:
  Run(std::shared_ptr<engine::Session> session,
      std::shared_ptr<const RuleSet> rules, const Options& options)
      : session_(std::move(session)), options_(options) {
    out_.rules = std::move(rules);
  }

  Run(const World& world, std::shared_ptr<const RuleSet> rules,
      const Options& options)
      : world_(&world), options_(options) {
    out_.rules = std::move(rules);
  }

  Result<Diagnosis> All() {
    {
      const ScopedStage stage(options_.times, "  tables");
      LAMINA_TRY(world_ != nullptr ? OpenWorld() : Open());
    }
    RunRules();
    // Nothing is asked any more; what-ifs need room for times of all nodes.
    database_.reset();
    gap_before_ = {};
    ::malloc_trim(0);
    {
      const ScopedStage stage(options_.times, "  rank");
      LAMINA_TRY(Rank());
    }
    out_.owned_idle_ns = ledger_->owned_idle_ns();
    for (const Refusal& refusal : ledger_->refusals()) {
      const auto& all = out_.rules->rules();
      // What takes the rest loses to everybody.
      if (!all[refusal.loser].open.empty()) continue;
      out_.overlaps.push_back(
          {{all[refusal.winner].id, all[refusal.loser].id}, refusal.ns});
    }
    return std::move(out_);
  }

 private:
  void RunRules() {
    const auto& rules = out_.rules->rules();
    std::vector<uint32_t> asked;  // rules
    for (uint32_t r = 0; r < rules.size(); ++r) {
      if (world_ != nullptr && !rules[r].over_ranks) continue;
      RuleRun& run = out_.runs.emplace_back();
      run.rule = &rules[r];
      if (run.rule->over_ranks && !has_["communication"]) {
        run.reason = "no communication between ranks";
      } else if (const Need* missing = MissingNeed(*run.rule)) {
        run.state = State::kAbstained;
        run.reason = missing->reason;
        // Options of a profiler that did not write this help nobody.
        if (facts_["kineto"] != "0" ||
            missing->hint.find('=') == std::string::npos)
          run.hint = missing->hint;
      } else {
        asked.push_back(r);
      }
    }
    const auto ask = [&](sql::Database& database, size_t i) {
      const Rule& rule = rules[asked[i]];
      return AskClaims(database, rule, QueryFor(rule));
    };
    const auto run_of = [&](uint32_t rule) -> RuleRun& {
      return *std::ranges::find(out_.runs, &rules[rule], &RuleRun::rule);
    };
    ClaimsAhead ahead(asked.size(), ask);
    RunWorkers(Threads(), [&](int worker) {
      if (worker != 0) return ahead.Help([&] { return OpenTables(); });
      for (size_t i = 0; i < asked.size(); ++i) {
        RuleRun& run = run_of(asked[i]);
        auto claims = ahead.Take(i, *database_);
        const auto start = std::chrono::steady_clock::now();
        const double seconds = claims ? claims->seconds : 0;
        const Status status = claims ? OneRule(asked[i], *claims, run)
                                     : Status(Fail(std::move(claims).error()));
        if (!status) {
          run.state = State::kFailed;
          run.reason = status.error().what;
        }
        if (options_.times != nullptr) {
          const std::chrono::duration<double> own =
              std::chrono::steady_clock::now() - start;
          options_.times->Add("  " + run.rule->id, seconds + own.count());
        }
      }
      ahead.End();
    });
    LookForStop();  // what was stopped is no rule that failed
  }

  int Threads() const {
    if (world_ != nullptr ||
        model_->trace().slices.size() < options_.slices_for_threads)
      return 1;
    const int threads = session_->threads();
    return std::min(threads > 0 ? threads : DefaultThreads(), kMostThreads);
  }

  Result<std::unique_ptr<sql::Database>> OpenTables() const {
    sql::DatabaseOptions open;
    open.listed = false;
    sql::SchemaInput input;
    input.sources = {session_};
    return sql::Database::Open({input}, open);
  }

  Status Open() {
    const sql::Asked asked{*session_, {}};
    LAMINA_ASSIGN(model_, asked.Get<analysis::host::HostModel>());
    LAMINA_ASSIGN(idle_, asked.Get<analysis::host::Idle>());
    LAMINA_ASSIGN(database_, OpenTables());
    const auto& model = *model_;
    std::vector<IntervalSet> idle(model.devices().size());
    for (const auto& device : model.devices())
      out_.device_names.push_back(device.name);
    for (const auto& gap : idle_->gaps) {
      idle[gap.device].AppendSorted(
          {gap.interval.start_ns - model.trace().first_ns,
           gap.interval.end_ns - model.trace().first_ns});
    }
    for (const auto& sum : idle_->devices) {
      out_.window_ns = std::max(out_.window_ns, sum.span_ns);
      out_.idle_ns += sum.idle_ns();
      out_.busy_ns += sum.busy_ns;
    }
    int64_t busiest_ns = 0;
    for (const auto& sum : idle_->devices)
      busiest_ns = std::max(busiest_ns, sum.busy_ns);
    for (const auto& sum : idle_->devices) {
      used_.push_back(static_cast<double>(sum.busy_ns) >=
                      kUsedShare * static_cast<double>(busiest_ns));
    }
    if (model.devices().empty()) {
      // Without a device the window is that of the main thread.
      LAMINA_ASSIGN(const auto* const main,
                    asked.Get<analysis::host::MainThread>());
      if (main->window.length_ns() > 0) {
        out_.device_names.emplace_back("host");
        used_.push_back(true);
        out_.window_ns = main->window.length_ns();
        idle.emplace_back().AppendSorted(
            {main->window.start_ns - model.trace().first_ns,
             main->window.end_ns - model.trace().first_ns});
      }
    }
    LAMINA_ASSIGN(Ledger::EventTimes own_ns, OwnTimes());
    taken_ = options_.taken;
    for (const auto& [uid, ns] : taken_) {
      const auto it = own_ns.find(uid);
      if (it != own_ns.end())
        it->second = std::max<int64_t>(0, it->second - ns);
    }
    ledger_.emplace(std::move(idle), std::move(own_ns));
    return Facts();
  }

  // What each device event has to give, without a query over all of them.
  Result<Ledger::EventTimes> OwnTimes() {
    const sql::TableDef* const table = sql::FindTable("device_events");
    const auto column = [&](std::string_view name) {
      const auto at =
          std::ranges::find(table->columns, name, &sql::ColumnDef::name);
      return static_cast<int>(at - table->columns.begin());
    };
    const int uid = column("uid"), own = column("own_ns");
    LAMINA_ASSIGN(const auto rows, sql::OpenRows(*session_, *table));
    LAMINA_TRY(rows->Prepare(uint64_t{1} << uid | uint64_t{1} << own));
    Ledger::EventTimes out;
    out.reserve(rows->size());
    for (size_t row = 0; row < rows->size(); ++row)
      out[rows->Cell(row, uid).integer()] = rows->Cell(row, own).integer();
    return out;
  }

  Status OpenWorld() {
    sql::DatabaseOptions open;
    open.allow_temp = true;
    open.listed = false;
    LAMINA_ASSIGN(database_, sql::Database::Open({}, open));
    for (const Table& table : world_->tables.tables)
      LAMINA_TRY(database_->Put(table));
    out_.device_names = world_->device_names;
    out_.window_ns = world_->window_ns;
    out_.busy_ns = world_->busy_ns;
    const size_t ranks = out_.device_names.size();
    ledger_.emplace(std::vector<IntervalSet>(ranks), world_->own_ns);
    facts_ = world_->facts;
    for (const char* name :
         {"torch", "jax", "amd", "cuda", "kineto", "python", "captures"})
      facts_.try_emplace(name, "0");
    facts_["window_ns"] = std::to_string(out_.window_ns);
    facts_["total_ns"] =
        std::to_string(out_.window_ns * static_cast<int64_t>(ranks));
    for (const Need& need : KnownNeeds()) has_[std::string(need.name)] = false;
    has_["communication"] = true;
    has_["device_events"] = true;
    has_["ranks"] = ranks > 1;
    return {};
  }

  // What all rules may use as :name.
  Status Facts() {
    const auto set = [&](const std::string& name, double value) {
      facts_[name] = FormatDouble(value);
    };
    const auto set_int = [&](const std::string& name, int64_t value) {
      facts_[name] = std::to_string(value);
    };
    const double devices =
        std::max<double>(1, static_cast<double>(out_.device_names.size()));
    set_int("window_ns", out_.window_ns);
    set_int("total_ns", out_.window_ns * static_cast<int64_t>(devices));
    set_int("idle_ns", out_.idle_ns);
    set_int("busy_ns", out_.busy_ns);
    set("devices", devices);
    LAMINA_ASSIGN(const auto tables, database_->Run(R"(
      SELECT key, number FROM recording WHERE number IS NOT NULL;
      SELECT count(*), coalesce(sum(steady), 0),
        coalesce(cast(percentile(period_ns, 50) AS INTEGER), 0),
        coalesce(sum(CASE WHEN steady THEN period_ns END), 0)
        FROM step_flags;
      SELECT coalesce(max(sm_count), 0) FROM device_info;
      SELECT coalesce(sum(dur_ns), 0) FROM idle_parts
        WHERE cause = 'unlinked')"));
    std::map<std::string, int64_t> recorded;
    for (size_t i = 0; i < tables[0].rows(); ++i)
      recorded[std::string(tables[0].At(i, 0).text())] =
          tables[0].At(i, 1).integer();
    const int64_t steps = tables[1].At(0, 0).integer();
    const int64_t steady = tables[1].At(0, 1).integer();
    set_int("steps", steps);
    set_int("steady_steps", steady);
    set_int("step_ns", tables[1].At(0, 2).integer());
    set_int("steady_ns", tables[1].At(0, 3).integer());
    const auto share_of_kernels = [&](const char* key) {
      const auto all = static_cast<double>(recorded["kernel_time_ns"]);
      return all == 0 ? 0 : static_cast<double>(recorded[key]) / all;
    };
    LAMINA_TRY(Producers());
    set("linked_share", share_of_kernels("linked_time_ns"));
    set_int("python_frames", recorded["python_frames"]);
    LAMINA_ASSIGN(const cost::Device* const device, session_->input().Device());
    const double recorded_sms =
        static_cast<double>(tables[2].At(0, 0).integer());
    set("sms", recorded_sms > 0 ? recorded_sms
               : device         ? device->multiprocessors
                                : 0);
    set("bytes_per_ns", device ? device->bytes_per_s / 1e9 : 0);
    cost::Links links;
    if (device) {
      LAMINA_ASSIGN(links, out_.rules->LinksOf(device->name));
    }
    set("fabric_bytes_per_ns", links.fabric_bytes_per_s / 1e9);
    set("pcie_bytes_per_ns", links.pcie_bytes_per_s / 1e9);
    const auto peak = [&](std::string_view spec) {
      return device ? device->Peak(spec).value_or(0) / 1e9 : 0.0;
    };
    set("bf16_flops_per_ns", peak("matrix_bf16"));
    set("half_flops_per_ns",
        std::max(peak("matrix_bf16"), peak("matrix_fp16")));
    set("tf32_flops_per_ns", peak("matrix_tf32"));
    has_["device_events"] = recorded["device_events"] > 0;
    has_["host_events"] = recorded["host_events"] > 0;
    // What is linked to an op alone says nothing of when it was launched. And
    // a few copies without a call may end all of the idle time.
    const int64_t unlinked_ns = tables[3].At(0, 0).integer();
    const bool blind =
        2 * unlinked_ns > out_.idle_ns &&
        static_cast<double>(unlinked_ns) >=
            options_.min_share * static_cast<double>(out_.window_ns) * devices;
    has_["launches"] = recorded["host_events"] > 0 && !blind &&
                       share_of_kernels("called_time_ns") >= kLinkedShare;
    has_["steps"] = steps > 0;
    has_["three_steps"] = steady >= 3;
    has_["shapes"] = recorded["record_shapes"] > 0;
    has_["stacks"] = recorded["with_stack"] > 0;
    has_["device_spec"] = device != nullptr;
    has_["memory_series"] = recorded["profile_memory"] > 0;
    LAMINA_ASSIGN(
        const auto grid,
        database_->Run("SELECT count(*) FROM (SELECT 1 FROM device_events "
                       "WHERE grid_blocks > 0 LIMIT 1)"));
    has_["grid"] = grid[0].At(0, 0).integer() > 0;
    has_["ranks"] = false;
    LAMINA_ASSIGN(
        const auto communication,
        database_->Run("SELECT count(*) FROM (SELECT 1 FROM device_events "
                       "WHERE bucket = 'communication' LIMIT 1)"));
    has_["communication"] = communication[0].At(0, 0).integer() > 0;
    return {};
  }

  // Whether graphs are captured in the recording, as names of calls say.
  bool Captures() const {
    const trace::Trace& trace = session_->trace();
    for (uint32_t i = 0; i < trace.strings.size(); ++i) {
      const std::string_view name = trace.Text(StringId(i));
      if (name.starts_with("cudaStreamBeginCapture") ||
          name.starts_with("cuStreamBeginCapture") ||
          name.starts_with("hipStreamBeginCapture"))
        return true;
    }
    return false;
  }

  // Who wrote and ran this: a fix is told to those who have it.
  Status Producers() {
    LAMINA_ASSIGN(const auto found, database_->Run(R"(
      SELECT EXISTS (SELECT 1 FROM op WHERE name LIKE 'aten::%')
          OR EXISTS (SELECT 1 FROM device_events WHERE name LIKE '%at::native%')
          OR EXISTS (SELECT 1 FROM python_frame WHERE name LIKE 'torch/%'),
        EXISTS (SELECT 1 FROM recording WHERE key = 'format' AND text = 'xplane')
          OR EXISTS (SELECT 1 FROM host_events WHERE name LIKE '%jax/_src%' OR name LIKE 'PjitFunction%'),
        EXISTS (SELECT 1 FROM recording WHERE key = 'format' AND text IN ('rocprof', 'rocpd', 'rpd'))
          OR EXISTS (SELECT 1 FROM api_call WHERE name LIKE 'hip%')
          OR EXISTS (SELECT 1 FROM device_info WHERE name LIKE '%AMD%' OR name LIKE 'MI_%'),
        EXISTS (SELECT 1 FROM recording WHERE key = 'format' AND text = 'nsys')
          OR EXISTS (SELECT 1 FROM api_call WHERE name GLOB 'cuda[A-Z]*' OR name GLOB 'cu[A-Z]*')
          OR EXISTS (SELECT 1 FROM device_info WHERE compute_major > 0 OR name REGEXP '(?i)nvidia|tesla|quadro|geforce|titan'),
        EXISTS (SELECT 1 FROM recording WHERE key = 'format' AND text = 'kineto'),
        EXISTS (SELECT 1 FROM python_frame) OR EXISTS (SELECT 1 FROM annotation WHERE name REGEXP '\.py[(:][0-9]'))"));
    const auto is = [&](size_t column) {
      return found[0].At(0, column).integer();
    };
    const int64_t torch = is(0), jax = torch == 0 ? is(1) : 0;
    facts_["torch"] = std::to_string(torch);
    facts_["jax"] = std::to_string(jax);
    facts_["amd"] = std::to_string(is(2));
    const bool cuda = is(2) == 0 && is(3) != 0 && IsOfGpu(session_->trace());
    facts_["cuda"] = cuda ? "1" : "0";
    facts_["captures"] = Captures() ? "1" : "0";
    facts_["kineto"] = std::to_string(torch != 0 && is(4) != 0);
    facts_["python"] =
        std::to_string(int64_t{torch != 0 || jax != 0 || is(5) != 0});
    return {};
  }

  // The first thing that a rule needs and the trace lacks; null: nothing.
  const Need* MissingNeed(const Rule& rule) const {
    const auto lacks = [&](std::string_view name) -> const Need* {
      if (has_.find(std::string(name))->second) return nullptr;
      for (const Need& need : KnownNeeds()) {
        if (need.name == name) return &need;
      }
      return nullptr;
    };
    if (const Need* none = lacks("device_events");
        none != nullptr && !rule.without_device)
      return none;
    for (const std::string& name : rule.needs) {
      if (const Need* need = lacks(name)) return need;
    }
    return nullptr;
  }

  sql::QueryOptions QueryFor(const Rule& rule) const {
    sql::QueryOptions query;
    query.stop = stop_;
    for (const auto& [name, value] : facts_)
      query.params[name] = sql::ParameterOf(value);
    for (const auto& [name, value] : rule.params)
      query.params[name] = sql::ParameterOf(FormatDouble(value));
    const auto own = options_.params.find(rule.id);
    if (own != options_.params.end()) {
      for (const auto& [name, value] : own->second)
        query.params[name] = sql::ParameterOf(FormatDouble(value));
    }
    return query;
  }

  Status OneRule(uint32_t number, const Claims& claimed, RuleRun& run) {
    const Rule& rule = *run.rule;
    if (claimed.abstains != nullptr) {
      run.state = State::kAbstained;
      run.reason = claimed.abstains->reason;
      run.hint = claimed.abstains->hint;
      return {};
    }
    const std::shared_ptr<const Claimed>& rows = claimed.rows;
    if (rows->size() == 0) {
      run.reason = "nothing of the kind";
      return {};
    }
    LAMINA_ASSIGN(std::vector<Claim> claims, ClaimsOf(rule, *rows));
    LAMINA_ASSIGN(const std::vector<size_t> by, ColumnsOfGroup(rule, *rows));
    const std::vector<size_t> row_of = AddGaps(rule, claims);
    ledger_->Offer(claims);
    const auto groups =
        std::make_shared<Groups>(GroupsOf(by, *rows, claims, row_of));
    LAMINA_ASSIGN(const Table table, Ask(rule, rows, groups, QueryFor(rule)));
    std::vector<bool> spoken(groups->all.size(), false);
    const size_t first = out_.findings.size();
    int64_t largest = 0;
    for (size_t i = 0; i < table.rows(); ++i) {
      const Value when = table.At(i, "when_");
      largest = std::max(largest, table.At(i, "owned_ns").integer());
      if (when.null() || when.real() == 0) continue;
      const auto group = static_cast<uint32_t>(table.At(i, "group_").integer());
      const Group& of = groups->all[group];
      const auto share_of = [&](std::string_view column) -> Value {
        const std::vector<int> asked = Asked(rule, *rows);
        for (size_t c = 0; c < asked.size(); ++c) {
          if (rows->names()[static_cast<size_t>(asked[c])] == column)
            return of.most[c].second;
        }
        return {};
      };
      AddFinding(rule, table, i, share_of);
      spoken[group] = true;
      group_of_.push_back(group);
    }
    if (out_.findings.size() == first) {
      run.reason = fmt::format("largest {} of {}", HumanTime(largest),
                               HumanTime(out_.window_ns));
      return {};
    }
    // Only what speaks owns its time.
    std::vector<Claim> granted;
    std::vector<uint32_t> granted_of;
    for (size_t i = 0; i < claims.size(); ++i) {
      const uint32_t group = groups->of_row[row_of[i]];
      if (!spoken[group]) continue;
      granted.push_back(claims[i]);
      granted_of.push_back(group);
    }
    ledger_->Grant(number, granted);
    if (world_ != nullptr) {
      for (const Claim& claim : granted) taken_[claim.uid] += claim.owned_ns;
    }
    run.state = State::kFound;
    for (const Claim& claim : granted) run.owned_ns += claim.owned_ns;
    run.reason = HumanTime(run.owned_ns) + " owned";
    for (size_t f = first; f < out_.findings.size(); ++f)
      GiveClaims(out_.findings[f], granted, granted_of, group_of_[f]);
    return {};
  }

  static Result<size_t> ColumnOf(const Claimed& rows, std::string_view column) {
    const auto at = rows.Find(column);
    if (at) return *at;
    return Fail(UsageError(fmt::format("claims have no column {}", column)));
  }

  static Result<std::vector<size_t>> ColumnsOfGroup(const Rule& rule,
                                                    const Claimed& rows) {
    std::vector<size_t> columns;
    for (const std::string& name : rule.group) {
      LAMINA_ASSIGN(const size_t column, ColumnOf(rows, name));
      columns.push_back(column);
    }
    return columns;
  }

  Result<std::vector<Claim>> ClaimsOf(const Rule& rule, const Claimed& rows) {
    const auto need = [&](std::string_view column) {
      return ColumnOf(rows, column);
    };
    std::vector<Claim> claims(rows.size());
    if (rule.kind == ClaimKind::kNone) return claims;
    LAMINA_ASSIGN(const size_t dur, need("dur_ns"));
    LAMINA_ASSIGN(const size_t start, need("start_ns"));
    const auto device = rows.Find("device");
    const auto uid = rows.Find("uid");
    if (rule.kind == ClaimKind::kIdle) {
      LAMINA_TRY(need("device").map([](size_t) {}));
    } else {
      LAMINA_TRY(need("uid").map([](size_t) {}));
    }
    TextMap<uint32_t> device_of;
    for (size_t i = 0; i < rows.size(); ++i) {
      Claim& claim = claims[i];
      // A rate may be a fraction; time is whole nanoseconds.
      claim.dur_ns = static_cast<int64_t>(rows.At(i, dur).real());
      claim.start_ns = rows.At(i, start).integer();
      if (rule.kind == ClaimKind::kBusy && !rows.At(i, *uid).null()) {
        claim.uid = rows.At(i, *uid).integer();
        // What rules over ranks claim of it is the same time.
        const auto taken = taken_.find(claim.uid);
        if (taken != taken_.end())
          claim.dur_ns = std::max<int64_t>(0, claim.dur_ns - taken->second);
        continue;
      }
      if (!device) continue;
      const auto& names = out_.device_names;
      if (device_of.empty()) {
        for (uint32_t d = 0; d < names.size(); ++d)
          device_of.try_emplace(names[d], d);
      }
      const auto known = device_of.find(rows.At(i, *device).text());
      claim.device = known == device_of.end()
                         ? static_cast<uint32_t>(names.size())
                         : known->second;
      if (claim.device < used_.size() && !used_[claim.device]) claim.dur_ns = 0;
    }
    return claims;
  }

  // Puts the spacing before whole events behind the claims. Returns the row of
  // each claim.
  std::vector<size_t> AddGaps(const Rule& rule, std::vector<Claim>& claims) {
    std::vector<size_t> row_of(claims.size());
    for (size_t i = 0; i < claims.size(); ++i) row_of[i] = i;
    if (!rule.with_gaps) return row_of;
    FindGaps();
    const size_t rows = claims.size();
    for (size_t i = 0; i < rows; ++i) {
      const auto found = gap_before_.find(claims[i].uid);
      if (found == gap_before_.end()) continue;
      claims.push_back(found->second);
      row_of.push_back(i);
    }
    return row_of;
  }

  // Spacing between kernels by the event behind it.
  void FindGaps() {
    if (!gap_before_.empty()) return;
    namespace host = analysis::host;
    const auto& trace = model_->trace();
    for (const host::Part& part : idle_->parts) {
      if (part.cause != host::Cause::kKernelWait &&
          part.cause != host::Cause::kGraph)
        continue;
      const host::Gap& gap = idle_->gaps[part.gap];
      gap_before_[trace.Uid(gap.next)] = {
          gap.device, part.start_ns - trace.first_ns, part.length_ns, -1, 0};
    }
  }

  static bool IsTime(std::string_view column) {
    return column == "claimed_ns" || column == "owned_ns";
  }

  // Whether anything of the rule but its claims names a column.
  static bool Names(const Rule& rule, const std::string& column) {
    const auto says = [&](std::string_view text) {
      for (size_t at = text.find(column); at != text.npos;
           at = text.find(column, at + 1)) {
        const size_t end = at + column.size();
        if ((at == 0 || !IsWordCharacter(text[at - 1])) &&
            (end == text.size() || !IsWordCharacter(text[end])))
          return true;
      }
      return false;
    };
    const auto among = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), column) != names.end();
    };
    return among(rule.group) || among(rule.anchor) || says(rule.when) ||
           says(rule.gain) || says(rule.low) || says(rule.high) ||
           says(rule.open) || says(rule.what) || says(rule.cannot_tell) ||
           std::any_of(rule.totals.begin(), rule.totals.end(),
                       [&](const auto& total) { return says(total.second); }) ||
           std::any_of(rule.confidence.begin(), rule.confidence.end(),
                       [&](const auto& one) { return says(one.condition); }) ||
           std::any_of(rule.fixes.begin(), rule.fixes.end(),
                       [&](const Fix& fix) { return says(fix.condition); });
  }

  // Rows with the same values of what the rule groups by.
  struct Group {
    size_t claims = 0, best = 0;  // rows; the one that would own most
    int64_t claimed_ns = 0, owned_ns = 0;
    // Of a column of names the row with what most of the time has, and its
    // share: one number is for many, so one name must be of most of them.
    std::vector<std::pair<size_t, double>> most;  // by asked column
  };
  struct Groups {
    std::vector<Group> all;
    std::vector<uint32_t> of_row;
    std::vector<int64_t> claimed_ns, owned_ns;  // by row
  };

  static Groups GroupsOf(const std::vector<size_t>& columns,
                         const Claimed& rows, const std::vector<Claim>& claims,
                         const std::vector<size_t>& row_of) {
    Groups groups;
    groups.of_row.assign(rows.size(), 0);
    groups.claimed_ns.assign(rows.size(), 0);
    groups.owned_ns.assign(rows.size(), 0);
    for (size_t i = 0; i < claims.size(); ++i) {
      groups.claimed_ns[row_of[i]] += claims[i].dur_ns;
      groups.owned_ns[row_of[i]] += claims[i].owned_ns;
    }
    TextMap<uint32_t> known;
    std::string key, last;
    uint32_t number = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      key.clear();
      for (const size_t column : columns) {
        const auto code = rows.CodeOf(i, column);
        key += code ? '+' : '-';
        const auto bytes =
            std::bit_cast<std::array<char, sizeof(int64_t)>>(code.value_or(0));
        key.append(bytes.data(), bytes.size());
      }
      // Rows of a group often follow each other.
      if (groups.all.empty() || key != last) {
        const auto [it, is_new] =
            known.try_emplace(key, static_cast<uint32_t>(known.size()));
        if (is_new) groups.all.push_back({0, i, 0, 0});
        number = it->second;
        std::swap(key, last);
      }
      groups.of_row[i] = number;
      Group& sums = groups.all[number];
      ++sums.claims;
      sums.claimed_ns += groups.claimed_ns[i];
      sums.owned_ns += groups.owned_ns[i];
      if (groups.owned_ns[i] > groups.owned_ns[sums.best]) sums.best = i;
    }
    return groups;
  }

  // Columns of the claims that anything of the rule names, in their order.
  static std::vector<int> Asked(const Rule& rule, const Claimed& rows) {
    std::vector<int> asked;
    for (size_t c = 0; c < rows.names().size(); ++c) {
      if (!IsTime(rows.names()[c]) && Names(rule, rows.names()[c]))
        asked.push_back(static_cast<int>(c));
    }
    return asked;
  }

  // Rows of claims with what they claim and would own, by group: the group,
  // both times, then columns of the claims.
  struct RowsOfGroups {
    std::shared_ptr<const Claimed> rows;
    std::shared_ptr<const Groups> groups;
    std::vector<int> asked;
  };
  class ClaimRows : public sql::Rows, RowsOfGroups {
   public:
    explicit ClaimRows(RowsOfGroups all) : RowsOfGroups(std::move(all)) {
      if (groups->all.size() == 1) return;
      std::vector<size_t> next(groups->all.size(), 0);
      for (size_t g = 1; g < next.size(); ++g)
        next[g] = next[g - 1] + groups->all[g - 1].claims;
      order_.resize(rows->size());
      for (size_t i = 0; i < order_.size(); ++i)
        order_[next[groups->of_row[i]]++] = i;
    }
    size_t size() const override { return rows->size(); }
    Value Cell(size_t row, int column) const override {
      const size_t i = order_.empty() ? row : order_[row];
      if (column == 0) return groups->of_row[i];
      if (column == 1) return groups->claimed_ns[i];
      if (column == 2) return groups->owned_ns[i];
      return rows->Cell(i, asked[static_cast<size_t>(column) - 3]);
    }

   private:
    std::vector<size_t> order_;  // empty: as they are
  };
  // One row per group: as above with sums, how many claims there are, and
  // columns of the claim that would own most.
  class GroupRows : public sql::Rows, RowsOfGroups {
   public:
    explicit GroupRows(RowsOfGroups all) : RowsOfGroups(std::move(all)) {}
    size_t size() const override { return groups->all.size(); }
    Value Cell(size_t row, int column) const override {
      const Group& group = groups->all[row];
      if (column == 0) return row;
      if (column == 1) return group.claimed_ns;
      if (column == 2) return group.owned_ns;
      if (column == 3) return group.claims;
      const auto number = static_cast<size_t>(column) - 4;
      return rows->Cell(group.most[number].first, asked[number]);
    }
  };

  // Fills Group::most.
  static void FindMost(const Claimed& rows, const std::vector<int>& asked,
                       Groups& groups) {
    std::vector<absl::flat_hash_map<int64_t, std::pair<size_t, int64_t>>> sums(
        groups.all.size());
    for (const int column : asked) {
      for (auto& sum : sums) sum.clear();
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto code = rows.CodeOf(i, static_cast<size_t>(column));
        auto& sum = sums[groups.of_row[i]]
                        .try_emplace(code.value_or(INT64_MIN), i, 0)
                        .first->second;
        sum.second += groups.owned_ns[i];
      }
      for (size_t g = 0; g < groups.all.size(); ++g) {
        Group& group = groups.all[g];
        std::pair<size_t, int64_t> most{group.best, -1};
        for (const auto& [code, sum] : sums[g]) {
          // The order of a hash map must not decide anything.
          if (sum.second > most.second ||
              (sum.second == most.second && sum.first < most.first))
            most = sum;
        }
        const bool text =
            rows.At(group.best, static_cast<size_t>(column)).kind() ==
                Value::Kind::kText ||
            rows.At(most.first, static_cast<size_t>(column)).kind() ==
                Value::Kind::kText;
        group.most.emplace_back(text ? most.first : group.best,
                                group.owned_ns == 0
                                    ? 0.0
                                    : static_cast<double>(most.second) /
                                          static_cast<double>(group.owned_ns));
      }
    }
  }

  // The groups with their totals and all conditions of the rule over them.
  Result<Table> Ask(const Rule& rule,
                    const std::shared_ptr<const Claimed>& rows,
                    const std::shared_ptr<Groups>& groups,
                    const sql::QueryOptions& query) {
    const RowsOfGroups all{rows, groups, Asked(rule, *rows)};
    FindMost(*rows, all.asked, *groups);
    std::vector<std::string> names = {"group_", "claimed_ns", "owned_ns"};
    std::vector<std::string> sums = {"group_", "claimed_ns", "owned_ns",
                                     "claims"};
    for (const int c : all.asked) {
      names.push_back(rows->names()[static_cast<size_t>(c)]);
      sums.push_back(names.back());
    }
    database_->Show("claim", names, std::make_shared<ClaimRows>(all), 0);
    database_->Show("claim_group", sums, std::make_shared<GroupRows>(all));
    LAMINA_ASSIGN(auto found, database_->Run(GroupSql(rule, names), query));
    return std::move(found.front());
  }

  static std::string FixColumn(size_t i) { return fmt::format("fix{}_", i); }

  // `names`: columns of the table claim.
  static std::string GroupSql(const Rule& rule,
                              const std::vector<std::string>& names) {
    std::string sql = "WITH t AS (SELECT group_";
    for (const auto& [name, expression] : rule.totals)
      sql += ", (" + expression + ") AS " + name;
    // Also of one group: a total need not be an aggregate.
    sql += " FROM claim GROUP BY group_), g AS (SELECT p.group_";
    std::string list;
    for (const std::string& column : rule.group) {
      sql += ", p." + column;
      list += ", " + column;
    }
    sql += ", p.claimed_ns, p.owned_ns, p.claims";
    std::set<std::string> named(rule.group.begin(), rule.group.end());
    for (const auto& [name, expression] : rule.totals) {
      sql += ", t." + name;
      named.insert(name);
    }
    for (const std::string& name : names) {
      if (name == "group_" || IsTime(name) || !named.insert(name).second)
        continue;
      sql += fmt::format(", p.\"{}\"", name);
    }
    sql += rule.totals.empty() ? " FROM claim_group AS p"
                               : " FROM t JOIN claim_group AS p USING (group_)";
    sql += ") SELECT *, (" + rule.when + ") AS when_, (" + rule.gain +
           ") AS gain_";
    sql += ", (" + (rule.low.empty() ? "NULL" : rule.low) + ") AS low_";
    sql += ", (" + (rule.high.empty() ? "NULL" : rule.high) + ") AS high_";
    sql += ", (" + (rule.open.empty() ? "NULL" : rule.open) + ") AS open_";
    sql += ", CASE";
    for (size_t i = 0; i < rule.confidence.size(); ++i) {
      const std::string& condition = rule.confidence[i].condition;
      sql += fmt::format(" WHEN ({}) THEN {}",
                         condition.empty() ? "1" : condition, i);
    }
    sql += " END AS sure_";
    for (size_t i = 0; i < rule.fixes.size(); ++i) {
      const std::string& condition = rule.fixes[i].condition;
      sql += fmt::format(", ({}) AS {}", condition.empty() ? "1" : condition,
                         FixColumn(i));
    }
    return sql + " FROM g ORDER BY owned_ns DESC" + list;
  }

  // `share_of`: of the time, what has the name that stands in a column.
  template <class ShareOf>
  void AddFinding(const Rule& rule, const Table& table, size_t i,
                  const ShareOf& share_of) {
    Finding f;
    f.rule = &rule;
    const auto devices =
        std::max<int64_t>(1, static_cast<int64_t>(out_.device_names.size()));
    const auto time = [&](std::string_view column, int64_t missing) {
      const Value value = table.At(i, column);
      if (value.null()) return missing;
      return std::max<int64_t>(0, static_cast<int64_t>(value.real())) / devices;
    };
    const int64_t owned = table.At(i, "owned_ns").integer();
    // Who is late does not wait: the others gain more than the mean.
    const int64_t gaining =
        world_ != nullptr ? std::max<int64_t>(1, devices - 1) : devices;
    f.gain_ns = std::min(time("gain_", 0), owned / gaining);
    f.gain_low_ns = std::min(f.gain_ns, time("low_", f.gain_ns));
    f.gain_high_ns = std::max(f.gain_ns, time("high_", f.gain_ns));
    f.unbound_ns = f.gain_ns;
    f.open_ns = time("open_", 0);
    if (rule.kind != ClaimKind::kNone)
      f.open_ns = std::min(f.open_ns, owned / devices);
    f.owned_ns = owned;
    f.claims = static_cast<size_t>(table.At(i, "claims").integer());
    const Value sure = table.At(i, "sure_");
    const auto& one =
        rule.confidence[sure.null() ? rule.confidence.size() - 1
                                    : static_cast<size_t>(sure.integer())];
    f.confidence = rule.proven ? one.is : Confidence::kHint;
    f.reason = one.reason;
    for (size_t fix = 0; fix < rule.fixes.size(); ++fix) {
      const Value fits = table.At(i, FixColumn(fix));
      if (!fits.null() && fits.real() != 0) f.fixes.push_back(&rule.fixes[fix]);
    }
    for (const std::string& column : rule.anchor) {
      if (!f.anchor.empty()) f.anchor += '|';
      f.anchor += AnchorText(KeyText(table.At(i, column)));
    }
    f.id = fmt::format("{}@{:08x}", rule.id, HashOf(f.anchor));
    SetShare(f);
    const auto value = [&](std::string_view name) -> Value {
      if (name == "owned") return owned / devices;
      if (name == "gain") return f.gain_ns;
      if (name == "share") return f.share;
      if (const auto at = table.schema().Find(name)) return table.At(i, *at);
      if (name.ends_with(kShareOf))
        return share_of(name.substr(0, name.size() - kShareOf.size()));
      if (const auto fact = facts_.find(std::string(name));
          fact != facts_.end()) {
        if (const auto whole = ParseInt(fact->second)) return Value(*whole);
        return Value(*ParseDouble(fact->second));
      }
      return {};
    };
    f.what = FillTemplate(rule.what, value);
    f.cannot_tell = FillTemplate(rule.cannot_tell, value);
    const std::string& todo = f.fixes[0]->todo;
    f.todo = FillTodo(todo.empty() ? rule.todo : todo, value, kMostTodo);
    for (const Column& column : table.schema().columns) {
      if (column.name.ends_with("_") || column.name == "start_ns") continue;
      f.values.emplace_back(column.name, KeyText(table.At(i, column.name)));
    }
    out_.findings.push_back(std::move(f));
  }

  void SetShare(Finding& f) const {
    f.share = out_.window_ns == 0 ? 0
                                  : static_cast<double>(f.gain_ns) /
                                        static_cast<double>(out_.window_ns);
    const std::string& fixed = f.rule->severity;
    f.severity = !fixed.empty()    ? fixed
                 : f.share >= 0.10 ? "high"
                 : f.share >= 0.03 ? "medium"
                 : f.share >= 0.01 ? "low"
                                   : "info";
  }

  // The work that ended the gap in which a span lies.
  std::optional<uint32_t> Ended(const Claim& claim) const {
    if (idle_ == nullptr) return std::nullopt;
    const auto& trace = model_->trace();
    const auto& gaps = idle_->gaps;
    const auto key = std::pair(claim.device, claim.start_ns + trace.first_ns);
    auto it = std::partition_point(
        gaps.begin(), gaps.end(), [&](const analysis::host::Gap& gap) {
          return std::pair(gap.device, gap.interval.start_ns) <= key;
        });
    if (it == gaps.begin() || (--it)->device != claim.device ||
        it->interval.end_ns <= key.second)
      return std::nullopt;
    return static_cast<uint32_t>(trace.Uid(it->next));
  }

  void GiveClaims(Finding& f, const std::vector<Claim>& claims,
                  const std::vector<uint32_t>& groups, uint32_t group) const {
    for (size_t i = 0; i < claims.size(); ++i) {
      if (groups[i] == group && claims[i].owned_ns > 0)
        f.spans.push_back(claims[i]);
    }
    const auto earlier = [](const Claim& a, const Claim& b) {
      return std::tie(a.device, a.start_ns, a.uid) <
             std::tie(b.device, b.start_ns, b.uid);
    };
    // Most rules read a table that is in this order.
    if (!std::is_sorted(f.spans.begin(), f.spans.end(), earlier))
      std::sort(f.spans.begin(), f.spans.end(), earlier);
    // The largest; of equal ones the first.
    std::vector<size_t> order(f.spans.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t most = std::min(order.size(), kTop);
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<ptrdiff_t>(most), order.end(),
                      [&](size_t a, size_t b) {
                        const int64_t x = f.spans[a].owned_ns;
                        const int64_t y = f.spans[b].owned_ns;
                        return x != y ? x > y : a < b;
                      });
    for (size_t i = 0; i < most; ++i) f.top.push_back(f.spans[order[i]]);
    for (const Claim& claim : f.top) {
      if (world_ != nullptr) break;  // numbers of rows, not of events
      const auto event = claim.uid >= 0
                             ? std::optional(static_cast<uint32_t>(claim.uid))
                             : Ended(claim);
      if (event &&
          std::find(f.events.begin(), f.events.end(), *event) == f.events.end())
        f.events.push_back(*event);
    }
  }

  // Where the events of the largest claims lie, and whether those are all of
  // their time.
  void PlaceEvents() {
    if (model_ == nullptr) return;
    absl::flat_hash_map<int64_t, std::vector<Claim*>> wanted;
    for (Finding& f : out_.findings) {
      for (Claim& claim : f.top) {
        if (claim.uid >= 0) wanted[claim.uid].push_back(&claim);
      }
    }
    if (wanted.empty()) return;
    const auto& trace = model_->trace();
    for (const trace::SliceId s : trace.device_slices()) {
      const auto found = wanted.find(trace.Uid(s));
      if (found == wanted.end()) continue;
      for (Claim* claim : found->second) {
        claim->device = model_->device(s);
        claim->whole = claim->dur_ns >= trace.Duration(s);
      }
    }
  }

  // Findings of one anchor are one; their order is decided here.
  Status Rank() {
    std::vector<Finding>& all = out_.findings;
    MergeAnchors(all);
    PlaceEvents();
    CapConfidence(out_.runs, all);
    std::map<std::string, int64_t> alone;
    if (world_ == nullptr) {
      LAMINA_ASSIGN(alone, AskPath(*session_, options_.min_share, out_));
    }
    for (Finding& f : all) SetShare(f);
    std::stable_sort(all.begin(), all.end(), Before);
    const auto least = static_cast<int64_t>(
        options_.min_share * static_cast<double>(out_.window_ns));
    for (Finding& f : all) {
      f.small = f.share < options_.min_share && f.severity != "blocker" &&
                f.severity != "medium" && f.rule->severity.empty() &&
                (f.rule->open.empty() || f.open_ns < least);
      for (const Suppression& s : options_.suppressions)
        f.suppressed |= s.Names(f) && f.share <= s.max_share;
      if (!options_.only.empty() && !options_.only.contains(f.rule->id))
        f.small = true;
    }
    if (world_ == nullptr) {
      LAMINA_TRY(AskPathInOrder(*session_, alone, least, out_));
    } else {
      for (Finding& f : all) f.gain_after_ns = f.gain_ns;
    }
    std::stable_sort(all.begin(), all.end(), Before);
    for (Finding& f : all) {
      const bool asked =
          options_.only.empty() || options_.only.contains(f.rule->id);
      if (f.small && asked && f.gain_after_ns >= std::max<int64_t>(1, least)) {
        f.small = false;
        f.what += fmt::format(
            " Now {} of it: the host or other work holds the run up; {} once "
            "the findings above are fixed.",
            f.gain_ns == 0 ? "nothing" : HumanTime(f.gain_ns),
            HumanTime(f.gain_after_ns));
      }
      if (f.suppressed) {
        ++out_.suppressed;
      } else if (f.small) {
        ++out_.small;
      } else {
        out_.together_ns += f.gain_ns;
      }
    }
    MarkSuppressed();
    if (!options_.all) {
      std::erase_if(all,
                    [](const Finding& f) { return f.small || f.suppressed; });
    }
    if (!options_.only.empty()) {
      std::erase_if(all, [&](const Finding& f) {
        return !options_.only.contains(f.rule->id);
      });
      std::erase_if(out_.runs, [&](const RuleRun& run) {
        return !options_.only.contains(run.rule->id);
      });
    }
    return {};
  }

  void MarkSuppressed() {
    for (RuleRun& run : out_.runs) {
      bool any = false, shown = false;
      for (const Finding& f : out_.findings) {
        if (f.rule != run.rule) continue;
        any |= f.suppressed;
        shown |= !f.suppressed;
      }
      if (any && !shown) run.state = State::kSuppressed;
    }
  }

  static void MergeAnchors(std::vector<Finding>& all) {
    std::vector<Finding> out;
    std::map<std::string, size_t> known;
    for (Finding& f : all) {
      const auto [it, is_new] = known.try_emplace(f.id, out.size());
      if (is_new) {
        out.push_back(std::move(f));
        continue;
      }
      Finding& into = out[it->second];
      into.gain_ns += f.gain_ns;
      into.gain_low_ns += f.gain_low_ns;
      into.gain_high_ns += f.gain_high_ns;
      into.unbound_ns += f.unbound_ns;
      into.open_ns += f.open_ns;
      into.owned_ns += f.owned_ns;
      into.claims += f.claims;
      into.spans.insert(into.spans.end(), f.spans.begin(), f.spans.end());
    }
    all = std::move(out);
  }

  std::shared_ptr<engine::Session> session_;
  const World* world_ = nullptr;  // in its place
  const Options& options_;
  const analysis::host::HostModel* model_ = nullptr;
  const analysis::host::Idle* idle_ = nullptr;
  // That of the caller: rules are asked on other threads, too.
  const StopFlag* const stop_ = StopOfThread();
  std::unique_ptr<sql::Database> database_;
  std::optional<Ledger> ledger_;
  std::vector<bool> used_;    // by device
  Ledger::EventTimes taken_;  // by rules over ranks
  std::map<std::string, std::string> facts_;
  std::map<std::string, bool> has_;
  absl::flat_hash_map<int64_t, Claim> gap_before_;  // by event
  std::vector<uint32_t> group_of_;  // of findings, while rules run
  Diagnosis out_;
};

}  // namespace

std::string_view StateName(State state) {
  switch (state) {
    case State::kFound:
      return "found";
    case State::kSilent:
      return "silent";
    case State::kAbstained:
      return "abstained";
    case State::kSuppressed:
      return "suppressed";
    case State::kFailed:
      return "failed";
  }
  return "";
}

bool IsOfGpu(const trace::Trace& trace) {
  return !analysis::HasCategory(trace, "npu_") &&
         !analysis::HasCategory(trace, "mtia_");
}

void CapConfidence(const std::vector<RuleRun>& runs,
                   std::vector<Finding>& findings) {
  for (const RuleRun& run : runs) {
    if (run.state != State::kFound && run.state != State::kSuppressed) continue;
    for (const Cap& cap : run.rule->caps) {
      for (Finding& f : findings) {
        if (f.confidence >= cap.at || !Caps(*run.rule, cap, *f.rule)) continue;
        f.confidence = cap.at;
        f.reason = cap.reason;
      }
    }
  }
}

Result<Diagnosis> Diagnose(std::shared_ptr<engine::Session> session,
                           std::shared_ptr<const RuleSet> rules,
                           const Options& options) {
  return Run(std::move(session), std::move(rules), options).All();
}

Diagnosis DiagnoseWorld(const World& world,
                        std::shared_ptr<const RuleSet> rules,
                        const Options& options) {
  auto all = Run(world, std::move(rules), options).All();
  LAMINA_CHECK(all.has_value());  // nothing is read
  return std::move(*all);
}

}  // namespace lamina::findings
