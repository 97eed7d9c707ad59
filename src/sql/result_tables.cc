// SPDX-License-Identifier: Apache-2.0
//
// Tables of analyses, run when a query reads them, and their notes.
#include <set>

#include "analysis/analyses.h"
#include "engine/report.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

// A time is `x_us` in the tables of lamina; here it is x_ns, an integer, and
// x_us besides, hidden.
struct Mapped {
  std::vector<ColumnDef> columns;
  std::vector<std::string> from;  // name of the column of the table
  std::vector<bool> as_us;
};

Mapped Map(const Schema& schema) {
  Mapped out;
  const auto add = [&](ColumnDef column, const std::string& from, bool as_us) {
    out.columns.push_back(std::move(column));
    out.from.push_back(from);
    out.as_us.push_back(as_us);
  };
  for (const Column& column : schema.columns) {
    switch (column.type) {
      case ColumnType::kTime: {
        const std::string name = NameInNs(column);
        add({name, Type::kInt, column.doc}, column.name, false);
        add({name.substr(0, name.size() - 2) + "us", Type::kReal,
             column.doc + " In microseconds.", true},
            column.name, true);
        break;
      }
      case ColumnType::kReal:
        add({column.name, Type::kReal, column.doc}, column.name, false);
        break;
      case ColumnType::kText:
        add({column.name, Type::kText, column.doc}, column.name, false);
        break;
      case ColumnType::kInt:
      case ColumnType::kBool:
        add({column.name, Type::kInt, column.doc}, column.name, false);
        break;
    }
  }
  return out;
}

TableDef Notes() {
  TableDef table;
  table.name = "note";
  table.doc = "What a report says: verdict, opportunities, warnings.";
  table.cost = Cost::kAnalysis;
  table.columns = {
      {"id", Type::kInt, "Position, from 0."},
      {"severity", Type::kText, "verdict, opportunity, warning or info."},
      {"note", Type::kText, "Stable name."},
      {"text", Type::kText, "One or two sentences."},
      {"worth_ns", Type::kInt, "What it is worth at most."},
      {"claim", Type::kText,
       "How the worth is known: measured, bound or estimate."}};
  table.open = [](const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    using M = std::shared_ptr<const ResultSet>;
    LAMINA_ASSIGN(M report, engine::KeptReport(source.session, source.watch));
    const size_t count = report->notes.size();
    return std::make_shared<FunctionRows<M>>(
        std::move(report), count,
        FunctionRows<M>::Cells{
            [](const M&, size_t r) -> Value { return r; },
            [](const M& m, size_t r) -> Value {
              return SeverityName(m->notes[r].severity);
            },
            [](const M& m, size_t r) -> Value { return m->notes[r].id; },
            [](const M& m, size_t r) -> Value { return m->notes[r].text; },
            [](const M& m, size_t r) -> Value { return m->notes[r].worth_ns; },
            [](const M& m, size_t r) -> Value {
              return m->notes[r].claim.empty() ? Value()
                                               : Value(m->notes[r].claim);
            }});
  };
  return table;
}

struct EvidenceModel {
  std::shared_ptr<const ResultSet> report;
  struct Row {
    size_t note;
    const Evidence* evidence;
    std::optional<uint32_t> uid;
  };
  std::vector<Row> rows;
};

TableDef NoteEvidence() {
  TableDef table;
  table.name = "note_evidence";
  table.doc = "The rows of tables and the events that prove a note.";
  table.cost = Cost::kAnalysis;
  table.columns = {{"note_id", Type::kInt, "Row of note."},
                   {"table_name", Type::kText, "Table."},
                   {"column_name", Type::kText, "Column that names the rows."},
                   {"value", Type::kText, "Its value there."},
                   {"uid", Type::kInt, "Event number."}};
  table.open = [](const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    using M = EvidenceModel;
    M model;
    LAMINA_ASSIGN(model.report,
                  engine::KeptReport(source.session, source.watch));
    for (size_t i = 0; i < model.report->notes.size(); ++i) {
      for (const Evidence& evidence : model.report->notes[i].evidence) {
        if (evidence.events.empty())
          model.rows.push_back({i, &evidence, std::nullopt});
        for (const uint32_t uid : evidence.events)
          model.rows.push_back({i, &evidence, uid});
      }
    }
    const size_t count = model.rows.size();
    const auto text = [](const std::string& s) -> Value {
      return s.empty() ? Value() : Value(s);
    };
    static constexpr auto kText = text;
    return std::make_shared<FunctionRows<M>>(
        std::move(model), count,
        FunctionRows<M>::Cells{
            [](const M& m, size_t r) -> Value { return m.rows[r].note; },
            [](const M& m, size_t r) {
              return kText(m.rows[r].evidence->table);
            },
            [](const M& m, size_t r) {
              return kText(m.rows[r].evidence->column);
            },
            [](const M& m, size_t r) {
              return kText(m.rows[r].evidence->value);
            },
            [](const M& m, size_t r) -> Value { return m.rows[r].uid; }});
  };
  return table;
}

