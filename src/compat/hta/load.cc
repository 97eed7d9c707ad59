// SPDX-License-Identifier: Apache-2.0
//
// A trace as HTA itself reads it, with its rounding and its omissions: frames
// that are to be equal cell by cell cannot start from lamina's own model.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <simdjson.h>

#include "base/byte_source.h"
#include "base/escape.h"
#include "compat/hta/frames.h"

namespace lamina::compat::hta {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// simdjson's documents end there.
constexpr size_t kMostBytes = (size_t{1} << 32) - 1;

Result<simdjson::padded_string> ReadAll(const std::string& path) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  std::string text;
  size_t size = 0;
  constexpr size_t kStep = size_t{1} << 22;
  while (true) {
    if (text.size() < size + kStep) text.resize(std::max(size * 2, kStep * 2));
    LAMINA_ASSIGN(const size_t got,
                  source->Read(text.data() + size, text.size() - size));
    if (got == 0) break;
    size += got;
    if (size > kMostBytes) {
      return Fail(InputError(path, "the layout hta takes files up to 4 GB",
                             "use the native layout"));
    }
  }
  if (const auto damage = source->damage())
    return Fail(InputError(path, damage->what, "is the file complete?"));
  return simdjson::padded_string(text.data(), size);
}

// A JSON number, or text that holds one.
std::optional<double> Number(const element& value) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      !std::isfinite(number))
    return std::nullopt;
  return number;
}

int64_t WholeOr(const element& object, std::string_view key, int64_t missing) {
  element value;
  if (object[key].get(value) != simdjson::SUCCESS) return missing;
  int64_t whole = 0;
  if (value.get(whole) == simdjson::SUCCESS) return whole;
  const auto number = Number(value);
  if (!number || std::abs(*number) > 9e15) return missing;
  return static_cast<int64_t>(*number);
}

// Whether rows are rounded: any ts of the file has a fraction. The rows are in
// file order.
Result<std::vector<Row>> ReadRows(const std::string& path,
                                  const element& document, bool exact) {
  simdjson::dom::array events;
  element list;
  if (document["traceEvents"].get(list) != simdjson::SUCCESS) list = document;
  if (list.get(events) != simdjson::SUCCESS) {
    return Fail(InputError(path, "there is no list traceEvents",
                           "the layout hta takes traces of PyTorch"));
  }
  bool fraction = false;
  std::vector<Row> rows;
  int64_t index = -1;
  for (const element event : events) {
    ++index;
    element ts, dur, category;
    const bool timed = event["ts"].get(ts) == simdjson::SUCCESS;
    if (timed && ts.type() == element_type::DOUBLE) fraction = true;
    if (!timed || event["dur"].get(dur) != simdjson::SUCCESS ||
        event["cat"].get(category) != simdjson::SUCCESS)
      continue;
    Row row;
    row.index = index;
    const auto start = Number(ts);
    const auto length = Number(dur);
    if (!start || !length || category.get(row.category) != simdjson::SUCCESS ||
        row.category == "Trace")
      continue;
    if (event["name"].get(row.name) != simdjson::SUCCESS) row.name = "";
    row.ts = *start;
    row.dur = *length;
    element args;
    if (event["args"].get(args) == simdjson::SUCCESS && args.is_object()) {
      row.stream = WholeOr(args, "stream", -1);
      row.correlation = WholeOr(args, "correlation", -1);
      element rate;
      if (args["memory bandwidth (GB/s)"].get(rate) == simdjson::SUCCESS)
        row.bandwidth = Number(rate).value_or(0);
    }
    row.link = row.correlation == -1 ? -1 : 0;
    rows.push_back(row);
  }
  if (rows.empty()) {
    return Fail(InputError(path, "no event has a duration and a category",
                           "the layout hta takes traces of PyTorch"));
  }
  if (fraction && !exact) {
    for (Row& row : rows) {
      const double end = std::floor(row.ts + row.dur);
      row.ts = std::ceil(row.ts);
      row.dur = end - row.ts;
    }
  }
  return rows;
}

