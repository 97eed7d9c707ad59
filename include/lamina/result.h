// SPDX-License-Identifier: Apache-2.0
//
// What one analysis, and at the end one command, has to say: tables, notes
// and diagrams. Text, JSON and HTML print the same notes, so a sentence is
// made here, by rules of the engine, and never by a writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  std::vector<uint32_t> events;  // UIDs, may be empty
};

struct Note {
  Severity severity = Severity::kInfo;
  std::string id;    // stable, snake_case: "unlinked_device_work"
  std::string text;  // one or two sentences
  // For opportunities: what it is worth at most, and how that is known.
  std::optional<int64_t> worth_ns;
  std::string claim;  // "measured", "bound" or "estimate"
  std::vector<Evidence> evidence;
};

Note MakeNote(Severity severity, std::string id, std::string text,
              std::vector<Evidence> evidence = {});

// A drawing as SVG or DOT text.
struct Diagram {
  std::string name;
  std::string svg;
};

struct ResultSet {
  std::vector<Table> tables;
  std::vector<Note> notes;
  std::vector<Diagram> diagrams;

  const Table* Find(std::string_view name) const;
  void Append(ResultSet&& other);
};

// A result with what a reader of the output needs to know about its origin.
struct Document {
  std::string command;  // "report"
  std::vector<std::string> inputs;
  // On a terminal: the short form of a report instead of every table in full.
  bool summary = false;
  ResultSet result;
};

std::string_view SeverityName(Severity severity);

}  // namespace lamina
