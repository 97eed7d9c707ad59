// SPDX-License-Identifier: Apache-2.0
//
// What the name of a kernel alone can tell: the tags of all launches of that
// name. The simple method of annotating replays ends here; it is kept for
// comparison, and its lists are what is left to say of a kernel without a
// partner.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/cudagraph/annotate.h"

namespace lamina::cudagraph {

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
