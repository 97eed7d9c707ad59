// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/stacks.h"

#include <algorithm>

#include "base/escape.h"
#include "base/text.h"

namespace lamina::compat::tracelens {
namespace {

constexpr std::string_view kModule = "nn.Module: ";

bool IsModule(const Model& model, NodeId node) {
  return model.tree().kind(node) == trace::Kind::kPython &&
         model.tree().name(node).starts_with(kModule);
}

std::string ListOf(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ", ";
    AppendPythonQuoted(out, item);
  }
  return out + "]";
}

// Frames between the caller's own code and the op.
bool IsWrapper(std::string_view frame) {
  for (const std::string_view start :
       {"<built-in", "pybind11_builtins", "nn.Module:"}) {
    if (frame.starts_with(start)) return true;
  }
  for (const std::string_view path :
       {"torch/_ops.py", "torch/nn/modules/module.py",
        "torch/utils/_contextlib.py", "torch/utils/_device.py",
        "torch/_tensor.py", "torch/functional.py", "torch/overrides.py",
        "torch/_inductor/", "torch/_functorch/",
        "torch/distributed/c10d_logger.py", "triton/backends/"}) {
    if (Contains(frame, path)) return true;
  }
  const size_t colon = frame.rfind(": ");
  const std::string_view function =
      colon == std::string_view::npos ? frame : frame.substr(colon + 2);
  constexpr std::string_view kFunctions[] = {"__torch_function__",
                                             "_call_impl",
                                             "_wrapped_call_impl",
                                             "decorate_context",
                                             "dispatch_wrapper",
                                             "handle_torch_function",
                                             "wrapper",
                                             "custom_wrapper",
                                             "wrapper_custom",
                                             "outer_wrapper"};
  return std::find(std::begin(kFunctions), std::end(kFunctions), function) !=
         std::end(kFunctions);
}

}  // namespace

std::string WithoutNumbers(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    size_t end = i + 1;
    if (name[i] == '_') {
      while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    }
    if (end > i + 1) {
      i = end - 1;
    } else {
      out += name[i];
    }
  }
  return out;
}

std::string ParentModule(const Model& model, NodeId node) {
  for (NodeId up = model.tree().parent(node); up.valid();
       up = model.tree().parent(up)) {
    if (IsModule(model, up)) return WithoutNumbers(model.tree().name(up));
  }
  return "NA";
}

std::string CallStack(const Model& model, NodeId node) {
  std::vector<std::string> names = {model.Name(node)};
  for (NodeId up = model.tree().parent(node); up.valid();
       up = model.tree().parent(up)) {
    if (IsModule(model, up)) names.emplace_back(model.tree().name(up));
  }
  return ListOf(names);
}

std::string KernelList(const Model& model, std::span<const SliceId> work) {
  std::vector<std::string> names;
  for (const SliceId s : work) names.emplace_back(model.trace().Name(s));
  return ListOf(names);
}

std::string CallStackFull(const Model& model, std::span<const SliceId> work,
                          std::string_view pseudo) {
  std::vector<std::vector<std::string>> stacks;
  for (const SliceId s : work) {
    std::vector<std::string> stack;
    for (NodeId up = model.tree().launch(s); up.valid();
         up = model.tree().parent(up)) {
      const std::string_view name = model.tree().name(up);
      if (model.tree().IsOp(up)) {
        stack.push_back(WithoutNumbers(model.Name(up)));
      } else if (IsModule(model, up) ||
                 (model.tree().kind(up) == trace::Kind::kPython &&
                  (Contains(name, "::") || Contains(name, "/")))) {
        stack.push_back(WithoutNumbers(name));
      }
    }
    std::reverse(stack.begin(), stack.end());
    if (!pseudo.empty()) {
      // TraceLens climbs from the pseudo-op, then from the call below it.
      const std::vector<std::string> above = stack;
      stack.emplace_back(pseudo);
      stack.insert(stack.end(), above.begin(), above.end());
    }
    stack.emplace_back(model.trace().Name(s));
    if (std::find(stacks.begin(), stacks.end(), stack) == stacks.end())
      stacks.push_back(std::move(stack));
  }
  if (stacks.empty()) return "[]";
  if (stacks.size() == 1) return ListOf(stacks[0]);
  size_t common = 0;
  while (std::all_of(stacks.begin(), stacks.end(), [&](const auto& stack) {
    return common < stack.size() && stack[common] == stacks[0][common];
  }))
    ++common;
  std::string out = "[";
  for (size_t i = 0; i < common; ++i) {
    AppendPythonQuoted(out, stacks[0][i]);
    out += ", ";
  }
  for (size_t i = 0; i < stacks.size(); ++i) {
    if (i > 0) out += ", ";
    out += ListOf(
        {stacks[i].begin() + static_cast<ptrdiff_t>(common), stacks[i].end()});
  }
  return out + "]";
}

std::string EntryPoint(const Model& model, NodeId node) {
  const tree::Tree& tree = model.tree();
  std::string local = LowerCase(model.Name(node));
  const size_t colons = local.rfind("::");
  if (colons != std::string::npos) local = local.substr(colons + 2);
  for (uint32_t n = node.value + 1; n < tree.end(node).value; ++n) {
    const NodeId below(n);
    // Only what leads to device work.
    if (tree.kind(below) != trace::Kind::kPython || !tree.HasDeviceWork(below))
      continue;
    const std::string_view frame = tree.name(below);
    const size_t colon = frame.rfind(": ");
    if (!Contains(frame, ".py") || colon == std::string_view::npos) continue;
    if (Contains(LowerCase(frame.substr(colon + 2)), local))
      return WithoutNumbers(frame);
  }
  for (NodeId up = tree.parent(node); up.valid(); up = tree.parent(up)) {
    if (tree.kind(up) != trace::Kind::kPython) continue;
    const std::string_view frame = tree.name(up);
    if (Contains(frame, ".py") && !IsWrapper(frame))
      return WithoutNumbers(frame);
  }
  return "Not found";
}

}  // namespace lamina::compat::tracelens