// Each row keeps the partner of its last pair: all host rows of an id end with
// its last device row, all device rows with its last host row.
void Link(std::vector<Row>& rows) {
  struct Last {
    int64_t gpu = -1;
    int64_t host = -1;
  };
  absl::flat_hash_map<int64_t, Last> last;
  for (const Row& row : rows) {
    if (row.correlation == -1) continue;
    Last& known = last[row.correlation];
    (row.Gpu() ? known.gpu : known.host) = row.index;
  }
  for (Row& row : rows) {
    if (row.correlation == -1) continue;
    const Last& known = last[row.correlation];
    const int64_t partner = row.Gpu() ? known.host : known.gpu;
    if (partner >= 0) row.link = partner;
  }
}

// HTA leaves out the last of several steps: host rows from its start on, and
// device rows without a host row. A device row stands once per host row.
void DropLastStep(std::vector<Row>& rows) {
  std::set<std::string_view> names;
  double last = 0;
  bool any = false;
  for (const Row& row : rows) {
    if (!row.name.starts_with("ProfilerStep")) continue;
    names.insert(row.name);
    if (row.Gpu()) continue;
    last = any ? std::max(last, row.ts) : row.ts;
    any = true;
  }
  if (names.size() < 2 || !any) return;
  std::vector<Row> host, out;
  absl::flat_hash_map<int64_t, int64_t> counts;
  for (const Row& row : rows) {
    if (row.Gpu() || row.ts >= last) continue;
    host.push_back(row);
    ++counts[row.correlation];
  }
  constexpr int64_t kMostCopies = 1000;
  for (const Row& row : rows) {
    if (!row.Gpu()) continue;
    const auto it = counts.find(row.correlation);
    if (it == counts.end()) continue;
    for (int64_t i = 0; i < std::min(it->second, kMostCopies); ++i)
      out.push_back(row);
  }
  out.insert(out.end(), host.begin(), host.end());
  rows = std::move(out);
}

bool IsTrace(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".json") || name.ends_with(".json.gz") ||
         name.ends_with(".trace.gz") || name.ends_with(".trace");
}

}  // namespace

bool IsLayout(std::string_view layout) {
  return layout == "hta" || layout == "hta:exact";
}

struct Loaded::Files {
  std::vector<std::unique_ptr<simdjson::dom::parser>> parsers;
};

Loaded::Loaded() : files_(std::make_unique<Files>()) {}
Loaded::Loaded(Loaded&&) noexcept = default;
Loaded& Loaded::operator=(Loaded&&) noexcept = default;
Loaded::~Loaded() = default;

Result<Loaded> Loaded::Open(const std::string& path, bool exact) {
  std::vector<std::string> paths;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (IsTrace(entry.path())) paths.push_back(entry.path().string());
    }
    std::sort(paths.begin(), paths.end());
    if (paths.empty()) {
      return Fail(InputError(path, "no trace lies in the folder",
                             "names end in .json or .json.gz"));
    }
  } else {
    paths.push_back(path);
  }
  Loaded loaded;
  double first = 0;
  for (const std::string& file : paths) {
    LAMINA_ASSIGN(const simdjson::padded_string text, ReadAll(file));
    auto& parser = loaded.files_->parsers.emplace_back(
        std::make_unique<simdjson::dom::parser>());
    element document;
    if (const auto code = parser->parse(text).get(document)) {
      return Fail(InputError(
          file,
          std::string("not readable as JSON: ") + simdjson::error_message(code),
          "the layout hta takes whole JSON files; the native one salvages"));
    }
    Rank rank;
    rank.rank = static_cast<int64_t>(loaded.ranks_.size());
    element distributed;
    if (document["distributedInfo"].get(distributed) == simdjson::SUCCESS)
      rank.rank = WholeOr(distributed, "rank", rank.rank);
    LAMINA_ASSIGN(rank.rows, ReadRows(file, document, exact));
    Link(rank.rows);
    for (const Row& row : rank.rows) {
      if ((loaded.ranks_.empty() && &row == rank.rows.data()) || row.ts < first)
        first = row.ts;
    }
    loaded.ranks_.push_back(std::move(rank));
  }
  for (Rank& rank : loaded.ranks_) {
    for (Row& row : rank.rows) row.ts -= first;
    DropLastStep(rank.rows);
  }
  std::stable_sort(
      loaded.ranks_.begin(), loaded.ranks_.end(),
      [](const Rank& a, const Rank& b) { return a.rank < b.rank; });
  return loaded;
}

}  // namespace lamina::compat::hta
