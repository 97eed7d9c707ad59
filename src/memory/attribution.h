// SPDX-License-Identifier: Apache-2.0
//
// Who allocated memory and what for: line, op and module of every stack, by the
// frames of data/memory/frames.yaml, and the category of every allocation, by
// the rules of data/memory/categories.yaml.
//
// Python and native frames of a stack are looked at as two sequences: since
// Python 3.11 their order among each other is not recorded.
#pragma once

#include <memory>
#include <re2/re2.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "memory/model.h"
#include "rules/document.h"

namespace lamina::memory {

enum class Category : uint8_t {
  kParameter,
  kGradient,
  kOptimizerState,
  kActivation,
  kTemporary,
  kInput,
  kWorkspace,
  kKvCache,
  kCommunication,
  kResident,
  kUnknown,
};
inline constexpr size_t kCategories = 11;
std::string_view CategoryName(Category category);

// A frame as rules see it.
struct FrameText {
  std::string_view name;
  std::string_view file;
};
// Python frames end in .py, .pyx or .pyi, or are of a notebook or no file.
bool IsPython(std::string_view file);

struct CategoryRule {
  std::string id;
  Category category = Category::kUnknown;
  Confidence confidence = Confidence::kLow;
  std::unique_ptr<RE2> native, file, function, freed_file, freed_function,
      annotation;
  std::optional<bool> before, freed;
  bool outlives_backward = false;
  bool outlives_optimizer = false;
  std::string text;  // the conditions, for lists
  std::string source;
  uint32_t line = 0;
  struct Example {
    std::vector<std::string> frames, freed_frames, lives;
    bool matches = true;
  };
  std::vector<Example> examples;
};

// Of an allocation, what rules ask beside its frames.
struct Life {
  bool before = false;
  bool freed = false;
  bool backward = false;   // outlived one
  bool optimizer = false;  // outlived a step of one, or was never freed
};

class Rules {
 public:
  static constexpr size_t kMostRules = 64;  // bits of a mask

  static Result<std::shared_ptr<const Rules>> Load(const rules::DataSet& data);

  const std::vector<CategoryRule>& rules() const { return rules_; }
  // Rules whose conditions on one frame hold, as bits.
  uint64_t NativeMask(std::string_view name) const;
  uint64_t PythonMask(const FrameText& frame) const;
  uint64_t FreedMask(const FrameText& frame) const;
  uint64_t AnnotationMask(std::string_view name) const;
  // Rules without such a condition: their bit is always set.
  uint64_t no_native() const { return no_native_; }
  uint64_t no_python() const { return no_python_; }
  uint64_t no_freed() const { return no_freed_; }
  uint64_t no_annotation() const { return no_annotation_; }
  // The first of these rules whose conditions on the life hold.
  size_t First(uint64_t rules, const Life& life) const;

  bool IsOwn(std::string_view path) const;
  bool IsHop(std::string_view function) const;
  bool IsNoise(const FrameText& frame) const;

  std::vector<std::string> CheckExamples() const;

 private:
  Status AddCategories(const rules::DataFile& file);
  Status AddFrames(const rules::DataFile& file);

  std::vector<CategoryRule> rules_;
  uint64_t no_native_ = 0, no_python_ = 0, no_freed_ = 0, no_annotation_ = 0;
  std::vector<std::string> hops_;
  std::unique_ptr<RE2> glue_, library_, noise_, noise_files_;
};

// What follows from one stack. Texts are as the tables show them.
struct StackFacts {
  std::string line;        // "file.py:12 function", or "(native)" and the like
  std::string op;          // "aten::mm"
  std::string module;      // "model@3/linear@7"
  std::string line_key;    // "file.py function": without the number
  std::string module_key;  // without "@3"
  std::string_view file;   // of the line; empty: none
  int32_t line_number = 0;
  std::string_view function;
  uint64_t rules = 0;        // that its frames allow
  uint64_t freed_rules = 0;  // that it allows as the stack of a free
  bool engine = false;       // in a backward pass
  bool optimizer = false;    // in a step of an optimizer
  bool forward = false;      // in forward() of a module
  bool any_native = false;
};

struct AttributionOptions {
  std::string own;  // RE2: what counts as own code; empty: by frames.yaml
};

// Of one device. Sets category, rule and confidence of its allocations.
class Attribution {
 public:
  static Result<std::unique_ptr<Attribution>> Make(
      std::shared_ptr<const Rules> rules, Device* device,
      const AttributionOptions& options);

  const StackFacts& Of(const Allocation& a) const {
    return a.autograd_thread ? thread_ : facts_[a.stack];
  }
  const StackFacts& OfStack(uint32_t stack) const { return facts_[stack]; }
  const Rules& rules() const { return *rules_; }
  // Alloc events of a forward, in order.
  const std::vector<Moment>& forwards() const { return forward_; }
  const std::vector<Moment>& backwards() const { return backward_; }
  const std::vector<Moment>& optimizers() const { return optimizer_; }
  bool any_native() const { return any_native_; }
  bool python_only() const { return python_only_; }
  Life LifeOf(const Device& device, const Allocation& a) const;

 private:
  StackFacts FactsOf(const Snapshot& snapshot, uint32_t stack,
                     const RE2* own) const;

  std::shared_ptr<const Rules> rules_;
  std::vector<StackFacts> facts_;
  StackFacts thread_;
  std::vector<Moment> forward_, backward_, optimizer_;
  bool any_native_ = false;
  bool python_only_ = false;
  bool any_frames_ = false;
};

}  // namespace lamina::memory
