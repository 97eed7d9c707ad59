// SPDX-License-Identifier: Apache-2.0
#include "engine/sequences.h"

#include "engine/fusion_names.h"

namespace lamina::engine {

namespace host = analysis::host;

Result<Table> SequencesTable(
    const Session& session, const host::HostModel& model,
    const host::Idle& idle,
    const std::function<Result<const analysis::layers::LayerModel*>()>&
        layers) {
  const auto sequences = host::FindSequences(model, idle);
  FusionNames rules;
  host::SequenceFacts facts;
  if (!sequences.empty()) {
    LAMINA_ASSIGN(rules, FusionNames::Load(session.data()));
    facts.rule = [&](std::span<const tree::NodeId> launchers) {
      return rules.Find(model.context().tree, launchers);
    };
    LAMINA_ASSIGN(const analysis::layers::LayerModel* const found, layers());
    for (const analysis::layers::Layer& layer : found->layers)
      facts.layers.emplace_back(layer.work);
  }
  return host::SequenceTable(model, sequences, facts);
}

}  // namespace lamina::engine
