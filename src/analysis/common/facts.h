// SPDX-License-Identifier: Apache-2.0
//
// What is found out about a trace once and used by many: the model of its host,
// the causes of idle time, layers, costs.
//
// A fact is a class F with
//
//   static constexpr std::string_view kFact = "idle causes";
//   static Result<F> Of(const Context& context);   // or: const Input& input
//
// Whoever needs it asks for it, `context.Get<F>()`; it is made when it is first
// asked for, from any thread (base/memo.h). A fact asks for those it is made of
// in the same way.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "base/memo.h"
#include "base/timer.h"

namespace lamina::analysis {

// The facts of one subject; what is given out lives as long as this.
template <class Subject>
class Facts {
 public:
  // `times` learns how long each fact took; may be null.
  explicit Facts(const Subject& subject, StageTimes* times = nullptr)
      : subject_(subject), times_(times) {}

  template <class F>
  Result<const F*> Get() const {
    LAMINA_ASSIGN(
        const auto fact,
        made_.Get<F>(typeid(F).name(),
                     [&]() -> Result<std::shared_ptr<const F>> {
                       const ScopedStage stage(times_, std::string(F::kFact));
                       LAMINA_ASSIGN(F made, F::Of(subject_));
                       return std::make_shared<const F>(std::move(made));
                     }));
    return fact.get();
  }

 private:
  const Subject& subject_;
  StageTimes* const times_;
  mutable Memo made_;
};

}  // namespace lamina::analysis
