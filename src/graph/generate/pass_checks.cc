// SPDX-License-Identifier: Apache-2.0
//
// Generated files are read back: first as text, then by Python itself where it
// is installed. Nothing of the tree is imported and no generated line is run.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/child_process.h"
#include "base/text.h"
#include "graph/generate/write_pass.h"
#include "table/row_columns.h"

namespace lamina::generate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kPythonLimit(30);

// What is wrong with Python text as text: brackets, strings, columns.
std::vector<std::string> TextFaults(const PassFile& file) {
  std::vector<std::string> out;
  std::string open;
  size_t line = 1;
  size_t column = 0;
  size_t indent = 0;
  bool at_indent = true;
  const std::string& text = file.text;
  const auto fault = [&](std::string_view what) {
    out.push_back(fmt::format("{}:{}: {}", file.path, line, what));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      column = 0;
      indent = 0;
      at_indent = true;
      continue;
    }
    if (++column == kColumns + 1) fault("longer than 100 columns");
    if (c == '\t') fault("a tab");
    if (at_indent && c == ' ') {
      ++indent;
      continue;
    }
    if (at_indent && indent % 4 != 0) fault("indent is no multiple of 4");
    at_indent = false;
    if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') {
        ++i;
        if (++column == kColumns + 1) fault("longer than 100 columns");
      }
      continue;
    }
    if (c == '"' || c == '\'') {
      const bool triple = text.compare(i, 3, std::string(3, c)) == 0;
      const std::string end(triple ? 3 : 1, c);
      size_t j = i + end.size();
      bool closed = false;
      for (; j < text.size(); ++j) {
        if (text[j] == '\\') {
          ++j;
          continue;
        }
        if (text.compare(j, end.size(), end) == 0) {
          closed = true;
          break;
        }
        if (text[j] == '\n') {
          if (!triple) break;
          ++line;
          column = 0;
          continue;
        }
        if (++column == kColumns + 1) fault("longer than 100 columns");
      }
      if (!closed) {
        fault("a string that does not end");
        return out;
      }
      i = j + end.size() - 1;
      column += end.size();
      continue;
    }
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != wanted) {
        fault("brackets do not match");
        return out;
      }
      open.pop_back();
    }
  }
  if (!open.empty()) fault("brackets do not close");
  return out;
}

CheckAnswer Answered(std::string check, const std::vector<std::string>& faults,
                     std::string fine) {
  CheckAnswer out;
  out.check = std::move(check);
  out.answer = faults.empty() ? "pass" : "fail";
  out.evidence = faults.empty() ? std::move(fine)
                                : fmt::format("{}", fmt::join(faults, "; "));
  return out;
}

struct FileRow {
  std::string_view file;
  int64_t lines;
};

struct CheckRow {
  std::string_view check, answer, evidence;
};

}  // namespace

std::vector<CheckAnswer> CheckPass(const PassRequest& request,
                                   const std::vector<PassFile>& files,
                                   const std::vector<std::string>& tests) {
  std::vector<CheckAnswer> out;
  std::vector<std::string> faults;
  Json job;
  job["files"] = Json::object();
  std::vector<std::string> ops;
  std::vector<std::string> fallback;
  size_t count = 0;
  for (const PassFile& file : files) {
    if (!file.path.ends_with(".py")) continue;
    ++count;
    const std::vector<std::string> found = TextFaults(file);
    faults.insert(faults.end(), found.begin(), found.end());
    job["files"][file.path] = file.text;
    if (!file.path.starts_with("fallback/")) continue;
    const std::string name = file.path.substr(9, file.path.size() - 12);
    fallback.push_back(name);
    const size_t at = file.text.find("custom_op(\"");
    const size_t end = file.text.find('"', at + 11);
    if (at != std::string::npos && end != std::string::npos) {
      std::string op = file.text.substr(at + 11, end - at - 11);
      const size_t colons = op.find("::");
      if (colons != std::string::npos) op.replace(colons, 2, ".");
      ops.push_back(op);
    }
  }
  out.push_back(Answered("text", faults, fmt::format("{} files", count)));
  const auto python = FindProgram("python3");
  if (!python) {
    out.push_back({"python", "not run", "no python3 in the PATH"});
    return out;
  }
  for (const fusion::Mention& mention : request.index->mentions) {
    if (mention.kind == fusion::Mention::Kind::kDefinition)
      ops.push_back(mention.name);
  }
  job["ops"] = ops;
  job["fallback"] = fallback;
  job["tree"] = request.api->tree;
  job["key"] = request.key;
  job["apply"] = request.api->apply_parameters;
  job["pass"] = PassPath(request.key);
  job["test"] = TestPath(*request.api, request.key);
  job["tests"] = tests;
  const std::string script = request.templates->Fill("check", {});
  const auto ran = RunChild(
      {*python, "-I", "-c", script},
      job.dump(-1, ' ', false, Json::error_handler_t::replace), kPythonLimit);
  if (!ran || ran->timed_out || ran->exit_status != 0) {
    out.push_back({"python", "fail",
                   !ran             ? ran.error().what
                   : ran->timed_out ? "no answer in 30 s"
                                    : ran->err.substr(0, 400)});
    return out;
  }
  faults.clear();
  const Json answer = Json::parse(ran->out, nullptr, false);
  if (!answer.is_array()) faults.emplace_back("no answer");
  for (const Json& line : answer) {
    if (line.is_string()) faults.push_back(line.get<std::string>());
  }
  out.push_back(Answered("python", faults,
                         "compiles; class, parameters, imports, ops and tests "
                         "are as the tree has them"));
  return out;
}

ResultSet PassTables(const WrittenPass& pass) {
  ResultSet out;
  const RowColumns<FileRow> file_columns{
      "pass_files",
      "Files of the pass, below the output folder.",
      {{"file", ColumnType::kText, "Path below the output folder.",
        &FileRow::file},
       {"lines", ColumnType::kInt, "Lines of text.", &FileRow::lines}}};
  Table files(file_columns.schema());
  for (const PassFile& file : pass.files) {
    file_columns.Add(files, {.file = file.path,
                             .lines = static_cast<int64_t>(std::count(
                                 file.text.begin(), file.text.end(), '\n'))});
  }
  const RowColumns<CheckRow> check_columns{
      "pass_checks",
      "What was checked of them.",
      {{"check", ColumnType::kText, "What was looked at.", &CheckRow::check},
       {"answer", ColumnType::kText, "pass, fail or not run.",
        &CheckRow::answer},
       {"evidence", ColumnType::kText, "What says so.", &CheckRow::evidence}}};
  Table checks(check_columns.schema());
  for (const CheckAnswer& check : pass.checks)
    check_columns.Add(checks, {.check = check.check,
                               .answer = check.answer,
                               .evidence = check.evidence});
  if (!pass.files.empty()) out.tables.push_back(std::move(files));
  out.tables.push_back(std::move(checks));
  for (const std::string& note : pass.notes)
    out.notes.push_back(MakeNote(Severity::kInfo, "pass", note));
  return out;
}

}  // namespace lamina::generate
