// SPDX-License-Identifier: Apache-2.0
//
// lamina tree: the call tree or the module tree with device time.
#include <optional>

#include "analysis/calltree/calltree.h"
#include "questions/bodies.h"
#include "questions/compiled_input.h"

namespace lamina::questions {
namespace {

struct TreeOptions {
  std::string trace;
  std::string by;
  size_t depth = 1000;
  double min_share = 0.1;
  bool expand = false;
  bool python_stacks = false;
  std::vector<std::string> compiled;
};

// The same table with the names drawn as a tree.
Table Drawn(const Table& table) {
  Table out(table.schema());
  const size_t rows = table.rows();
  std::vector<size_t> depths;
  for (size_t row = 0; row < rows; ++row)
    depths.push_back(static_cast<size_t>(table.At(row, "depth").integer()));
  // Is there a later row of the same depth before the parent ends?
  std::vector<bool> last(rows, true);
  std::vector<bool> seen;
  for (size_t row = rows; row-- > 0;) {
    const size_t d = depths[row];
    if (seen.size() <= d) seen.resize(d + 1, false);
    last[row] = !seen[d];
    seen[d] = true;
    for (size_t deeper = d + 1; deeper < seen.size(); ++deeper)
      seen[deeper] = false;
  }
  std::vector<bool> open;  // is the line of this depth still going on?
  for (size_t row = 0; row < rows; ++row) {
    const size_t d = depths[row];
    open.resize(d + 1);
    std::string name;
    for (size_t k = 1; k < d; ++k) name += open[k] ? "\u2502  " : "   ";
    if (d > 0) name += last[row] ? "\u2514\u2500 " : "\u251C\u2500 ";
    open[d] = !last[row];
    name += table.At(row, 0).text();
    std::vector<Value> values = {name};
    for (size_t c = 1; c < table.columns(); ++c)
      values.push_back(table.At(row, c));
    out.AddRow(values);
  }
  return out;
}

Result<Answer> RunTree(const TreeOptions& options, Asker& asker) {
  engine::OpenOptions open = asker.Open();
  open.captured_frames = options.python_stacks;
  LAMINA_ASSIGN(auto session, asker.OpenTrace(options.trace, open));
  analysis::Settings settings;
  settings.threads = asker.ThreadCount();
  LAMINA_ASSIGN(const analysis::Context* const found,
                session->ContextFor(tree::LinkMode::kAuto,
                                    options.python_stacks, settings));
  const analysis::Context& context = *found;
  analysis::calltree::TreeOptions tree_options;
  tree_options.max_depth = options.depth;
  tree_options.min_percent = options.min_share;
  tree_options.merge = !options.expand;
  std::optional<analysis::CompiledWork> compiled;
  if (!options.compiled.empty()) {
    LAMINA_ASSIGN(compiled, JoinCompiledFiles(options.compiled, context));
    tree_options.compiled = &*compiled;
  }
  // Compiled kernels stand below ops.
  const bool by_module =
      options.by == "module" ||
      (options.by.empty() && !context.modules.empty() && !compiled);
  Document document;
  document.command = "tree";
  document.inputs = {options.trace};
  document.inputs.insert(document.inputs.end(), asker.captures.begin(),
                         asker.captures.end());
  if (by_module && context.modules.empty()) {
    document.result.notes.push_back(MakeNote(
        Severity::kWarning, "no_modules",
        "The trace has no calls of modules; record it with with_stack=True and "
        "with_modules=True or with ranges that name modules, or use ⟨by⟩ op."));
  }
  Table table = by_module
                    ? analysis::calltree::MakeModuleTree(context, tree_options)
                    : analysis::calltree::MakeOpTree(context, tree_options);
  if (asker.for_screen()) {
    table = Drawn(table);
    if (asker.top == 0) asker.top = 500;
  }
  document.result.tables.push_back(std::move(table));
  if (compiled) {
    document.result.notes.insert(document.result.notes.end(),
                                 compiled->notes.begin(),
                                 compiled->notes.end());
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeTree(Description& args, Asker& asker) {
  auto options = std::make_shared<TreeOptions>();
  args.Add("trace", options->trace, "Trace file").Required();
  args.Add("--by", options->by,
           "module or op (default: module if the trace has modules)")
      .OneOf({"op", "module"});
  args.Add("--depth", options->depth, "Levels to show").Whole(1, 1000);
  args.Add("--min-share", options->min_share,
           "Fold lines below this percentage of the device time")
      .Within(0.0, 100.0)
      .ShowDefault();
  args.Flag("--expand", options->expand,
            "One line per module instead of \"24 x DecoderLayer\"");
  args.Flag("--python-stacks", options->python_stacks,
            "Python frames too (with ⟨by⟩ op)");
  asker.AddCapturesTo(args);
  asker.AddRegionTo(args);
  AddCompiledTo(args, options->compiled);
  return [options, &asker] { return RunTree(*options, asker); };
}

}  // namespace lamina::questions
