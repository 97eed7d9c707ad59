// SPDX-License-Identifier: Apache-2.0
//
// What one analysis, and at the end one command, has to say: tables, notes
// and diagrams. Text, JSON and HTML print the same notes, so a sentence is
// made here, by rules of the engine, and never by a writer.
//
// Texts may quote the input and are not escaped: whoever prints them does it
// for the medium.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"
#include "lamina/table.h"

namespace lamina {

enum class Severity : uint8_t {
  kVerdict,      // the one sentence that answers "where did the time go?"
  kOpportunity,  // something to change, with its worth
  kWarning,      // a number may mislead, or something was lost
  kInfo,
};

// Rows or events that prove a note. Keys are stable: values of key columns,
// event numbers of the input, never row positions.
struct Evidence {
  std::string table;
  std::string column;  // together with `value`: the rows where column = value
  std::string value;
  // Positions among all events of the input, from 0; may be empty.
  std::vector<uint32_t> events;
};

struct Note {
  Severity severity = Severity::kInfo;
  std::string id;    // stable, snake_case: "unlinked_device_work"
  std::string text;  // one or two sentences
  // For opportunities: what it is worth at most, and how that is known.
  std::optional<int64_t> worth_ns;
  std::string claim;  // "measured", "bound", "estimate"; empty: no worth
  std::vector<Evidence> evidence;
};

LAMINA_API Note MakeNote(Severity severity, std::string id, std::string text,
                         std::vector<Evidence> evidence = {});

// A drawing.
struct Diagram {
  std::string name;  // snake_case, for a file name without its ending
  std::string svg;
};

struct ResultSet {
  std::vector<Table> tables;
  std::vector<Note> notes;
  std::vector<Diagram> diagrams;

  // The table of this name; null when there is none.
  LAMINA_API const Table* Find(std::string_view name) const;
  // Puts all that `other` holds behind what is here.
  LAMINA_API void Append(ResultSet&& other);
};

// A result with what a reader of the output needs to know about its origin.
struct Document {
  std::string command;              // "report"
  std::vector<std::string> inputs;  // as they were named
  // On a terminal: the short form of a report instead of every table in full.
  bool summary = false;
  ResultSet result;
};

// "verdict", "opportunity", "warning" or "info".
LAMINA_API std::string_view SeverityName(Severity severity);

}  // namespace lamina
