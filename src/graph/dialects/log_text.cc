// SPDX-License-Identifier: Apache-2.0

#include "graph/dialects/log_text.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <simdjson.h>

#include "graph/dialects/readers.h"
#include "graph/line_parser.h"
#include "graph/types.h"

namespace lamina::graph {

void SourceText::Append(size_t begin, size_t end) {
  if (begin >= end) return;
  // Pieces that follow each other in the file are one.
  if (pieces_.empty() ||
      pieces_.back().file + (buffer_->size() - pieces_.back().at) != begin)
    pieces_.push_back({buffer_->size(), begin});
  *buffer_ += file_.substr(begin, end - begin);
}

size_t SourceText::ToFile(size_t pos) const {
  if (!buffer_) return begin_ + pos;
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), pos,
                       [](size_t at, const Piece& p) { return at < p.at; });
  if (after == pieces_.begin()) return 0;
  const Piece& piece = *(after - 1);
  return piece.file + (pos - piece.at);
}

SourceText WithoutColours(std::string_view file, size_t begin, size_t end) {
  const std::string_view text = file.substr(begin, end - begin);
  if (text.find("\x1b[") == std::string_view::npos)
    return SourceText(file, begin, end);
  SourceText out(file);
  size_t done = 0;
  while (done < text.size()) {
    const size_t escape = text.find("\x1b[", done);
    const size_t stop = std::min(escape, text.size());
    out.Append(begin + done, begin + stop);
    if (escape == std::string_view::npos) break;
    // Parameters, then one letter.
    size_t pos = escape + 2;
    while (pos < text.size() &&
           (text[pos] == ';' || (text[pos] >= '0' && text[pos] <= '9')))
      ++pos;
    done = std::min(pos + 1, text.size());
  }
  out.Close();
  return out;
}

namespace {

size_t Digits(std::string_view text, size_t pos) {
  while (pos < text.size() && IsDigit(text[pos])) ++pos;
  return pos;
}

// Past "V1206 15:18:15.925000 1500233 "; 0 when the line begins otherwise.
size_t StampEnd(std::string_view line) {
  if (line.empty() || std::string_view("VIWEDC").find(line[0]) == kNone ||
      Digits(line, 1) != 5 || line.substr(5, 1) != " ")
    return 0;
  size_t pos = 6;
  for (const char separator : {':', ':', ' '}) {
    const size_t end = Digits(line, pos);
    if (end == pos) return 0;
    pos = end;
    if (separator == ' ' && pos < line.size() && line[pos] == '.')
      pos = Digits(line, pos + 1);
    if (pos >= line.size() || line[pos] != separator) return 0;
    ++pos;
  }
  const size_t end = Digits(line, pos);
  if (end > pos && end < line.size() && line[end] == ' ') pos = end + 1;
  return pos;
}

// Past "path:line] " behind `pos`; 0 when there is none.
size_t PlaceEnd(std::string_view line, size_t pos) {
  const size_t bracket = line.find("] ", pos);
  const size_t end =
      bracket == kNone && line.ends_with(']') ? line.size() - 1 : bracket;
  if (end == kNone) return 0;
  const std::string_view place = line.substr(pos, end - pos);
  const size_t colon = place.rfind(':');
  if (colon == kNone || colon + 1 == place.size() ||
      Digits(place, colon + 1) != place.size() || place.find(' ') != kNone)
    return 0;
  return std::min(end + 2, line.size());
}

struct Line {
  size_t begin = 0;
  size_t end = 0;   // without line end
  size_t next = 0;  // begin of the next line
};

bool NextLine(std::string_view file, size_t pos, Line& line) {
  if (pos >= file.size()) return false;
  line.begin = pos;
  const size_t end = file.find('\n', pos);
  line.end = end == kNone ? file.size() : end;
  line.next = end == kNone ? file.size() : end + 1;
  if (line.end > line.begin && file[line.end - 1] == '\r') --line.end;
  return true;
}

std::string Text(simdjson::dom::element element) {
  std::string_view text;
  if (element.get_string().get(text) == simdjson::SUCCESS)
    return std::string(text);
  int64_t number = 0;
  if (element.get_int64().get(number) == simdjson::SUCCESS)
    return std::to_string(number);
  return {};
}

}  // namespace

