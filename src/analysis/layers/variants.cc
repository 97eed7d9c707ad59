// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/variants.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/layers/labels.h"
#include "analysis/layers/layer_sums.h"
#include "base/sequence_match.h"

namespace lamina::analysis::layers {
namespace {

// Of a stack; a stack with more has layers that hardly repeat.
constexpr size_t kMostSequences = 200;

// Positions of equal values of two lists.
std::vector<SequencePair> Match(std::span<const Element> a,
                                std::span<const Element> b,
                                uint64_t Element::*value) {
  const auto values = [&](std::span<const Element> of) {
    std::vector<uint64_t> list;
    list.reserve(of.size());
    for (const Element& element : of) list.push_back(element.*value);
    return list;
  };
  return MatchSequences(values(a), values(b));
}

// Places of one stack in the order of the layer; ids do not change when
// places are put between them.
class Places {
 public:
  std::vector<uint32_t> Add(const std::vector<Element>& sequence) {
    std::vector<Element> known;
    known.reserve(order_.size());
    for (const uint32_t id : order_) known.push_back(elements_[id]);
    const std::span<const Element> places(known), added(sequence);
    std::vector<SequencePair> pairs;
    SequencePair from;
    // Between two pairs of equal names those of one family.
    const auto gap = [&](SequencePair to) {
      for (const SequencePair& pair :
           Match(places.subspan(from.a, to.a - from.a),
                 added.subspan(from.b, to.b - from.b), &Element::family))
        pairs.push_back({from.a + pair.a, from.b + pair.b});
    };
    for (const SequencePair& pair : Match(places, added, &Element::name)) {
      if (places[pair.a].family != added[pair.b].family) continue;
      gap(pair);
      pairs.push_back(pair);
      from = {pair.a + 1, pair.b + 1};
    }
    gap({static_cast<uint32_t>(places.size()),
         static_cast<uint32_t>(added.size())});
    return Join(sequence, pairs);
  }

  // The position of each id.
  std::vector<uint32_t> Positions() const {
    std::vector<uint32_t> positions(order_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) positions[order_[i]] = i;
    return positions;
  }

 private:
  // New places stand behind those that the sequence lacks.
  std::vector<uint32_t> Join(const std::vector<Element>& sequence,
                             const std::vector<SequencePair>& pairs) {
    std::vector<uint32_t> ids;
    std::vector<uint32_t> order;
    size_t at = 0;
    const auto take = [&](size_t place, size_t element) {
      for (; at < place; ++at) order.push_back(order_[at]);
      while (ids.size() < element) {
        const auto id = static_cast<uint32_t>(elements_.size());
        elements_.push_back(sequence[ids.size()]);
        ids.push_back(id);
        order.push_back(id);
      }
    };
    for (const SequencePair& pair : pairs) {
      take(pair.a, pair.b);
      ids.push_back(order_[at]);
      order.push_back(order_[at++]);
    }
    take(order_.size(), sequence.size());
    order_ = std::move(order);
    return ids;
  }