// The parameters of cost models stand in one table per family, with columns
// that depend on the trace; here they are rows.
TableDef EfficiencyParameters() {
  TableDef table;
  table.name = "efficiency_parameters";
  table.doc =
      "Parameters of the cost models of ops (tables efficiency_* of a "
      "report), one per row.";
  table.kind = TableKind::kResult;
  table.cost = Cost::kAnalysis;
  table.columns = {{"family", Type::kText, "Family of the op."},
                   {"row", Type::kInt, "Equal for the parameters of a call."},
                   {"op", Type::kText, "Op."},
                   {"types", Type::kText, "Element types. JSON."},
                   {"parameter", Type::kText, "Name of the parameter."},
                   {"parameter_value", Type::kReal, "Its value."},
                   {"count", Type::kInt, "Calls."},
                   {"kernel_time_ns", Type::kInt, "Sum of durations."}};
  table.open = [](const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    LAMINA_ASSIGN(const auto found,
                  source.session.Analysis("efficiency", source.watch));
    Schema schema{"efficiency_parameters",
                  "",
                  {{"family", ColumnType::kText, ""},
                   {"row", ColumnType::kInt, ""},
                   {"op", ColumnType::kText, ""},
                   {"types", ColumnType::kText, ""},
                   {"parameter", ColumnType::kText, ""},
                   {"parameter_value", ColumnType::kReal, ""},
                   {"count", ColumnType::kInt, ""},
                   {"kernel_time_ns", ColumnType::kInt, ""}}};
    auto out = std::make_shared<Table>(schema);
    constexpr std::string_view kPrefix = "efficiency_";
    for (const Table& family : found->tables) {
      if (!family.name().starts_with(kPrefix)) continue;
      const auto& columns = family.schema().columns;
      const auto types = family.schema().Find("types");
      const auto count = family.schema().Find("count");
      const auto time = family.schema().Find("kernel_time_us");
      if (!types || !count || !time) continue;
      for (size_t row = 0; row < family.rows(); ++row) {
        for (size_t c = 1; c < *types; ++c) {
          const Value value = family.At(row, c);
          if (value.null()) continue;
          out->Add(family.name().substr(kPrefix.size()), row, family.At(row, 0),
                   family.At(row, *types), columns[c].name, value,
                   family.At(row, *count), family.At(row, *time));
        }
      }
    }
    return std::make_shared<TableRows>(std::move(out));
  };
  return table;
}

}  // namespace

TableDef ResultTable(const Schema& schema, ResultOf result_of) {
  Mapped mapped = Map(schema);
  TableDef table;
  table.name = schema.name;
  table.doc = schema.doc;
  table.kind = TableKind::kResult;
  table.cost = Cost::kAnalysis;
  table.columns = mapped.columns;
  table.open = [result_of = std::move(result_of), name = schema.name, mapped](
                   const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    LAMINA_ASSIGN(const auto result, result_of(source));
    const Table* const found = result->Find(name);
    std::vector<TableRows::From> from;
    for (size_t c = 0; c < mapped.columns.size(); ++c) {
      TableRows::From place;
      if (found != nullptr) {
        const auto column = found->schema().Find(mapped.from[c]);
        if (column) place.column = static_cast<int>(*column);
      }
      place.as_us = mapped.as_us[c];
      from.push_back(place);
    }
    return std::make_shared<TableRows>(
        std::shared_ptr<const Table>(result, found), from);
  };
  return table;
}

void AddResultTables(std::vector<TableDef>& tables) {
  std::set<std::string> known;
  for (const TableDef& table : tables) known.insert(table.name);
  for (const analysis::AnalysisInfo& info : analysis::Analyses()) {
    for (const Schema& schema : info.schemas()) {
      if (known.insert(schema.name).second)
        tables.push_back(
            ResultTable(schema, [name = info.name](const Asked& source) {
              return source.session.Analysis(name, source.watch);
            }));
    }
  }
  tables.push_back(EfficiencyParameters());
  tables.push_back(Notes());
  tables.push_back(NoteEvidence());
}

TableDef FilledTable(
    std::string name, std::string doc, std::vector<ColumnDef> columns,
    std::function<Status(const Asked& source, Table& out)> fill) {
  TableDef table;
  table.name = std::move(name);
  table.doc = std::move(doc);
  table.cost = Cost::kTree;
  Schema schema;
  schema.name = table.name;
  for (const ColumnDef& column : columns) {
    schema.columns.push_back(
        {column.name,
         column.type == Type::kText ? ColumnType::kText : ColumnType::kInt,
         column.doc});
  }
  table.columns = std::move(columns);
  table.open = [schema, fill = std::move(fill)](
                   const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    auto out = std::make_shared<Table>(schema);
    LAMINA_TRY(fill(source, *out));
    return std::make_shared<TableRows>(std::move(out));
  };
  return table;
}

}  // namespace lamina::sql