LogPrefix ReadLogPrefix(std::string_view line) {
  LogPrefix out;
  size_t pos = 0;
  const auto rank = [&] {
    if (line.substr(pos, 5) != "[rank") return;
    const size_t end = Digits(line, pos + 5);
    if (line.substr(end, 2) != "]:") return;
    out.rank = line.substr(pos + 5, end - pos - 5);
    pos = end + 2;
    if (pos < line.size() && line[pos] == ' ') ++pos;
  };
  rank();
  if (line.substr(pos, 1) == "[" && line.substr(pos + 1, 2) == "20") {
    // Older: "[date time,ms] [0/0] module.__artifact: [DEBUG] "
    const size_t close = line.find("] ", pos);
    const size_t level = line.find(": [", pos);
    const size_t mark = line.find(".__", pos);
    if (close == kNone || level == kNone || mark == kNone || mark > level)
      return {};
    out.artifact = line.substr(mark + 3, level - mark - 3);
    if (line.substr(close + 2, 1) == "[") {
      const size_t end = line.find(']', close + 2);
      if (end != kNone) out.frame = line.substr(close + 3, end - close - 3);
    }
    const size_t end = line.find(']', level + 3);
    if (end == kNone) return {};
    out.length = std::min(end + 2, line.size());
    return out;
  }
  const size_t stamp = StampEnd(line.substr(pos));
  const size_t place = PlaceEnd(line, pos + stamp);
  if (place == 0) return {};
  pos = place;
  rank();
  // "[0/0] ", "[0/0_1] ", "[__artifact] "
  while (pos < line.size() && line[pos] == '[') {
    const size_t end = line.find(']', pos);
    if (end == kNone) break;
    const std::string_view word = line.substr(pos + 1, end - pos - 1);
    if (word.starts_with("__")) {
      out.artifact = word.substr(2);
    } else if (!word.empty() && IsDigit(word[0]) && word.find('/') != kNone) {
      out.frame = word;
    } else {
      break;
    }
    pos = end + 1;
    if (pos < line.size() && line[pos] == ' ') ++pos;
  }
  // Without a stamp only an artifact tells a prefix from text.
  if (stamp == 0 && out.artifact.empty()) return {};
  out.length = pos;
  return out;
}

std::vector<LogPart> LogMessages(std::string_view file) {
  std::string_view lowest;
  bool ranks = false;
  Line line;
  for (size_t pos = 0; NextLine(file, pos, line); pos = line.next) {
    const LogPrefix prefix =
        ReadLogPrefix(file.substr(line.begin, line.end - line.begin));
    if (prefix.length == 0 || prefix.rank.empty()) continue;
    if (!ranks || std::pair(prefix.rank.size(), prefix.rank) <
                      std::pair(lowest.size(), lowest))
      lowest = prefix.rank;
    ranks = true;
  }
  std::vector<LogPart> out;
  std::string_view artifact;
  std::string_view frame;
  bool skip = true;
  for (size_t pos = 0; NextLine(file, pos, line); pos = line.next) {
    const std::string_view text =
        file.substr(line.begin, line.end - line.begin);
    const LogPrefix prefix = ReadLogPrefix(text);
    if (prefix.length > 0) {
      skip = ranks && prefix.rank != lowest;
      if (skip) continue;
      const std::string_view rest = text.substr(prefix.length);
      const bool title = rest.starts_with("TRACED GRAPH") ||
                         rest.starts_with(" ===== ") ||
                         rest.starts_with("===== ");
      if (out.empty() || prefix.artifact != artifact || prefix.frame != frame ||
          rest.starts_with("TRACED GRAPH")) {
        artifact = prefix.artifact;
        frame = prefix.frame;
        out.push_back({{}, std::string(frame), SourceText(file), false});
      }
      (void)title;
      out.back().source.Append(line.begin + prefix.length, line.next);
    } else if (!skip && !out.empty()) {
      out.back().source.Append(line.begin, line.next);
    }
  }
  for (LogPart& part : out) part.source.Close();
  return out;
}

bool IsTraceRecord(std::string_view line) {
  const size_t stamp = StampEnd(line);
  if (stamp == 0) return false;
  const size_t place = PlaceEnd(line, stamp);
  return place > 0 && line.substr(place).starts_with('{');
}

