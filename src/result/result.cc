// SPDX-License-Identifier: Apache-2.0
#include "lamina/result.h"

#include <iterator>

namespace lamina {

Note MakeNote(Severity severity, std::string id, std::string text,
              std::vector<Evidence> evidence) {
  Note note;
  note.severity = severity;
  note.id = std::move(id);
  note.text = std::move(text);
  note.evidence = std::move(evidence);
  return note;
}

const Table* ResultSet::Find(std::string_view name) const {
  for (const Table& table : tables) {
    if (table.name() == name) return &table;
  }
  return nullptr;
}

void ResultSet::Append(ResultSet&& other) {
  for (Table& table : other.tables) tables.push_back(std::move(table));
  for (Note& note : other.notes) notes.push_back(std::move(note));
  for (Diagram& diagram : other.diagrams)
    diagrams.push_back(std::move(diagram));
}

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kVerdict:
      return "verdict";
    case Severity::kOpportunity:
      return "opportunity";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      return "info";
  }
  return "info";
}

}  // namespace lamina
