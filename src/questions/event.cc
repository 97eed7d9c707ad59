// SPDX-License-Identifier: Apache-2.0
//
// lamina event: everything about one event of a trace: the record as it
// stands in the file with all its arguments, what it was called from, what it
// launched or was launched by.
#include <algorithm>

#include "base/byte_source.h"
#include "base/json/scan.h"
#include "base/json/tokens.h"
#include "questions/bodies.h"
#include "table/row_columns.h"

namespace lamina::questions {
namespace {

using trace::SliceId;
using tree::NodeId;

constexpr size_t kMaxRecord = size_t{1} << 20;
constexpr size_t kMaxLaunched = 1000;

struct EventOptions {
  std::string trace;
  uint32_t uid = 0;
};

struct RelativeRow {
  std::string_view relation;
  uint32_t uid;
  std::string_view kind, name;
  int64_t start, dur;
  std::string module;
};

const RowColumns<RelativeRow>& RelativeColumns() {
  static const RowColumns<RelativeRow> columns{
      "event",
      "The event, what it was called from, and its device work.",
      {{"relation", ColumnType::kText,
        "self, caller (outermost first), launch, launched, forward or "
        "backward.",
        &RelativeRow::relation},
       {"uid", ColumnType::kInt, "Event number.", &RelativeRow::uid},
       {"kind", ColumnType::kText, "What it is.", &RelativeRow::kind},
       {"name", ColumnType::kText, "Name.", &RelativeRow::name},
       {"start_us", ColumnType::kTime, "From the first event.",
        &RelativeRow::start},
       {"dur_us", ColumnType::kTime, "Duration.", &RelativeRow::dur},
       {"module", ColumnType::kText, "nn.Module path.", &RelativeRow::module}}};
  return columns;
}

struct ArgumentRow {
  std::string key, value;
};

const RowColumns<ArgumentRow>& ArgumentColumns() {
  static const RowColumns<ArgumentRow> columns{
      "event_arguments",
      "The record as it stands in the file.",
      {{"key", ColumnType::kText, "Key; args.* for arguments.",
        &ArgumentRow::key},
       {"value", ColumnType::kText, "JSON text.", &ArgumentRow::value}}};
  return columns;
}

// Members of the JSON object `text`, the nested "args" unfolded.
void AddMembers(std::string_view text, const std::string& prefix,
                Table& table) {
  json::MemberScan members(text);
  for (json::Member member; members.Next(member);) {
    const std::string name = json::DecodeString(member.key);
    if (name == "args" && member.value.starts_with('{')) {
      AddMembers(member.value, "args.", table);
    } else {
      ArgumentColumns().Add(table, {.key = prefix + name,
                                    .value = json::Canonical(member.value)});
    }
  }
}

Result<Answer> RunEvent(const EventOptions& options, Asker& asker) {
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace));
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(const analysis::Context* const derived,
                session->ContextFor(tree::LinkMode::kAuto, true, settings));
  const analysis::Context& context = *derived;
  const trace::Trace& trace = context.trace;
  const tree::Tree& tree = context.tree;
  const auto& uids = trace.slices.uid;
  const auto* found = std::find(uids.begin(), uids.end(), options.uid);
  if (found == uids.end()) {
    return Fail(
        UsageError("⟨uid⟩: event " + std::to_string(options.uid) +
                       " is no span of time of this trace",
                   "take a number from a column first_uid or uid of a report"));
  }
  const SliceId self(static_cast<uint32_t>(found - uids.begin()));

  Table relatives(RelativeColumns().schema());
  const auto add = [&](std::string_view relation, SliceId s) {
    const NodeId node = tree.node(s);
    std::string module;
    if (node.valid()) {
      const auto owner = context.modules.OwnerOf(node);
      if (owner.path.valid()) module = context.modules.PathText(owner.path);
    }
    RelativeColumns().Add(relatives, {.relation = relation,
                                      .uid = trace.Uid(s),
                                      .kind = trace::KindName(trace.KindOf(s)),
                                      .name = trace.Name(s),
                                      .start = trace.Start(s) - trace.first_ns,
                                      .dur = trace.Duration(s),
                                      .module = module});
  };
  const bool device = trace::IsDevice(trace.KindOf(self));
  const NodeId launch = device ? tree.launch(self) : NodeId();
  const NodeId node = device ? launch : tree.node(self);
  std::vector<NodeId> callers;
  for (NodeId n = node; n.valid(); n = tree.parent(n)) callers.push_back(n);
  for (auto it = callers.rbegin(); it != callers.rend(); ++it) {
    if (tree.slice(*it) != self)
      add(*it == launch ? "launch" : "caller", tree.slice(*it));
  }
  add("self", self);
  if (!device && node.valid()) {
    size_t shown = 0;
    for (const SliceId s : tree.DeviceWork(node)) {
      if (shown++ < kMaxLaunched) add("launched", s);
    }
    if (tree.forward(node).valid())
      add("forward", tree.slice(tree.forward(node)));
    if (tree.backward(node).valid())
      add("backward", tree.slice(tree.backward(node)));
  }

  Document document;
  document.command = "event";
  document.inputs = {options.trace};
  document.result.tables.push_back(std::move(relatives));
  if (trace.info.format == "kineto" && options.trace != "-") {
    Table arguments(ArgumentColumns().schema());
    LAMINA_ASSIGN(
        const std::string text,
        ReadRange(options.trace, trace.slices.offset[self.value], kMaxRecord));
    AddMembers(text, "", arguments);
    document.result.tables.push_back(std::move(arguments));
  }
  if (asker.top == 0) asker.top = kMaxLaunched * 2;
  return Answer(std::move(document));
}

}  // namespace

Body DescribeEvent(Description& args, Asker& asker) {
  auto options = std::make_shared<EventOptions>();
  args.Add("trace", options->trace, "Trace file").Required();
  args.Add("--uid", options->uid,
           "Number of the event, from a column first_uid or uid")
      .Whole(0, kMaxUid)
      .Required();
  asker.AddCapturesTo(args);
  return [options, &asker] { return RunEvent(*options, asker); };
}

}  // namespace lamina::questions