std::vector<LogPart> TracePayloads(std::string_view file) {
  std::vector<LogPart> out;
  simdjson::dom::parser parser;
  bool inside = false;
  Line line;
  for (size_t pos = 0; NextLine(file, pos, line); pos = line.next) {
    const std::string_view text =
        file.substr(line.begin, line.end - line.begin);
    if (!IsTraceRecord(text)) {
      if (!inside) continue;
      const bool tab = text.starts_with('\t');
      out.back().source.Append(line.begin + (tab ? 1 : 0), line.next);
      out.back().cut = line.next == file.size() && file.back() != '\n';
      continue;
    }
    inside = false;
    const size_t brace = text.find("] {");
    simdjson::dom::element root;
    if (brace == kNone ||
        parser.parse(text.data() + brace + 2, text.size() - brace - 2)
                .get(root) != simdjson::SUCCESS ||
        root["has_payload"].error() != simdjson::SUCCESS)
      continue;
    LogPart part{{}, {}, SourceText(file), false};
    simdjson::dom::element value;
    if (root["frame_id"].get(value) == simdjson::SUCCESS) {
      part.frame = Text(value);
      if (root["frame_compile_id"].get(value) == simdjson::SUCCESS)
        part.frame += "/" + Text(value);
      if (root["attempt"].get(value) == simdjson::SUCCESS && Text(value) != "0")
        part.frame += "_" + Text(value);
    }
    for (const char* wrapper : {"artifact", "graph_dump"}) {
      if (root[wrapper].get(value) == simdjson::SUCCESS &&
          value["name"].get(value) == simdjson::SUCCESS)
        part.name = Text(value);
    }
    if (part.name.empty()) {
      simdjson::dom::object object;
      if (root.get_object().get(object) != simdjson::SUCCESS) continue;
      for (const auto field : object) {
        if (field.key == "frame_id" || field.key == "frame_compile_id" ||
            field.key == "attempt" || field.key == "has_payload" ||
            field.key == "compiled_autograd_id" || field.key == "rank" ||
            field.key == "stack" || field.key == "process")
          continue;
        part.name = std::string(field.key);
        break;
      }
    }
    out.push_back(std::move(part));
    inside = true;
  }
  for (LogPart& part : out) part.source.Close();
  return out;
}

// Output code of Inductor. The comments above each kernel hold the nodes that
// it computes ("Graph fragment"); together they are a graph.

namespace {

// A line `#   %name : ... = ...` of a fragment: the place of its %.
size_t FragmentAt(std::string_view line) {
  size_t pos = 0;
  while (pos < line.size() && (line[pos] == ' ' || line[pos] == '\t')) ++pos;
  if (line.substr(pos, 2) == "//") {
    pos += 2;
  } else if (line.substr(pos, 1) == "#") {
    ++pos;
  } else {
    return kNone;
  }
  while (pos < line.size() && line[pos] == ' ') ++pos;
  return line.substr(pos, 1) == "%" && line.find("[target=", pos) != kNone
             ? pos
             : kNone;
}

template <class Visit>
void ForEachFragment(std::string_view text, Visit visit) {
  for (size_t pos = 0; pos < text.size();) {
    size_t end = std::min(text.find('\n', pos), text.size());
    const size_t next = end + 1;
    if (end > pos && text[end - 1] == '\r') --end;
    const std::string_view line = text.substr(pos, end - pos);
    const size_t at = FragmentAt(line);
    if (at != kNone) visit(Span{pos + at, end});
    pos = next;
  }
}

std::string_view NameAt(std::string_view text, size_t percent) {
  size_t end = percent + 1;
  while (end < text.size() && IsNameByte(text[end])) ++end;
  return text.substr(percent + 1, end - percent - 1);
}

}  // namespace

void ReadInductor(const SourceText& source, std::string_view name,
                  Builder& out) {
  const std::string_view text = source.text();
  out.Begin(source, name.empty() ? "output_code" : std::string(name), 0);
  // Kernels may use what a later definition computes, and extern kernels
  // have no fragment: their values are inputs here.
  absl::flat_hash_set<std::string_view> defined;
  std::vector<std::string_view> used;
  absl::flat_hash_set<std::string_view> seen;
  absl::flat_hash_map<std::string_view, std::string> inputs;  // their results
  ForEachFragment(text, [&](Span line) {
    const std::string_view one = out.Text(line);
    const std::string_view own = NameAt(text, line.begin);
    if (one.find("= PlaceHolder[") == kNone) {
      defined.insert(own);
    } else if (const size_t quote = one.find('"'); quote != kNone) {
      // Since 2.9: `%x : Tensor "f32[8, 16]" = PlaceHolder[target=x]`.
      const size_t end = SkipQuoted(one, quote);
      inputs.try_emplace(
          own, ResultOfAnnotation(one.substr(quote + 1, end - quote - 2)));
    }
    for (size_t at = one.find('%'); at != kNone; at = one.find('%', at + 1)) {
      const std::string_view other = NameAt(one, at);
      if (!other.empty() && seen.insert(other).second) used.push_back(other);
    }
  });
  for (const std::string_view value : used) {
    out.Alias(value, value);
    if (defined.contains(value)) continue;
    Builder::Statement statement;
    statement.kind = NodeKind::kPlaceholder;
    statement.name = value;
    const auto result = inputs.find(value);
    if (result != inputs.end()) statement.result = out.Keep(result->second);
    out.Add(statement);
  }
  ForEachFragment(text, [&](Span line) {
    const std::string_view own = NameAt(text, line.begin);
    if (out.Text(line).find("= PlaceHolder[") != kNone) return;
    const NodeId id = out.graph().Find(own);
    // Several kernels may compute one node.
    if (id.valid() && out.graph()[id].kind == NodeKind::kOp) return;
    ReadFxStatement(line, out);
  });
  out.End();
}

}  // namespace lamina::graph
