// SPDX-License-Identifier: Apache-2.0
//
// The rows of the recorded trace, one table per row type of trace/fields.h.
#include <cmath>

#include "sql/table_def.h"
#include "trace/fields.h"

namespace lamina::sql {
namespace {

using trace::Described;
using trace::FieldInfo;
using trace::Role;
using trace::Trace;

using TraceModel = const Trace*;
using Cells = FunctionRows<TraceModel>::Cells;

// A cell by its role and its C++ type.
Value TextOf(const Trace& trace, StringId id) {
  return id.valid() ? Value(trace.strings[id]) : Value();
}

constexpr std::string_view kFlowPhases[] = {"start", "step", "finish"};
constexpr std::string_view kFlowKinds[] = {"launch", "forward_backward",
                                           "other"};

template <Role kRole, class T>
Value CellOf(const Trace& trace, const T& value) {
  if constexpr (kRole == Role::kStart) {
    return value == trace::kNoInt ? Value() : Value(value - trace.first_ns);
  } else if constexpr (kRole == Role::kCategory) {
    return TextOf(trace, trace.categories[value]);
  } else if constexpr (kRole == Role::kRow) {
    return value == trace::kNoRow ? Value() : Value(value);
  } else if constexpr (kRole == Role::kOffset || std::is_same_v<T, bool>) {
    return static_cast<int64_t>(value);
  } else if constexpr (std::is_same_v<T, StringId>) {
    return TextOf(trace, value);
  } else if constexpr (std::is_same_v<T, trace::SliceId>) {
    return value.valid() ? Value(trace.Uid(value)) : Value();
  } else if constexpr (std::is_same_v<T, trace::TrackId> ||
                       std::is_same_v<T, trace::StreamId>) {
    return value.valid() ? Value(value.value) : Value();
  } else if constexpr (std::is_same_v<T, trace::Kind>) {
    return trace::KindName(value);
  } else if constexpr (std::is_same_v<T, trace::FlowPhase>) {
    return kFlowPhases[static_cast<size_t>(value)];
  } else if constexpr (std::is_same_v<T, trace::FlowKind>) {
    return kFlowKinds[static_cast<size_t>(value)];
  } else if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
    return Value(value);
  } else if constexpr (std::is_same_v<T, double>) {
    if (!std::isfinite(value)) return {};
    if constexpr (kRole == Role::kRealPos) return value < 0 ? Value() : value;
    return value;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return value == trace::kNoInt ? Value() : Value(value);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return value == -1 ? Value() : Value(value);
  } else {
    static_assert(std::is_same_v<T, uint32_t>);
    return value;
  }
}

Type TypeOf(Role role) {
  switch (role) {
    case Role::kText:
    case Role::kJson:
    case Role::kEnum:
    case Role::kCategory:
      return Type::kText;
    case Role::kReal:
    case Role::kRealPos:
      return Type::kReal;
    default:
      return Type::kInt;
  }
}

// The value of a field of a row, whether rows or columns are kept.
template <class Row, auto Member>
const auto& FieldAt(const Trace& trace, size_t row) {
  const auto& rows = trace.*Described<Row>::kRows;
  if constexpr (requires { (rows.*Member)[row]; }) {
    return (rows.*Member)[row];
  } else {
    return rows[row].*Member;
  }
}

std::string DocOf(const FieldInfo& info) {
  std::string doc(info.doc);
  if (info.role == Role::kJson) doc += " JSON.";
  if (!info.of.empty()) doc += " Row of " + std::string(info.of) + ".";
  return doc;
}

template <class Row, size_t kIndex>
void AddField(TableDef& table, Cells& cells) {
  constexpr auto kField = std::get<kIndex>(Described<Row>::kFields);
  [[maybe_unused]] constexpr auto kMember = decltype(kField)::kMember;
  constexpr Role kRole = kField.info.role;
  const std::string name(kField.info.name);
  const std::string doc = DocOf(kField.info);
  if constexpr (kRole == Role::kList) {
    return;
  } else if constexpr (kRole == Role::kDim3) {
    table.columns.push_back({name + "_x", Type::kInt, doc});
    table.columns.push_back({name + "_y", Type::kInt, doc});
    table.columns.push_back({name + "_z", Type::kInt, doc});
    const auto add = [&]<size_t kAxis>(std::integral_constant<size_t, kAxis>) {
      cells.push_back([](const TraceModel& trace, size_t row) -> Value {
        // Zero is what the profiler did not know.
        const uint32_t extent = FieldAt<Row, kMember>(*trace, row)[kAxis];
        return extent > 0 ? Value(int64_t{extent}) : Value();
      });
    };
    add(std::integral_constant<size_t, 0>());
    add(std::integral_constant<size_t, 1>());
    add(std::integral_constant<size_t, 2>());
  } else {
    table.columns.push_back({name, TypeOf(kRole), doc});
    cells.push_back([](const TraceModel& trace, size_t row) -> Value {
      return CellOf<kRole>(*trace, FieldAt<Row, kMember>(*trace, row));
    });
    if constexpr (kRole == Role::kStart) {
      const std::string raw = name == "start_ns" ? "ts_ns" : "raw_" + name;
      table.columns.push_back({raw, Type::kInt, "The same as recorded.", true});
      cells.push_back([](const TraceModel& trace, size_t row) -> Value {
        const int64_t ns = FieldAt<Row, kMember>(*trace, row);
        return ns == trace::kNoInt ? Value() : Value(ns);
      });
    }
  }
}

template <class Row, size_t... kIndex>
void AddFields(TableDef& table, Cells& cells, std::index_sequence<kIndex...>) {
  (AddField<Row, kIndex>(table, cells), ...);
}

template <class Row>
TableDef ModelTable() {
  constexpr size_t kFields =
      std::tuple_size_v<std::remove_cvref_t<decltype(Described<Row>::kFields)>>;
  TableDef table;
  table.name = Described<Row>::kName;
  table.doc = Described<Row>::kDoc;
  Cells cells;
  // Rows that are no events of their own are named by their position.
  constexpr bool kHasUid = requires(Row row) { row.uid; };
  if constexpr (!kHasUid) {
    table.columns.push_back({"id", Type::kInt, "Position, from 0."});
    cells.push_back([](const TraceModel&, size_t row) -> Value { return row; });
  }
  AddFields<Row>(table, cells, std::make_index_sequence<kFields>());
  if constexpr (std::is_same_v<Row, trace::Slices>) {
    table.columns.push_back(
        {"end_ns", Type::kInt, "End, from the first event.", true});
    cells.push_back([](const TraceModel& trace, size_t row) -> Value {
      return trace->slices.start_ns[row] + trace->slices.dur_ns[row] -
             trace->first_ns;
    });
  }
  table.open =
      [cells](const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    const Trace* const trace = &source.trace();
    return std::make_shared<FunctionRows<TraceModel>>(
        trace, (trace->*Described<Row>::kRows).size(), cells);
  };
  return table;
}

// Facts that are few and have texts of their own.
TableDef Facts(std::string name, std::string doc,
               std::vector<ColumnDef> columns,
               std::function<void(const Trace&, Table&)> fill) {
  TableDef table;
  table.name = std::move(name);
  table.doc = std::move(doc);
  table.columns = std::move(columns);
  Schema schema;
  schema.name = table.name;
  for (const ColumnDef& column : table.columns) {
    schema.columns.push_back({column.name,
                              column.type == Type::kText   ? ColumnType::kText
                              : column.type == Type::kReal ? ColumnType::kReal
                                                           : ColumnType::kInt,
                              column.doc});
  }
  table.open = [schema = std::move(schema), fill = std::move(fill)](
                   const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    const Trace* const trace = &source.trace();
    auto filled = std::make_shared<Table>(schema);
    fill(*trace, *filled);
    return std::make_shared<TableRows>(std::move(filled));
  };
  return table;
}

}  // namespace

