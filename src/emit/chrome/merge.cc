// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/merge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/cutter.h"
#include "base/json/scan.h"
#include "base/json/strict.h"
#include "base/json/tokens.h"
#include "base/parallel.h"
#include "emit/chrome/copy.h"

namespace lamina::emit {
namespace {

using json::Tokens;

// Arguments that are equal for events that belong together.
constexpr std::array<std::string_view, 5> kLinks = {
    "correlation", "External id", "external id", "Python id",
    "Python parent id"};

// Finds the records; what else the document says is not of this rank alone.
class Records final : public json::Router {
 public:
  json::Action Route(json::Path path, char first) override {
    if (path.empty())
      return first == '[' ? json::Action::kRecords : json::Action::kDescend;
    return path.size() == 1 && path[0] == "traceEvents" && first == '['
               ? json::Action::kRecords
               : json::Action::kSkip;
  }
  void Captured(json::Path, std::string_view, uint64_t) override {}
  void Lost(std::string_view, uint64_t, uint64_t) override { ++lost_; }
  std::string_view recovery_key() const override { return "\"traceEvents\""; }
  uint64_t lost() const { return lost_; }

 private:
  uint64_t lost_ = 0;
};

// Rewrites the records of one chunk.
class Rewriter {
 public:
  Rewriter(const MergedRank& rank, std::string& out, MergeCounts& counts)
      : rank_(rank), out_(out), counts_(counts) {}

  void Rewrite(const json::Chunk& chunk) {
    if (!chunk.suspect &&
        index_.Build(chunk.text) == json::TokenIndex::Outcome::kOk) {
      const Tokens tokens(chunk.text, index_);
      for (size_t t = 0; t < tokens.count();) {
        if (tokens.Kind(t) == '{') Record(tokens, t);
        t = tokens.Kind(t) == ',' ? t + 1 : tokens.Skip(t);
      }
      return;
    }
    json::RecordSpan span;
    for (size_t pos = 0; json::NextRecord(chunk.text, pos, span);) {
      if (span.broken) {
        ++counts_.broken;
        continue;
      }
      std::string text =
          json::Sanitize(chunk.text.substr(span.begin, span.end - span.begin));
      const size_t size = text.size();
      text.resize(size + json::kPadding);
      const std::string_view record(text.data(), size);
      if (index_.Build(record) != json::TokenIndex::Outcome::kOk) {
        ++counts_.broken;
        continue;
      }
      Record(Tokens(record, index_), 0);
    }
  }

 private:
  struct Member {
    std::string_view key;  // raw text between the quotes
    size_t value = 0;      // token
    size_t behind = 0;     // token
  };

  // Members of the object at `token`; false when it is cut.
  static bool Members(const Tokens& tokens, size_t token,
                      std::vector<Member>& members) {
    members.clear();
    return json::WalkObject(tokens, token,
                            [&](std::string_view key, size_t& value) {
                              members.push_back({key, value, 0});
                              if (!json::SkipValue(tokens, value)) return false;
                              members.back().behind = value;
                              return true;
                            });
  }

  static std::string_view Value(const Tokens& tokens, const Member& m) {
    const char kind = tokens.Kind(m.value);
    if (kind == '{' || kind == '[') return tokens.Raw(m.value, m.behind);
    return tokens.Scalar(m.value);  // of a string: with its quotes
  }

  static std::string_view Text(const Tokens& tokens, const Member& m) {
    return tokens.Kind(m.value) == '"' ? tokens.String(m.value).raw
                                       : std::string_view();
  }

  bool LeftOut(std::string_view phase, std::string_view category,
               std::string_view name) const {
    if (phase == "M") return name.starts_with("process_");
    if (category == "Trace") return true;
    return category == "python_function" && !rank_.python;
  }

