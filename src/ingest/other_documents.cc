// SPDX-License-Identifier: Apache-2.0
#include "ingest/other_documents.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/decimal.h"

namespace lamina::ingest {
namespace {

// More is not read to find the time.
constexpr size_t kMostBytes = size_t{256} << 20;

struct Document {
  // All of these stand in the first bytes, and "traceEvents" does not.
  std::array<std::string_view, 3> words;
  char first;  // character that is no white space; 0: any
  std::string_view name;
  std::string_view hint;
  // Key in front of each time, or column of a table; empty: no times.
  std::string_view time_key;
  double unit_ns;
  bool csv;  // a table with a line of headings
};

constexpr std::array<Document, 12> kDocuments = {{
    {{"\"schema\"", "\"nodes\"", "rf_id"},
     '{',
     "an execution trace (ops and their inputs)",
     "it has no times: give the Kineto trace of the same run",
     "",
     0,
     false},
    {{"\"schema\"", "\"nodes\"", "ctrl_deps"},
     '{',
     "an execution trace (ops and their inputs)",
     "it has no times: give the Kineto trace of the same run",
     "",
     0,
     false},
    {{"version https://git-lfs", "oid sha256:", "size "},
     'v',
     "a pointer of Git LFS, not the file that it stands for",
     "fetch the file: git lfs pull",
     "",
     0,
     false},
    {{"\"Kernel Name\"", "\"Metric Name\"", "\"Metric Value\""},
     0,
     "a table of Nsight Compute (metrics per kernel)",
     "it has no timeline: record one with nsys, and export it (nsys export "
     "--type sqlite)",
     "",
     0,
     false},
    {{"<html", "data:image/png;base64", ""},
     '<',
     "a page of export_memory_timeline with a picture",
     "record a memory snapshot instead (torch.cuda.memory._dump_snapshot) and "
     "ask ⟨memory()⟩",
     "",
     0,
     false},
    {{"<html", "", ""},
     '<',
     "an HTML page, not a trace",
     "download the trace file itself; a page of lamina is made anew from it",
     "",
     0,
     false},
    {{"\"workload_graph\"", "", ""},
     '{',
     "a graph of the Chakra converter",
     "give the Kineto trace that it was made of",
     "",
     0,
     false},
    {{"\"timeMs\"", "\"averageMs\"", "\"count\""},
     '[',
     "a profile of TensorRT layers",
     "it is not read yet, and has no timeline: record the engine with nsys",
     "\"timeMs\"",
     1e6,
     false},
    {{"\"frame\"", "\"metrics\"", "\"children\""},
     '[',
     "a call tree of Triton's proton",
     "it is not read yet, and has no timeline",
     "\"time (ns)\"",
     1,
     false},
    {{"Dispatch_ID", "Kernel_Name", "TCC_"},
     0,
     "a table of counters per kernel (pmc_perf.csv of rocprof-compute)",
     "it is not read yet, and has no timeline",
     "",
     0,
     true},
    {{"Dispatch_ID", "Kernel_Name", "SQ_"},
     0,
     "a table of counters per kernel (pmc_perf.csv of rocprof-compute)",
     "it is not read yet, and has no timeline",
     "",
     0,
     true},
    {{"Time (%)", "Total Time (ns)", "Instances"},
     0,
     "a summary of nsys stats",
     "give the .sqlite of nsys export",
     "",
     0,
     true},
}};

// A list of lists of four numbers each, as torch.profiler writes the raw
// timeline of memory.
bool IsMemoryTimeline(std::string_view head) {
  std::string plain;
  for (const char c : head.substr(0, 4096)) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') plain += c;
  }
  if (!plain.starts_with("[[")) return false;
  size_t commas = 0;
  for (size_t i = 2; i < plain.size(); ++i) {
    const char c = plain[i];
    // Records of four numbers, or the list of all times before that of sizes.
    if (c == ']') return commas == 3 || commas > 8;
    commas += c == ',';
    if (c != ',' && c != '-' && c != '.' && (c < '0' || c > '9')) return false;
  }
  return commas > 8;
}

bool Fits(const Document& document, std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (document.first != 0 &&
      (first == head.npos || head[first] != document.first))
    return false;
  std::string_view where = head;
  // Of a table the first line counts.
  if (document.csv) where = head.substr(0, head.find('\n'));
  return where.find("\"traceEvents\"") == where.npos &&
         std::all_of(document.words.begin(), document.words.end(),
                     [&](std::string_view word) {
                       return where.find(word) != where.npos;
                     });
}

std::string ReadStart(Input& input) {
  std::string text;
  if (input.piped()) return text;
  auto source = input.Open();
  if (!source) return text;
  std::vector<char> block(size_t{1} << 20);
  while (text.size() < kMostBytes) {
    const auto got = (*source)->Read(block.data(), block.size());
    if (!got || *got == 0) break;
    text.append(block.data(), *got);
  }
  return text;
}

// The cells of a line; quotes hold commas.
std::vector<std::string_view> Cells(std::string_view line) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i == line.size() || (line[i] == ',' && !quoted)) {
      out.push_back(line.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return out;
}

struct Times {
  size_t count = 0;
  double ns = 0;
};

Times SumTimes(const Document& document, const std::string& text) {
  Times times;
  const auto add = [&](std::string_view number) {
    const size_t begin = number.find_first_not_of(" \t\":");
    if (begin == number.npos) return;
    number.remove_prefix(begin);
    const size_t end = number.find_first_not_of("0123456789.eE+-");
    if (const auto value = ParseDouble(number.substr(0, end))) {
      ++times.count;
      times.ns += *value * document.unit_ns;
    }
  };
  if (!document.csv) {
    const std::string_view all = text;
    for (size_t at = all.find(document.time_key); at != all.npos;
         at = all.find(document.time_key, at + 1))
      add(all.substr(at + document.time_key.size(), 64));
    return times;
  }
  size_t column = 0;
  bool head = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto cells = Cells(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (head) {
      const auto found =
          std::find(cells.begin(), cells.end(), document.time_key);
      if (found == cells.end()) break;
      column = static_cast<size_t>(found - cells.begin());
      head = false;
    } else if (column < cells.size()) {
      add(cells[column]);
    }
  }
  return times;
}

}  // namespace

std::optional<Error> RefuseOther(Input& input) {
  if (input.directory()) return std::nullopt;
  const std::string_view head = input.head();
  if (IsMemoryTimeline(head)) {
    return InputErrorAt(input.path(), 0,
                        "is a raw timeline of memory (a list of lists), which "
                        "has no events",
                        "give the trace of export_chrome_trace");
  }
  for (const Document& document : kDocuments) {
    if (!Fits(document, head)) continue;
    std::string what = "is " + std::string(document.name);
    if (!document.time_key.empty()) {
      const Times times = SumTimes(document, ReadStart(input));
      if (times.count > 0 && times.ns < 9e18) {
        what += fmt::format(": {} times, {} in sum",
                            GroupDigits(static_cast<int64_t>(times.count)),
                            HumanTime(static_cast<int64_t>(times.ns)));
      }
    }
    return InputErrorAt(input.path(), 0, std::move(what),
                        std::string(document.hint));
  }
  return std::nullopt;
}

}  // namespace lamina::ingest
