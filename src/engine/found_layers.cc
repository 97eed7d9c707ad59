// SPDX-License-Identifier: Apache-2.0
#include "engine/found_layers.h"

namespace lamina::engine {

Result<FoundLayers> FindLayers(const Session& session,
                               const analysis::Context& context,
                               const analysis::layers::Options& options) {
  FoundLayers found;
  LAMINA_ASSIGN(found.rules, analysis::layers::LoadRules(session.data()));
  found.model = analysis::layers::FindLayers(context, *found.rules, options);
  found.tables = analysis::layers::LayerTables(context, *found.rules,
                                               found.model, options);
  return found;
}

}  // namespace lamina::engine
