// SPDX-License-Identifier: Apache-2.0
//
// lamina cost: what one call of an op needs, without a trace.
#include "cost/device.h"
#include "cost/dtype.h"
#include "questions/bodies.h"
#include "rules/document.h"

namespace lamina::questions {
namespace {

struct CostOptions {
  std::string op;
  std::string shapes;
  std::vector<std::string> dtypes;
  std::string concrete;
  std::string step;
  std::string device;
  bool backward = false;
};

Schema CostSchema() {
  return {"cost",
          "What one call needs at least.",
          {{"quantity", ColumnType::kText, "Name."},
           {"number", ColumnType::kReal, "In full."},
           {"unit", ColumnType::kText, "Unit, or what the value means."}}};
}

Result<const cost::OpModel*> FindOp(const cost::ModelSet& models,
                                    const std::string& name) {
  if (const cost::OpModel* op = models.Find(name)) return op;
  const auto known = models.Ops();
  const std::string_view near = rules::Nearest(name, known);
  return Fail(UsageError("'" + name + "' has no cost model",
                         near.empty()
                             ? "⟨lamina⟩ list costs shows the ops that have one"
                             : "did you mean '" + std::string(near) + "'?"));
}

// One type for every argument, or one each; JSON.
std::string TypesFor(const std::vector<std::string>& dtypes, size_t count) {
  std::string out = "[";
  for (size_t i = 0; i < count; ++i) {
    const std::string& type = dtypes.size() == 1  ? dtypes[0]
                              : i < dtypes.size() ? dtypes[i]
                                                  : dtypes.back();
    out += (i > 0 ? ", \"" : "\"") + type + "\"";
  }
  return out + "]";
}

Result<Answer> RunCost(const CostOptions& options, Asker& asker) {
  const rules::DataSet data(asker.rules_dir);
  LAMINA_ASSIGN(const auto models, cost::ModelSet::Load(data));
  LAMINA_ASSIGN(const cost::OpModel* const op, FindOp(*models, options.op));
  for (const std::string& type : options.dtypes) {
    if (!cost::FindDType(type) && !type.empty()) {
      return Fail(UsageError("unknown element type '" + type + "'",
                             "for example bf16, fp16, float, fp8_e4m3"));
    }
  }
  const auto shapes =
      cost::ParseCall(options.op, options.shapes, "", options.concrete);
  if (!shapes) {
    return Fail(
        UsageError("⟨shapes⟩: expected a JSON list with one shape per "
                   "argument",
                   "for example '[[128, 64], [64, 256]]'"));
  }
  auto call = cost::ParseCall(
      options.op, options.shapes,
      TypesFor(options.dtypes, shapes->arguments.size()), options.concrete);
  LAMINA_CHECK(call.has_value());
  call->step = cost::ParseStep(options.step);
  if (options.backward && !models->HasBackward(*op)) {
    return Fail(UsageError("'" + options.op + "' has no backward model",
                           "leave out ⟨backward⟩"));
  }
  const auto cost = models->Evaluate(*op, *call, options.backward);
  if (!cost) {
    return Fail(UsageError(
        "model '" + op->model->name + "' gives no cost for these arguments",
        "check the number and the order of the shapes, and ⟨concrete⟩ for "
        "scalar arguments"));
  }
  Table table(CostSchema());
  for (size_t i = 0; i < cost->parameters.size(); ++i) {
    if (cost->parameters[i].is_number()) {
      table.Add(op->model->parameters[i], cost->parameters[i].number(),
                "parameter");
    }
  }
  table.Add("flops", cost->flops, "FLOP");
  table.Add("bytes", cost->bytes, "B");
  if (cost->bytes > 0)
    table.Add("flops_per_byte", cost->flops / cost->bytes, "FLOP/B");
  const std::string spec = cost->Spec();
  if (!options.device.empty()) {
    LAMINA_ASSIGN(const auto devices, cost::DeviceSet::Load(data));
    LAMINA_ASSIGN(const cost::Device device, devices->Find(options.device));
    if (const auto peak = device.Peak(spec)) {
      table.Add("compute_time_us", cost->flops / *peak * 1e6,
                "us at " + spec + " of " + device.title);
    }
    table.Add("memory_time_us", cost->bytes / device.bytes_per_s * 1e6,
              "us at the bandwidth of " + device.title);
    if (const auto roofline = cost::RooflineOf(*cost, device, spec)) {
      table.Add("roofline_us", roofline->seconds * 1e6,
                roofline->compute_bound ? "us, bound by compute"
                                        : "us, bound by memory");
    }
  }
  Document document;
  document.command = "cost";
  document.inputs = {options.op};
  document.result.tables.push_back(std::move(table));
  if (cost->fidelity == cost::Fidelity::kEstimated) {
    document.result.notes.push_back(
        MakeNote(Severity::kInfo, "estimated",
                 "An estimate: the model assumes something that the arguments "
                 "do not say."));
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeCost(Description& args, Asker& asker) {
  auto options = std::make_shared<CostOptions>();
  args.Add("op", options->op, "Name of the op, as in a trace").Required();
  args.Add("--shapes", options->shapes,
           "JSON list with the shape of every argument")
      .Required();
  args.Add("--dtypes", options->dtypes,
           "Element type of every argument, or one for all")
      .SplitAtCommas()
      .Required();
  args.Add("--concrete", options->concrete,
           "JSON list with the scalar arguments, as a trace has them");
  args.Add("--step", options->step,
           "Name of the serving step (execute_...), for attention over "
           "a cache");
  args.Add("--device", options->device,
           "Device for the roofline: a name or a file");
  args.Flag("--backward", options->backward, "Of the backward pass");
  return [options, &asker] { return RunCost(*options, asker); };
}

}  // namespace lamina::questions
