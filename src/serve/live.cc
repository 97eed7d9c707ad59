// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: three questions share how a body is read and how events
// are written.
#include "serve/live.h"

#include <algorithm>
#include <optional>

#include "base/escape.h"
#include "mcp/protocol/message.h"
#include "page/where.h"

namespace lamina::serve {
namespace {

using mcp::Json;
using page::DeviceRow;
using page::LiveEvents;

// Of readers, and as much since the first event.
constexpr int64_t kMostTime = 2 * trace::kMaxTimeNs;
constexpr size_t kMostColumns = 8000;
constexpr size_t kMostTileRows = 30'000;  // in all lanes of an answer
constexpr size_t kMostTileCells = 200'000;
constexpr size_t kMostFound = 1000;
constexpr size_t kMostName = 2000;  // bytes of one that is answered
constexpr size_t kMostConditions = 2000;
constexpr size_t kMostConditionBytes = size_t{64} << 10;

// What was asked, and the tests of its fields.
class Asked {
 public:
  explicit Asked(const mcp::Input& body) : body_(body) {}

  Result<std::optional<int64_t>> Whole(const char* name, int64_t least,
                                       int64_t most) const {
    const auto at = body_.find(name);
    if (at == body_.end()) return std::optional<int64_t>();
    if (at->is_number_integer()) {
      // Beyond int64 it is a text of digits only, and out of range.
      const bool fits =
          !at->is_number_unsigned() || at->get<uint64_t>() <= INT64_MAX;
      const int64_t value = fits ? at->get<int64_t>() : INT64_MAX;
      if (fits && value >= least && value <= most) return std::optional(value);
    }
    return Fail(UsageError(std::string(name) + " is a whole number from " +
                           std::to_string(least) + " to " +
                           std::to_string(most)));
  }
  // from_ns and to_ns; without one of them as far as there are events, also
  // those without length that start last.
  Result<Interval> Window(const LiveEvents& events) const {
    LAMINA_ASSIGN(const auto from, Whole("from_ns", -kMostTime, kMostTime));
    LAMINA_ASSIGN(const auto to, Whole("to_ns", -kMostTime, kMostTime));
    const Interval all = events.Span();
    const Interval window{
        from.value_or(std::min(all.start_ns, to.value_or(kMostTime) - 1)),
        to.value_or(std::max(all.end_ns, from.value_or(all.start_ns)) + 1)};
    if (window.start_ns >= window.end_ns)
      return Fail(UsageError("from_ns is less than to_ns"));
    return window;
  }
  Result<std::vector<std::string>> Texts(const char* name, size_t most) const {
    std::vector<std::string> texts;
    const auto at = body_.find(name);
    if (at == body_.end()) return texts;
    if (!at->is_array() || at->size() > most) {
      return Fail(UsageError(std::string(name) + " is a list of at most " +
                             std::to_string(most) + " texts"));
    }
    for (const mcp::Input& one : *at) {
      if (!one.is_string())
        return Fail(UsageError(std::string(name) + " holds texts"));
      texts.push_back(one.get<std::string>());
    }
    return texts;
  }
  Result<LiveEvents::SelectionPointer> Selected(
      const page::LiveTrace& live, const page::LiveWatch& watch) const {
    LAMINA_ASSIGN(const auto where, Texts("where", kMostConditions));
    // Lengths before the texts: no two lists have one key.
    std::string key;
    for (const std::string& text : where) {
      if (text.size() > kMostConditionBytes) {
        return Fail(UsageError("a condition of where has at most " +
                               std::to_string(kMostConditionBytes) + " bytes"));
      }
      key += std::to_string(text.size()) + ' ' + text;
    }
    if (auto kept = live.events->Kept(key)) return kept;
    LAMINA_ASSIGN(page::Where made,
                  page::MakeWhere(*live.context, live.document, where, watch));
    return live.events->Select(key, made.test, std::move(made.clip), watch);
  }

  const mcp::Input& body() const { return body_; }