void AddModelTables(std::vector<TableDef>& tables) {
  trace::ForEachDescribed(
      [&]<class Row>() { tables.push_back(ModelTable<Row>()); });
  tables.push_back(Facts("category", "Categories of the input.",
                         {{"id", Type::kInt, "Position, from 0."},
                          {"name", Type::kText, "As the profiler wrote it."}},
                         [](const Trace& trace, Table& out) {
                           for (size_t i = 0; i < trace.categories.size(); ++i)
                             out.Add(i, trace.strings[trace.categories[i]]);
                         }));
  tables.push_back(Facts(
      "device_info", "Devices that the recording describes.",
      {{"device_index", Type::kInt, "Device number."},
       {"name", Type::kText, "Name."},
       {"memory_bytes", Type::kInt, "Memory."},
       {"compute_major", Type::kInt, "Compute capability, first number."},
       {"compute_minor", Type::kInt, "Compute capability, second number."},
       {"sm_count", Type::kInt, "Multiprocessors."},
       {"clock_khz", Type::kInt, "Clock in kHz."},
       {"memory_bytes_per_s", Type::kInt, "Memory bandwidth."}},
      [](const Trace& trace, Table& out) {
        for (const trace::DeviceInfo& d : trace.info.devices) {
          out.Add(d.id, d.name, Known(d.memory_bytes), Known(d.compute_major),
                  Known(d.compute_minor), Known(d.sm_count), Known(d.clock_khz),
                  Known(d.memory_bandwidth_bytes_per_s));
        }
      }));
  tables.push_back(
      Facts("diagnostic", "What was odd, repaired or lost while reading.",
            {{"reason", Type::kText, "Stable name."},
             {"effect", Type::kText, "info, oddity, repaired or lost."},
             {"doc", Type::kText, "What it means and what to do."},
             {"count", Type::kInt, "Records."},
             {"bytes", Type::kInt, "Bytes of the input, where known."}},
            [](const Trace& trace, Table& out) {
              for (const trace::Diagnostic& d : trace.diagnostics.Sorted()) {
                out.Add(d.reason, trace::EffectName(d.effect), d.text, d.count,
                        d.bytes);
              }
            }));
  tables.push_back(Facts(
      "captured_call",
      "Device work that replayed a graph, and the captured call that it comes "
      "from.",
      {{"uid", Type::kInt, "Event number of the device work."},
       {"captured_from_uid", Type::kInt, "The captured call, a slice."},
       {"fact", Type::kInt, "1: a fact; 0: likely."}},
      [](const Trace& trace, Table& out) {
        if (trace.captured.calls.empty()) return;
        for (const trace::SliceId s : trace.device_slices()) {
          const uint32_t row = trace.slices.detail[s.value];
          const trace::SliceId call = trace.captured.calls[row];
          if (call.valid())
            out.Add(trace.Uid(s), trace.Uid(call),
                    int64_t{trace.captured.facts[row]});
        }
      }));
  tables.push_back(Facts("trace_info", "Facts about the recording.",
                         {{"key", Type::kText, "Name of the fact."},
                          {"value", Type::kText, "Its value."}},
                         [](const Trace& trace, Table& out) {
                           const trace::Info& info = trace.info;
                           const auto number = [&](std::string_view key,
                                                   auto value) {
                             out.Add(key, std::to_string(value));
                           };
                           out.Add("format", info.format);
                           out.Add("file", info.file);
                           number("file_bytes", info.file_bytes);
                           number("input_bytes", info.input_bytes);
                           number("events", info.events);
                           number("first_ts_ns", trace.first_ns);
                           if (info.rank) number("rank", *info.rank);
                           if (info.world_size)
                             number("world_size", *info.world_size);
                           if (!info.backend.empty())
                             out.Add("backend", info.backend);
                           if (info.base_time_ns)
                             number("base_time_ns", *info.base_time_ns);
                           for (const auto& [key, value] : info.properties)
                             out.Add(key, value);
                         }));
}

}  // namespace lamina::sql