  std::vector<Element> elements_;  // by id: the first that had this place
  std::vector<uint32_t> order_;    // ids
};

// The layers of a stack that have the same sequence of work.
struct VariantSequence {
  std::vector<Element> work;
  std::vector<uint32_t> layers;
};

std::vector<VariantSequence> SequencesOf(const Context& context,
                                         const LayerModel& model,
                                         uint32_t stack) {
  const Trace& trace = context.trace;
  std::map<std::vector<uint64_t>, std::vector<uint32_t>> known;
  for (uint32_t l = 0; l < model.layers.size(); ++l) {
    if (model.layers[l].stack != stack) continue;
    std::vector<uint64_t> names;
    for (const SliceId s : model.layers[l].work)
      names.push_back(trace.slices.name[s.value].value);
    known[std::move(names)].push_back(l);
  }
  std::vector<VariantSequence> sequences;
  for (auto& [names, layers] : known) {
    VariantSequence& sequence = sequences.emplace_back();
    for (const SliceId s : model.layers[layers[0]].work) {
      sequence.work.push_back(
          {trace.slices.name[s.value].value, context.device.family(s)});
    }
    sequence.layers = std::move(layers);
  }
  std::sort(sequences.begin(), sequences.end(),
            [](const VariantSequence& a, const VariantSequence& b) {
              if (a.layers.size() != b.layers.size())
                return a.layers.size() > b.layers.size();
              return a.layers[0] < b.layers[0];
            });
  sequences.resize(std::min(sequences.size(), kMostSequences));
  return sequences;
}

}  // namespace

std::vector<std::vector<uint32_t>> AlignPlaces(
    std::span<const std::vector<Element>> sequences) {
  Places places;
  std::vector<std::vector<uint32_t>> of;
  of.reserve(sequences.size());
  for (const auto& sequence : sequences) of.push_back(places.Add(sequence));
  const std::vector<uint32_t> positions = places.Positions();
  for (auto& ids : of) {
    for (uint32_t& id : ids) id = positions[id];
  }
  return of;
}

const RowColumns<VariantRow>& VariantColumns() {
  static const RowColumns<VariantRow> columns{
      "variant_kernels",
      "Kinds of layers kernel by kernel; what does the same in two kinds of a "
      "stack has the same place.",
      {{"stack", ColumnType::kText, "Stack.", &VariantRow::stack},
       {"variant", ColumnType::kText, "Letter.", &VariantRow::variant},
       {"type", ColumnType::kText, "Type.", &VariantRow::type, Shown::kHidden},
       {"stage", ColumnType::kText, "Stage.", &VariantRow::stage},
       {"position", ColumnType::kInt, "From 0, over all kinds of the stack.",
        &VariantRow::place},
       {"kernel", ColumnType::kText, "Name.", &VariantRow::kernel},
       {"family", ColumnType::kText, "Family of the kernel.",
        &VariantRow::family},
       {"kernels", ColumnType::kInt,
        "Device events: layers of this kind that have it.",
        &VariantRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &VariantRow::kernel_time},
       {"mean_us", ColumnType::kTime, "Mean duration.", &VariantRow::mean},
       {"module", ColumnType::kText, "Path of the module above the layers.",
        &VariantRow::module, Shown::kHidden}}};
  return columns;
}

VariantKernels FindVariantKernels(const Details& in) {
  const Trace& trace = in.context.trace;
  const LayerModel& model = in.model;
  Labels labels(in.context, in.rules, Profile::kDefault, std::nullopt);
  // Stack, variant, type and stage as in layer_types, and place.
  using Key = std::tuple<uint32_t, uint32_t, std::string, Stage, uint32_t>;
  std::map<Key, std::vector<SliceId>> rows;
  for (uint32_t stack = 0; stack < model.stacks.size(); ++stack) {
    const std::vector<VariantSequence> sequences =
        SequencesOf(in.context, model, stack);
    std::vector<std::vector<Element>> work;
    for (const VariantSequence& sequence : sequences)
      work.push_back(sequence.work);
    const auto places = AlignPlaces(work);
    for (size_t i = 0; i < sequences.size(); ++i) {
      for (const uint32_t l : sequences[i].layers) {
        const Layer& layer = model.layers[l];
        if (!in.options.Wants(model.StageOf(layer))) continue;
        const std::string type = SumOfLayer(in.context, labels, layer).type;
        for (size_t k = 0; k < layer.work.size(); ++k) {
          rows[{stack, layer.variant, type, model.StageOf(layer), places[i][k]}]
              .push_back(layer.work[k]);
        }
      }
    }
  }
  const RowColumns<VariantRow>& columns = VariantColumns();
  VariantKernels result{Table(columns.schema()),
                        std::vector<uint32_t>(trace.device.size())};
  const std::vector<std::string> above = ModulesAbove(model);
  uint32_t row = 0;
  for (const auto& [key, work] : rows) {
    const auto& [stack, variant, type, stage, place] = key;
    ++row;
    int64_t sum = 0;
    for (const SliceId s : work) {
      sum += trace.Duration(s);
      result.row_of[trace.slices.detail[s.value]] = row;
    }
    const auto count = static_cast<int64_t>(work.size());
    columns.Add(
        result.table,
        {.stack = model.stacks[stack].name,
         .variant = VariantLetter(variant),
         .type = type,
         .stage = StageName(stage),
         .place = place,
         .kernel = trace.Name(work[0]),
         .family =
             in.context.catalog.family(in.context.device.family(work[0])).name,
         .kernels = count,
         .kernel_time = sum,
         .mean = (sum + count / 2) / count,
         .module = above[stack]});
  }
  return result;
}

}  // namespace lamina::analysis::layers