 private:
  const mcp::Input& body_;
};

// Rows of events as columns: times, the rows + 1 of the tables that count
// them, and the numbers of the event and of the call that launched it.
Json EventsJson(const std::vector<uint32_t>& rows, const page::LiveTrace& live,
                bool names) {
  const analysis::Context& context = *live.context;
  Json out;
  for (const char* name : {"start_ns", "dur_ns", "uid", "launch_uid"})
    out[name] = Json::array();
  const auto columns = page::LiveColumns();
  for (const page::LiveColumn& column : columns)
    out[std::string(column.name)] = Json::array();
  if (names) out["name"] = Json::array();
  for (const uint32_t at : rows) {
    const DeviceRow row = live.events->Row(at);
    out["start_ns"].push_back(row.start_ns);
    out["dur_ns"].push_back(row.dur_ns);
    out["uid"].push_back(context.trace.Uid(row.slice));
    const tree::NodeId call = context.tree.launch(row.slice);
    out["launch_uid"].push_back(
        call.valid() ? Json(context.trace.Uid(context.tree.slice(call)))
                     : Json(nullptr));
    for (const page::LiveColumn& column : columns)
      out[std::string(column.name)].push_back(row.*column.of);
    if (!names) continue;
    const trace::Trace& trace = context.trace;
    out["name"].push_back(
        Shorten(trace.Text(trace.slices.name[row.slice.value]), kMostName));
  }
  return out;
}

Result<std::vector<uint32_t>> LanesOf(const Asked& asked,
                                      const page::LiveTrace& live) {
  std::vector<uint32_t> lanes;
  const auto at = asked.body().find("lanes");
  const size_t known = live.events->lanes();
  if (at == asked.body().end()) {
    for (uint32_t lane = 0; lane < known; ++lane) lanes.push_back(lane);
    return lanes;
  }
  const bool list = at->is_array() && at->size() <= known;
  for (size_t i = 0; list && i < at->size(); ++i) {
    const mcp::Input& one = (*at)[i];
    if (!one.is_number_unsigned() || one.get<uint64_t>() >= known) break;
    lanes.push_back(one.get<uint32_t>());
  }
  if (!list || lanes.size() < at->size()) {
    return Fail(UsageError("lanes is a list of numbers below " +
                           std::to_string(known)));
  }
  return lanes;
}

Result<Json> Tiles(const Asked& asked, const page::LiveTrace& live,
                   const page::LiveWatch& watch) {
  LAMINA_ASSIGN(const Interval window, asked.Window(*live.events));
  LAMINA_ASSIGN(const auto columns, asked.Whole("columns", 1, kMostColumns));
  LAMINA_ASSIGN(const auto lanes, LanesOf(asked, live));
  const auto wide = static_cast<size_t>(columns.value_or(1000));
  if (wide * lanes.size() > kMostTileCells) {
    return Fail(UsageError("too many lanes and columns in one answer",
                           "at most " +
                               std::to_string(kMostTileCells / lanes.size()) +
                               " columns of so many lanes"));
  }
  LAMINA_ASSIGN(const auto selection, asked.Selected(live, watch));
  const size_t most_rows =
      std::min(wide * 3 / 2, kMostTileRows / std::max<size_t>(1, lanes.size()));
  Json out;
  out["groups"] = live.groups;
  out["lanes"] = Json::array();
  for (const uint32_t lane : lanes) {
    LAMINA_ASSIGN(
        const LiveEvents::Tile tile,
        live.events->MakeTile(lane, window, wide, most_rows, selection, watch));
    Json one;
    one["lane"] = lane;
    if (tile.exact) {
      one["events"] = EventsJson(tile.rows, live, false);
      one["events"]["passes"] = tile.passes;
    } else {
      one["first_ns"] = tile.first_ns;
      one["width_ns"] = tile.width_ns;
      one["busy_ns"] = tile.busy_ns;
      one["pass_ns"] = tile.pass_ns;
      one["group"] = tile.group;
    }
    out["lanes"].push_back(std::move(one));
  }
  return out;
}

Json SumJson(const LiveEvents::Sum& sum) {
  Json out;
  out["events"] = sum.events;
  out["time_ns"] = sum.time_ns;
  return out;
}

Result<Json> SumUp(const Asked& asked, const page::LiveTrace& live,
                   const page::LiveWatch& watch) {
  const auto known = page::LiveColumns();
  LAMINA_ASSIGN(const auto by, asked.Texts("by", known.size()));
  std::vector<size_t> columns;
  for (const std::string& name : by) {
    const auto at = std::ranges::find(known, name, &page::LiveColumn::name);
    if (at == known.end()) {
      std::string list;
      for (const page::LiveColumn& one : known)
        list += (list.empty() ? "" : ", ") + std::string(one.name);
      return Fail(
          UsageError("by: there is no column " + Shorten(name, 200), list));
    }
    const auto column = static_cast<size_t>(at - known.begin());
    if (std::find(columns.begin(), columns.end(), column) != columns.end())
      return Fail(UsageError("by: " + name + " is there twice"));
    columns.push_back(column);
  }
  LAMINA_ASSIGN(const auto selection, asked.Selected(live, watch));
  LAMINA_ASSIGN(const auto sums, live.events->SumUp(columns, selection, watch));
  Json out = SumJson(sums.all);
  out["by"] = Json::object();
  for (size_t c = 0; c < columns.size(); ++c) {
    Json one;
    for (const char* name : {"row", "events", "time_ns"})
      one[name] = Json::array();
    for (size_t value = 0; value < sums.by[c].size(); ++value) {
      const LiveEvents::Sum& sum = sums.by[c][value];
      if (sum.events == 0) continue;
      one["row"].push_back(value);
      one["events"].push_back(sum.events);
      one["time_ns"].push_back(sum.time_ns);
    }
    out["by"][by[c]] = std::move(one);
  }
  return out;
}

Result<Json> FindEvents(const Asked& asked, const page::LiveTrace& live,
                        const page::LiveWatch& watch) {
  LAMINA_ASSIGN(const Interval window, asked.Window(*live.events));
  LAMINA_ASSIGN(const auto limit, asked.Whole("limit", 0, kMostFound));
  LAMINA_ASSIGN(const auto after, asked.Whole("after", 0, UINT32_MAX));
  auto order = LiveEvents::Order::kLongest;
  if (const auto at = asked.body().find("order"); at != asked.body().end()) {
    if (*at != "longest" && *at != "start")
      return Fail(UsageError("order is longest or start"));
    if (*at == "start") order = LiveEvents::Order::kStart;
  }
  LAMINA_ASSIGN(const auto selection, asked.Selected(live, watch));
  const auto most = static_cast<size_t>(limit.value_or(100));
  LAMINA_ASSIGN(
      const auto found,
      live.events->Find(
          window, order, most,
          after ? std::optional(static_cast<uint32_t>(*after)) : std::nullopt,
          selection, watch));
  Json out = SumJson(found.all);
  out["found"] = EventsJson(found.rows, live, true);
  // Where the next ones begin; they may turn out to be none.
  out["after"] = most > 0 && found.rows.size() == most ? Json(found.rows.back())
                                                       : Json(nullptr);
  return out;
}

}  // namespace

Result<std::string> AnswerLive(LiveQuestion question, const std::string& body,
                               const page::LiveTrace& live,
                               const page::LiveWatch& watch) {
  const auto parsed = mcp::ParseMessage(body);
  if (!parsed) return Fail(UsageError(parsed.error().message));
  if (!parsed->is_object()) return Fail(UsageError("the body is an object"));
  const Asked asked(*parsed);
  const auto answer =
      question == LiveQuestion::kTiles ? Tiles(asked, live, watch)
      : question == LiveQuestion::kSum ? SumUp(asked, live, watch)
                                       : FindEvents(asked, live, watch);
  return answer.map([](const Json& json) { return mcp::DumpText(json); });
}

}  // namespace lamina::serve