  void Record(const Tokens& tokens, size_t token) {
    if (!Members(tokens, token, members_)) {
      ++counts_.broken;
      return;
    }
    std::string_view phase, category, name;
    const Member* start = nullptr;
    const Member* length = nullptr;
    for (const Member& m : members_) {
      if (m.key == "ph") phase = Text(tokens, m);
      if (m.key == "cat") category = Text(tokens, m);
      if (m.key == "name") name = Text(tokens, m);
      if (m.key == "ts") start = &m;
      if (m.key == "dur") length = &m;
    }
    if (LeftOut(phase, category, name)) {
      ++counts_.left_out;
      return;
    }
    const auto time = [&](const Member* m) -> std::optional<int64_t> {
      if (m == nullptr) return std::nullopt;
      const auto parsed = ParseMicroseconds(tokens.Kind(m->value) == '"'
                                                ? tokens.String(m->value).raw
                                                : tokens.Scalar(m->value));
      if (!parsed || parsed->ns > kMostNs || parsed->ns < -kMostNs)
        return std::nullopt;
      return parsed->ns;
    };
    const auto start_ns = time(start);
    const auto dur_ns = time(length);
    // A time that is no time of a clock (1e308) would be one of no rank.
    if ((start != nullptr && !start_ns) || (length != nullptr && !dur_ns)) {
      ++counts_.broken;
      return;
    }
    extra_ = "\"rank\":";
    AppendInt(extra_, rank_.rank);
    const Member* arguments = nullptr;
    const size_t begin = out_.size();
    out_ += '{';
    bool first = true;
    for (const Member& m : members_) {
      if (m.key == "args" && tokens.Kind(m.value) == '{') {
        arguments = &m;
        continue;
      }
      if (!first) out_ += ',';
      first = false;
      out_ += '"';
      out_ += m.key;
      out_ += "\":";
      if (&m == start && start_ns) {
        AppendMicroseconds(out_, rank_.clock(*start_ns));
      } else if (&m == length && start_ns && dur_ns && *dur_ns >= 0) {
        AppendMicroseconds(
            out_, rank_.clock(*start_ns + *dur_ns) - rank_.clock(*start_ns));
      } else if (m.key == "pid") {
        Process(tokens, m);
      } else if (m.key == "id" || m.key == "bind_id") {
        Shifted(Value(tokens, m), m.key);
      } else {
        out_ += Value(tokens, m);
      }
    }
    out_ += first ? "\"args\":{" : ",\"args\":{";
    if (arguments != nullptr && Members(tokens, arguments->value, members_)) {
      for (const Member& m : members_) {
        if (m.key == "rank") continue;  // of the profiler: the same number
        out_ += '"';
        out_ += m.key;
        out_ += "\":";
        if (std::find(kLinks.begin(), kLinks.end(), m.key) != kLinks.end()) {
          Shifted(Value(tokens, m), m.key);
        } else {
          out_ += Value(tokens, m);
        }
        out_ += ',';
      }
    }
    out_ += extra_;
    out_ += "}}";
    // The walk sees tokens only: "083" is one, and no number.
    if (!json::IsStrict(std::string_view(out_).substr(begin))) {
      const auto mended =
          json::MakeStrict(std::string_view(out_).substr(begin));
      out_.resize(begin);
      if (!mended) {
        ++counts_.broken;
        return;
      }
      out_ += *mended;
    }
    out_ += ",\n";
    ++counts_.written;
  }

  void Process(const Tokens& tokens, const Member& m) {
    const bool quoted = tokens.Kind(m.value) == '"';
    const std::string_view pid =
        quoted ? Text(tokens, m) : tokens.Scalar(m.value);
    Keep("pid", Value(tokens, m));
    for (const MergedProcess& process : rank_.processes) {
      if (process.pid == pid) {
        AppendInt(out_, process.merged_pid);
        return;
      }
    }
    // Metadata of processes without events.
    out_ += "\"rank ";
    AppendInt(out_, rank_.rank);
    out_ += ' ';
    out_ += quoted ? pid : tokens.Scalar(m.value);
    out_ += '"';
  }

  // An id that no other rank has; 0 and less mean none.
  void Shifted(std::string_view value, std::string_view key) {
    const bool quoted = value.starts_with('"');
    const auto number = quoted ? std::nullopt : ParseInt(value);
    if (quoted && value.size() > 2) {
      Keep(key, value);
      out_ += '"';
      AppendInt(out_, rank_.rank);
      out_ += ':';
      out_ += value.substr(1);
    } else if (number && *number > 0 && *number < kMostId) {
      Keep(key, value);
      AppendInt(out_, *number + rank_.id_shift);
    } else {
      out_ += value;
    }
  }

  void Keep(std::string_view key, std::string_view value) {
    extra_ += ",\"";
    extra_ += key;
    extra_ += "_raw\":";
    extra_ += value;
  }

  static constexpr int64_t kMostNs = int64_t{1} << 61;
  static constexpr int64_t kMostId = int64_t{1} << 62;

  const MergedRank& rank_;
  std::string& out_;
  MergeCounts& counts_;
  json::TokenIndex index_;
  std::vector<Member> members_;
  std::string extra_;
};

void NameProcesses(const MergedRank& rank, ByteSink& sink) {
  std::string out;
  for (const MergedProcess& process : rank.processes) {
    AppendName(out, "process_name", process.merged_pid, 0, process.name);
    out += "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":";
    AppendInt(out, process.merged_pid);
    out += ",\"tid\":0,\"args\":{\"sort_index\":";
    AppendInt(out, process.sort_index);
    out += "}},\n";
  }
  sink.Write(out);
}

}  // namespace

Result<MergeCounts> AppendRank(std::unique_ptr<ByteSource> source,
                               const MergedRank& rank, int threads,
                               ByteSink& sink) {
  NameProcesses(rank, sink);
  Records router;
  json::JsonStream stream(std::move(source), &router, {});
  struct Part {
    json::Chunk chunk;
    std::string out;
    MergeCounts counts;
  };
  std::vector<Part> parts(static_cast<size_t>(std::max(threads, 1)));
  MergeCounts counts;
  for (bool more = true; more;) {
    size_t filled = 0;
    while (filled < parts.size()) {
      LAMINA_ASSIGN(more, stream.Next(parts[filled].chunk));
      if (!more) break;
      ++filled;
    }
    ParallelFor(threads, filled, [&](size_t i) {
      Part& part = parts[i];
      part.out.clear();
      part.counts = {};
      Rewriter(rank, part.out, part.counts).Rewrite(part.chunk);
    });
    for (size_t i = 0; i < filled; ++i) {
      sink.Write(parts[i].out);
      counts.written += parts[i].counts.written;
      counts.left_out += parts[i].counts.left_out;
      counts.broken += parts[i].counts.broken;
    }
  }
  counts.broken += router.lost();
  return counts;
}

}  // namespace lamina::emit
