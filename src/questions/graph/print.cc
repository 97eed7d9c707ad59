// SPDX-License-Identifier: Apache-2.0
//
// lamina graph print: text to graph to text, and what is wrong with a dump.
#include "graph/print.h"

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "graph/tables.h"
#include "graph/verify.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"

namespace lamina::questions {
namespace {

struct GraphPrintOptions {
  std::string path;
  std::string section;
  graph::ParseOptions parse;
  std::string as;
  bool normalize = false;
  bool stats = false;
  bool check = false;
  std::vector<std::string> bind;
};

// Findings of a file, one after the other; the exit status says whether there
// are any.
Answer Check(const graph::Dump& dump) {
  std::string out = graph::Format(dump.diagnostics, dump.name);
  size_t findings = dump.diagnostics.Count(graph::Level::kError) +
                    dump.diagnostics.Count(graph::Level::kWarning);
  const std::string printed = graph::Print(dump);
  if (printed != *dump.text) {
    size_t at = 0;
    while (at < printed.size() && at < dump.text->size() &&
           printed[at] == (*dump.text)[at])
      ++at;
    out += EscapeTerminal(dump.name) + ": printing differs from byte " +
           std::to_string(at) + " on\n";
    ++findings;
  }
  for (const graph::Graph& one : dump.graphs) {
    size_t shown = 0;
    for (const graph::Violation& violation : graph::VerifyAnnotations(one)) {
      ++findings;
      if (++shown > graph::Diagnostics::kKept) continue;
      out += EscapeTerminal(dump.name) + ":" +
             std::to_string(one[violation.node].line) + ": " + violation.what +
             "\n";
    }
    if (shown > graph::Diagnostics::kKept) {
      out += EscapeTerminal(dump.name) + ": " +
             std::to_string(shown - graph::Diagnostics::kKept) +
             " more findings in graph '" + EscapeTerminal(one.name()) + "'\n";
    }
  }
  if (findings == 0) {
    out = EscapeTerminal(dump.name) + ": fine, " +
          Counted(dump.graphs.size(), "graph") + "\n";
  }
  Answer answer;
  answer.text = std::move(out);
  answer.failed = findings > 0;
  return answer;
}

Result<Answer> RunPrint(const GraphPrintOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const graph::Bindings bindings, ParseBindings(options.bind, 0));
  LAMINA_ASSIGN(const std::string path, PickDump(options.path, asker));
  LAMINA_ASSIGN(const graph::Dump dump,
                ReadGraphDump(path, options.parse, asker, options.check));
  std::vector<const graph::Graph*> graphs;
  if (options.section.empty()) {
    for (const graph::Graph& one : dump.graphs) graphs.push_back(&one);
  } else {
    LAMINA_ASSIGN(const graph::Graph* const one,
                  graph::ChooseGraph(dump, options.section));
    graphs.push_back(one);
  }
  if (options.check) return Check(dump);
  if (options.stats || !asker.for_screen()) {
    Document document;
    document.command = "graph print";
    document.inputs = {path};
    document.result.tables.push_back(graph::SectionTable(graphs));
    document.result.tables.push_back(graph::OpCountTable(graphs));
    if (!options.stats) {
      document.result.tables.push_back(graph::NodeTable(graphs, bindings));
      document.result.tables.push_back(graph::WeightTable(graphs, bindings));
      document.result.tables.push_back(graph::EdgeTable(graphs));
    }
    return Answer(std::move(document));
  }
  std::string out;
  if (!options.as.empty()) {
    graph::Header header = dump.header;
    header.modules = static_cast<int64_t>(graphs.size());
    out = graph::HeaderText(header);
    for (const graph::Graph* one : graphs) {
      graph::AppendAutodeploy(out, *one);
      out += '\n';
    }
  } else if (options.normalize) {
    for (const graph::Graph* one : graphs) {
      if (!out.empty()) out += '\n';
      graph::AppendNormalized(out, *one);
    }
  } else if (options.section.empty()) {
    out = graph::Print(dump);
  } else {
    graph::AppendGraph(out, *graphs[0]);
  }
  Answer answer;
  answer.text = std::move(out);
  return answer;
}

}  // namespace

Body DescribeGraphPrint(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphPrintOptions>();
  args.Add("dump", options->path,
           "Dump file, or a folder of dumps: the last one")
      .Required();
  args.Add("--section", options->section,
           "Only this GraphModule (default: all)");
  AddDialectOption(args, options->parse.dialect);
  args.Add("--as", options->as,
           "autodeploy: graphs of other compilers in its grammar, as graph "
           "rewrite takes them; keywords and source lines are lost")
      .OneOf({"autodeploy"});
  args.Flag("--normalize", options->normalize,
            "One name per op, values by position, canonical shapes: for "
            "comparing, not for reading back");
  args.Flag("--stats", options->stats, "Count instead of printing");
  args.Flag("--check", options->check,
            "Print only what is wrong; exit status 1 when anything is");
  args.Flag("--strict", options->parse.strict, "Stop at the first bad line");
  args.Add("--bind", options->bind,
           "Values of symbols for sizes in bytes: s72=1,s70=128")
      .SplitAtCommas();
  return [options, &asker] { return RunPrint(*options, asker); };
}

}  // namespace lamina::questions
