// SPDX-License-Identifier: Apache-2.0
//
// Names that capture and replay have in common (launch calls, kernels, ranges),
// the layer that a module is in, and the tags that a name alone can give.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/cudagraph/annotate.h"
#include "trace/trace.h"
#include "tree/modules.h"

namespace lamina::cudagraph {

// The names that capture and replay have in common: of launch calls, of
// kernels, and of the ranges that say how large a batch was.

// Launches of kernels, copies and fills; not of whole graphs.
bool IsLaunch(std::string_view call);

// A kernel name as both sides write it: demangled, without clone suffixes;
// copies and fills by kind.
std::string TokenOf(std::string_view kernel);
std::string TokenOfWork(const trace::Trace& trace, trace::SliceId work);

// Frames of frameworks, interpreters and launch machinery.
bool IsFrameworkFrame(std::string_view frame);

// The batch that the range of a capture or of a step names; -1 if none.
int64_t BatchOf(std::string_view range);

// The layer that a module is in: the number of the repeated container around
// it, 3 of "Model_0/DecoderLayer_3/LayerNorm_12".

class LayerNumbers {
 public:
  LayerNumbers(const trace::Trace& trace, const tree::Modules& modules);
  // -1: the module is in no layer.
  int64_t Of(tree::ModulePathId path) const { return number_[path.value]; }

 private:
  std::vector<int64_t> number_;  // by path
};

// What the name of a kernel alone can tell: the tags of all launches of that
// name. The simple method of annotating replays ends here; it is kept for
// comparison, and its lists are what is left to say of a kernel without a
// partner.

enum class TagKind : uint8_t { kRange, kInstance, kOp, kModule, kLine };
inline constexpr TagKind kTagKinds[] = {TagKind::kInstance, TagKind::kOp,
                                        TagKind::kModule, TagKind::kLine,
                                        TagKind::kRange};
std::string_view TagKindName(TagKind kind);
std::optional<TagKind> FindTagKind(std::string_view name);
// Empty when a launch has none of that kind.
std::string TagText(const Tags& tags, TagKind kind);

// Distinct tags of a kernel name in the order of their first use.
using NameTags = std::map<std::string, std::vector<std::string>, std::less<>>;

// The simple method, exactly: kernels by their full name, those alone that
// cudaLaunchKernel launched, each with the first range of the file that holds
// the start of its launch. `tags` is RE2. Adds to `names`.
Status AddClassicTags(const analysis::Context& context, const std::string& tags,
                      NameTags& names);

// Of all launches of the segments, by token.
NameTags TagsByName(const std::vector<Segment>& segments, TagKind kind);

// Table annotate_methods: per kind of tag what names alone tell, and what the
// alignment does.
Table MethodTable(const analysis::Context& replay,
                  const Annotation& annotation);

// Table annotate_names: the replayed kernels by name with their tags. `classic`
// says whether `names` go by full names.
ResultSet NameResult(const analysis::Context& replay,
                     const Annotation& annotation, const NameTags& names,
                     bool classic);

// The tags of one replayed kernel, ", " between; empty if its name has none.
std::string JoinedTags(const analysis::Context& replay, const NameTags& names,
                       bool classic, trace::SliceId kernel);

}  // namespace lamina::cudagraph
