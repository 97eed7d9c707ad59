// SPDX-License-Identifier: Apache-2.0
//
// A user's file of cost models (data/costs): formulas are compiled, held
// against their examples, and evaluated for calls of several forms. Costs are
// finite and not negative, as ModelSet::Evaluate says.
#include <cmath>

#include "base/status.h"
#include "cost/arguments.h"
#include "cost/models.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  auto file = rules::ParseYaml(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  if (!file) return 0;
  const auto set = cost::ModelSet::FromFiles(
      {std::make_shared<const rules::DataFile>(std::move(*file))});
  if (!set) return 0;
  cost::CheckExamples(**set);
  struct Form {
    const char* dims;
    const char* types;
    const char* concrete;
  };
  for (const std::string_view name : (*set)->Ops()) {
    const cost::OpModel* const op = (*set)->Find(name);
    if (op == nullptr) continue;
    for (const Form& form :
         {Form{"[]", "[]", "[]"},
          Form{"[[4, 8], [8, 16], []]", "[\"float\", \"float\", \"Scalar\"]",
               "[\"\", \"\", \"1\"]"},
          Form{"[[1, 8, 128, 64], [0], [[2, 3], [-1]]]",
               "[\"c10::Half\", \"\", \"TensorList\"]",
               "[\"\", \"[1, 2]\", \"9223372036854775807\"]"}}) {
      const auto call =
          cost::ParseCall(name, form.dims, form.types, form.concrete);
      if (!call) continue;
      for (const bool backward : {false, true}) {
        if (backward && !(*set)->HasBackward(*op)) continue;
        const auto cost = (*set)->Evaluate(*op, *call, backward);
        LAMINA_CHECK(!cost || (std::isfinite(cost->flops) &&
                               std::isfinite(cost->bytes) && cost->flops >= 0 &&
                               cost->bytes >= 0));
      }
    }
  }
  return 0;
}
