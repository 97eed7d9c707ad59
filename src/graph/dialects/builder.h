// SPDX-License-Identifier: Apache-2.0
//
// data/dialects: common names for the ops of other compilers, so that rules
// written in aten find them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "graph/dialects/log_text.h"
#include "graph/dump.h"
#include "rules/document.h"

namespace lamina::graph {

inline constexpr size_t kNone = std::string_view::npos;

struct OpMapping {
  std::string to;
  // Only when an operand is a tensor; `otherwise` else (may be empty: as
  // written).
  bool tensor = false;
  std::string otherwise;
  // Names of the parameters in order: keywords go to their positions.
  std::vector<std::string> args;
};

class OpsMap {
 public:
  static Result<std::shared_ptr<const OpsMap>> Load(const rules::DataSet& data);
  // The one of the program, without overlay.
  static const OpsMap& Builtin();

  // Null for ops that keep their name.
  const OpMapping* Find(std::string_view target) const;
  size_t size() const { return by_target_.size(); }

 private:
  std::vector<OpMapping> mappings_;
  TextMap<size_t> by_target_;
};

// What the readers of other compilers' dumps share: sections and nodes at
// places of the file, operands taken apart, types in the form of the model.
//
// A node keeps the bytes of its statement; everything between nodes is gap,
// head or tail, so a file prints back byte for byte whatever its layout is.

// [begin, end) of the text of a SourceText.
struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool empty() const { return begin >= end; }
};

// How names of values are written.
enum class NameStyle : uint8_t {
  kBare,     // Python: a name that is known is a value
  kPercent,  // %name is a value, bare words are not
};

class Builder {
 public:
  Builder(Dump& dump, std::shared_ptr<StringPool> ops, std::string_view dialect)
      : dump_(dump), ops_(std::move(ops)), dialect_(dialect) {}

  // --- sections ---

  // Begins a graph whose head starts at `head` of the file (what is left in
  // front belongs to the graph before). `source` must outlive End().
  // A name that is taken gets a number.
  void Begin(const SourceText& source, std::string name, size_t head_end);
  // The last graph gets the rest of the file.
  void Finish();
  bool open() const { return source_ != nullptr; }
  // Ends the graph: later Begin() is due.
  void End();
  Graph& graph() { return dump_.graphs.back(); }
  bool any() const { return !dump_.graphs.empty(); }

  // --- names ---

  // `name` of the text means the node or weight `target`.
  void Alias(std::string_view name, std::string_view target);
  // `name` will be a weight called `path`, with dots as underscores; another
  // weight of that path leaves it its own name.
  void Weight(std::string_view name, std::string_view path,
              std::string_view result);
  // What a name of the text stands for; empty: nothing that is known.
  std::string_view Resolve(std::string_view name) const;
  bool Known(std::string_view name) const { return !Resolve(name).empty(); }
  // A name that nothing has.
  std::string_view Fresh(std::string_view base);
  std::string_view Keep(std::string_view text) { return graph().Keep(text); }

  // In front of the names of graphs: the compile of a log with several.
  std::string prefix;

  // --- inputs, joined over the graphs of one compilation ---

  struct Input {
    std::string path;    // of a parameter or buffer; empty: not known
    std::string result;  // "shape : dtype"
  };
  // Inputs of the forward that was read last, in order, as its own text names
  // them.
  std::vector<Input> inputs;
  // Those of graphs that dynamo gave the compiler, which are the primals of its
  // graphs: of the nearest one first, then of others that a backward graph may
  // be of; null behind the last. Asked only for what may be one of them. May be
  // empty.
  std::function<const std::vector<Input>*(size_t)> primals;
  // There are more than these: a backward graph may be of any.
  bool more_primals = false;
  // Set where primals named a weight: those.
  const std::vector<Input>* named_by = nullptr;

  // --- nodes ---

  struct Statement {
    NodeKind kind = NodeKind::kOp;
    Span span;
    std::string_view name;
    std::string_view target;  // normalised, as the dialect names it
    std::string_view result;  // "shape : dtype"; empty: unknown
    Origin origin;
  };
  // Adds a node with the operands of `operands`.
  NodeId Add(const Statement& statement);

  // Entries of the node at hand; cleared by Add().
  std::vector<ParsedOperand> operands;
  // Reads operands separated by commas, keywords among them.
  void ReadOperands(Span span, NameStyle style);
  // One operand.
  void ReadOperand(Span span, NameStyle style);
  void AddLiteral(std::string_view text);
  void AddValue(std::string_view name, std::string_view text, bool nested);

  // --- text ---

  std::string_view text() const { return source_->text(); }
  std::string_view Text(Span span) const {
    return text().substr(span.begin, span.end - span.begin);
  }
  // Without blanks and line ends at either end, and without parentheses around
  // the whole.
  Span Trim(Span span) const;
  Span Unwrap(Span span) const;
  // Splits at commas outside of brackets and strings.
  std::vector<Span> SplitAt(Span span, char separator) const;

  void Warn(size_t pos, const std::string& what) {
    Say(Level::kWarning, pos, what);
  }
  void Error(size_t pos, const std::string& what) {
    Say(Level::kError, pos, what);
  }

 private:
  bool LimitDepth();
  void Say(Level level, size_t pos, const std::string& what);
  void ReadTokens(Span span, NameStyle style);
  uint32_t LineAt(size_t file_pos);

  Dump& dump_;
  std::shared_ptr<StringPool> ops_;
  std::string_view dialect_;
  const SourceText* source_ = nullptr;
  size_t free_ = 0;  // of the file: end of what belongs to a node or head
  size_t line_pos_ = 0;
  uint32_t line_ = 1;
  absl::flat_hash_map<std::string_view, std::string_view> names_;
  absl::flat_hash_map<std::string_view, std::string_view> results_;
  absl::flat_hash_map<std::string, size_t> section_names_;
  uint32_t fresh_ = 0;
  std::vector<uint32_t> stack_;
};

// The position of the bracket that closes the one at `open`, strings skipped;
// npos when it does not close before `end`.
size_t FindClose(std::string_view text, size_t open, size_t end);

// "f32[8, 16][16, 1]cuda:0", "Sym(s77)" as "8x16 : torch.float32"; empty for
// what is no value.
std::string ResultOfAnnotation(std::string_view annotation);
// Results "8x16 : torch.float32" and "4 : torch.int64" of one op as
// "(8x16, 4) : (torch.float32, torch.int64)".
std::string TupleResult(const std::vector<std::string>& results);
// A shape of dimensions, "scalar" for none.
std::string ShapeOf(const std::vector<std::string_view>& dims);
// "torch.bfloat16" for bf16, f32, pred, ui8 ...; unknown names as they are,
// without bytes that no dtype has.
std::string DTypeOf(std::string_view name);
// "model_layers_0_weight" for "model.layers.0.weight".
std::string Underscored(std::string_view path);
// The keys of a parameter as a path: "params['layers_3']['mlp']" is
// "params.layers_3.mlp".
std::string DottedPath(std::string_view keys);
// Operator and overload without "torch.ops.".
std::string_view NormalizedTorch(std::string_view target);

}  // namespace lamina::graph
