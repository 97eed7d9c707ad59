// SPDX-License-Identifier: Apache-2.0
//
// The sheets of the report for JAX: kernels stand for themselves, told apart by
// the instruction of the compiled program that launched them, and devices are
// not merged. In one file, because all sheets group the same rows.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <re2/re2.h>
#include <string>
#include <vector>

#include "analysis/common/timeline.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "compat/tracelens/kernel_details.h"
#include "compat/tracelens/measures.h"
#include "compat/tracelens/param_builder.h"
#include "compat/tracelens/python_text.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
namespace {

using analysis::Bucket;
using Json = nlohmann::json;

constexpr std::string_view kXla = "Uncategorized Events/XLA";
constexpr std::string_view kConvolution = "Conv";

// The first rule of which a part is in the name says the category.
struct CategoryRule {
  std::string_view category;
  std::array<std::string_view, 4> parts;
};
constexpr CategoryRule kCategories[] = {
    {"GEMM", {"Cijk", "gemm", "nvjet", "cublasLt"}},
    {"FA BWD",
     {"FmhaBwd", "flash_bprop", "ck_fused_attn::dk_dv_reduce_thd", "fmha_bwd"}},
    {"FA FWD", {"FmhaFwd", "flash_fprop", "fmha_fwd", ""}},
    {"FA V3", {"kernel_func", "", "", ""}},
    {kConvolution, {"conv_", "conv.", "conv-", ""}},
    {"TE", {"transformer_engine", "te_fused_attn", "", ""}},
};

std::string_view CategoryOfName(std::string_view name) {
  for (const CategoryRule& rule : kCategories) {
    for (const std::string_view part : rule.parts) {
      if (!part.empty() && Contains(name, part)) return rule.category;
    }
  }
  if (ContainsIgnoringCase(name, "nccl") || ContainsIgnoringCase(name, "rccl"))
    return "Communication rccl/nccl";
  return {};
}

// What stands in a sheet of one kernel.
struct JaxRow {
  SliceId slice;
  std::string_view name;
  std::string_view category;
  int64_t pid = 0;  // as TraceLens numbers devices: from 1
  const trace::Instruction* instruction = nullptr;
  std::vector<std::string> operand_types;
  std::vector<List> operand_dims;
  std::string dims = "()", types = "()", concrete = "()";
  std::optional<int64_t> latency_ns;
};

std::string TupleOf(const std::vector<List>& shapes) {
  std::vector<std::string> items;
  for (const List& shape : shapes)
    items.push_back(shape.size() == 1 ? "(" + Whole(shape[0]) + ",)"
                                      : Tuple(shape));
  return items.empty() ? "()" : Join(items);
}

// TraceLens knows operands of types that end in a number and have dimensions.
bool IsPlain(const std::string& type, const List& dims) {
  static const RE2 kType("[A-Za-z]+[0-9]+");
  return !dims.empty() && RE2::FullMatch(type, kType);
}

class Jax {
 public:
  explicit Jax(const Model& model)
      : model_(model), trace_(model.trace()), tree_(model.tree()) {
    for (const SliceId s : trace_.device_slices()) {
      devices_[DeviceOf(s)].push_back(s);
      if (trace_.KindOf(s) == trace::Kind::kKernel) AddKernel(s);
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [&](const JaxRow& a, const JaxRow& b) {
                       return trace_.Uid(a.slice) < trace_.Uid(b.slice);
                     });
    std::map<int64_t, bool> pids;
    for (const JaxRow& row : rows_) pids[row.pid] = true;
    gpus_ = std::max<size_t>(pids.size(), 1);
  }

  void Add(ResultSet& result) const {
    AddTimelines(result);
    std::vector<const JaxRow*> all;
    std::vector<const JaxRow*> xla;
    for (const JaxRow& row : rows_) {
      all.push_back(&row);
      if (row.category == kXla) xla.push_back(&row);
    }
    if (all.empty()) return;
    const auto name = [](const JaxRow& row) { return std::string(row.name); };
    AddLaunchers("kernel_launchers", all, false, result);
    AddSummary("kernel_launchers_summary", "name", true, all, name, result);
    AddSummary(
        "kernel_launchers_summary_by_category", "op category", false, all,
        [](const JaxRow& row) { return std::string(row.category); }, result);
    AddUniqueArgs(all, result);
    if (!xla.empty()) {
      AddLaunchers("df_xla_perf", xla, true, result);
      // loop_slice_fusion_202 is loop_slice_fusion_.
      AddSummary(
          "xla_summary", "name", true, xla,
          [](const JaxRow& row) {
            std::string text(row.name);
            std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
            return text;
          },
          result);
    }
    AddConvolutions(result);
  }

 private:
  int64_t DeviceOf(SliceId s) const {
    const int64_t device = trace_.Device(s)->device;
    return device == trace::kNoInt ? 0 : device;
  }

  void AddKernel(SliceId s) {
    JaxRow& row = rows_.emplace_back();
    row.slice = s;
    row.name = trace_.Name(s);
    row.pid = DeviceOf(s) + 1;
    const NodeId launch = tree_.launch(s);
    std::string_view op_name;
    if (launch.valid()) {
      row.latency_ns = trace_.Start(s) - trace_.Start(tree_.slice(launch));
      const NodeId op = tree_.EnclosingOp(launch);
      const trace::OpArgs* args =
          op.valid() ? trace_.Op(tree_.slice(op)) : nullptr;
      if (args != nullptr && args->instruction != trace::kNoRow) {
        row.instruction = &trace_.instructions[args->instruction];
        op_name = tree_.name(op);
        ReadOperands(*args, row);
      }
    }
    row.category = CategoryOfName(row.name);
    // The instruction says more than a kernel, but for attention.
    if (!row.category.starts_with("FA ")) {
      const std::string_view by_op = CategoryOfName(op_name);
      if (!by_op.empty()) row.category = by_op;
    }
    if (row.category.empty()) row.category = kXla;
  }

  void ReadOperands(const trace::OpArgs& args, JaxRow& row) const {
    const auto parse = [&](StringId id) {
      if (!id.valid()) return Json();
      const std::string_view text = trace_.Text(id);
      return Json::parse(text.begin(), text.end(), nullptr, false);
    };
    const Json dims = parse(args.dims);
    const Json types = parse(args.types);
    if (!dims.is_array() || !types.is_array()) return;
    std::vector<List> plain;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(dims.size(), types.size()); ++i) {
      if (!types[i].is_string() || !dims[i].is_array()) continue;
      List shape;
      for (const Json& dim : dims[i]) {
        if (dim.is_number()) shape.push_back(dim.get<double>());
      }
      if (shape.size() != dims[i].size()) continue;
      row.operand_types.push_back(types[i].get<std::string>());
      row.operand_dims.push_back(shape);
      if (!IsPlain(row.operand_types.back(), shape)) continue;
      plain.push_back(std::move(shape));
      names.push_back(Quoted(row.operand_types.back()));
    }
    // Of fused attention: query, key, value; the bias is an argument.
    if (row.instruction != nullptr && row.instruction->target.valid() &&
        Contains(trace_.Text(row.instruction->target), "te_fused_attn") &&
        plain.size() > 3) {
      row.concrete = TupleOf({plain[3]});
      plain.resize(3);
      names.resize(3);
    }
    row.dims = TupleOf(plain);
    row.types = names.empty() ? "()" : Join(names);
  }

  // ---- gpu_timeline, gpu_events_averages

  static std::vector<std::pair<const char*, double>> Times(
      const analysis::Timeline& t, bool split_idle) {
    std::vector<std::pair<const char*, double>> rows = {
        {"computation_time", Ms(t.computation_ns)},
        {"exposed_comm_time", Ms(t.exposed_communication_ns)},
        {"exposed_memcpy_time", Ms(t.exposed_copies_ns)},
        {"busy_time", Ms(t.busy_ns)}};
    if (split_idle) {
      rows.emplace_back("micro_idle_time", Ms(t.micro_idle_ns));
      rows.emplace_back("macro_idle_time", Ms(t.idle_ns - t.micro_idle_ns));
    } else {
      rows.emplace_back("idle_time", Ms(t.idle_ns));
    }
    rows.emplace_back("total_time", Ms(t.total_ns));
    rows.emplace_back("total_comm_time", Ms(t.communication.length_ns()));
    rows.emplace_back("total_memcpy_time", Ms(t.copies.length_ns()));
    return rows;
  }

  Bucket BucketOf(SliceId s) const {
    const std::string_view name = trace_.Name(s);
    for (const std::string_view start : {"copy", "memcpy", "memset"}) {
      if (ContainsIgnoringCase(name.substr(0, start.size()), start))
        return Bucket::kMemcpy;
    }
    return analysis::PeerBucket(trace::Kind::kKernel, name) ==
                   Bucket::kCommunication
               ? Bucket::kCommunication
               : Bucket::kCompute;
  }

  void AddTimelines(ResultSet& result) const {
    const auto micro_idle_ns = model_.context().settings.micro_idle_ns;
    Table table({"gpu_timeline",
                 "Time of each device.",
                 {Text("type"), Number("time ms"), Number("percent"),
                  Count("gpu_pid")}});
    Table averages({"gpu_events_averages",
                    "Time of the devices, on average.",
                    {Text("type"), Number("time ms"), Number("percent")}});
    std::vector<std::pair<const char*, double>> sums;
    double total = 0;
    // TraceLens lists a set of numbers from 1, in the order that Python gives
    // a small set.
    std::vector<int64_t> order;
    for (const auto& [device, slices] : devices_) order.push_back(device);
    const int64_t table_size = order.size() <= 4 ? 8 : 32;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return (a + 1) % table_size < (b + 1) % table_size;
    });
    for (const int64_t device : order) {
      const std::vector<SliceId>& slices = devices_.at(device);
      const analysis::Timeline t = analysis::MakeTimeline(
          trace_, slices, [&](SliceId s) { return BucketOf(s); },
          micro_idle_ns);
      const auto times = Times(t, micro_idle_ns.has_value());
      for (size_t i = 0; i < times.size(); ++i) {
        table.Add(times[i].first, times[i].second,
                  Percent(times[i].second, Ms(t.total_ns)), device + 1);
        if (sums.size() <= i) sums.emplace_back(times[i].first, 0);
        sums[i].second += times[i].second;
      }
      total += Ms(t.total_ns);
    }
    const auto count =
        static_cast<double>(std::max<size_t>(devices_.size(), 1));
    for (const auto& [type, sum] : sums)
      averages.Add(type, sum / count, Percent(sum, total));
    result.tables.push_back(std::move(table));
    result.tables.push_back(std::move(averages));
  }

  // ---- kernels

  std::string Details(const JaxRow& row) const {
    std::string out = "[{'name': ";
    AppendPythonQuoted(out, row.name);
    out += ", 'dur': " + FormatDouble(Us(trace_.Duration(row.slice)));
    return out + Facts(row) + "}]";
  }

  // What the program says of the instruction, as TraceLens cuts its text.
  std::string Facts(const JaxRow& row) const {
    const auto text = [&](StringId id) {
      return id.valid() ? std::string(trace_.Text(id)) : std::string();
    };
    std::string target, operands, metadata;
    if (row.instruction != nullptr) {
      target = text(row.instruction->target);
      if (!target.empty()) target = "custom_call_target=\"" + target + "\"";
      metadata = text(row.instruction->op_name);
      if (!metadata.empty()) {
        metadata = "metadata={op_name=\"" + metadata + "\"";
        const std::string source = text(row.instruction->source);
        if (!source.empty()) {
          metadata += " source_file=\"" + source + "\"";
          if (row.instruction->source_line != trace::kNoInt)
            metadata +=
                " source_line=" + std::to_string(row.instruction->source_line);
        }
      }
    }
    for (size_t i = 0; i < row.operand_types.size(); ++i) {
      std::string shape = row.operand_types[i] + "[";
      for (size_t d = 0; d < row.operand_dims[i].size(); ++d)
        shape += (d > 0 ? "," : "") + Whole(row.operand_dims[i][d]);
      operands += (i > 0 ? ", " : "") + Quoted(shape + "]");
    }
    std::string out = ", 'custom_call_target': ";
    AppendPythonQuoted(out, target.empty() ? "NA" : target);
    out += ", 'operands': ";
    out += row.instruction != nullptr ? "[" + operands + "]" : "'NA'";
    out += ", 'outputs': 'NA', 'metadata': ";
    AppendPythonQuoted(out, metadata.empty() ? "NA" : metadata);
    return out;
  }

  static double InputBytes(const JaxRow& row) {
    static const std::map<std::string_view, double> kBytes = {
        {"f32", 4}, {"bf16", 2}, {"s32", 4}, {"fp16", 2},
        {"u32", 4}, {"f16", 2},  {"u64", 8}, {"pred", 1},
        {"s64", 8}, {"f64", 8},  {"u8", 1}};
    double sum = 0;
    for (size_t i = 0; i < row.operand_types.size(); ++i) {
      if (row.operand_dims[i].empty()) continue;
      const std::string& type = row.operand_types[i];
      const auto known = kBytes.find(type);
      double bytes = known != kBytes.end() ? known->second : 0;
      if (type.starts_with("f8") || type.starts_with("s8")) bytes = 1;
      for (const double dim : row.operand_dims[i]) bytes *= dim;
      sum += bytes;
    }
    return sum;
  }

  void AddLaunchers(const char* name, const std::vector<const JaxRow*>& rows,
                    bool bytes, ResultSet& result) const {
    Schema schema{
        name,
        "Kernels with the instruction that launched them.",
        {Text("name"), Count("UID"), Text("op category"),
         Number("total_direct_kernel_time"), Count("direct_kernel_count"),
         Count("pid"), Count("tid"), Text("Input Dims"), Text("Input type"),
         Text("Input Strides"), Text("Concrete Inputs"), Text("kernel_details"),
         Number("GPU_kernel_launch_latency")}};
    if (bytes) schema.columns.push_back(Number("total_input_bytes"));
    Table table(std::move(schema));
    for (const JaxRow* row : rows) {
      const std::string details = Details(*row);
      std::vector<Value> cells = {
          row->name,
          trace_.Uid(row->slice),
          row->category,
          Us(trace_.Duration(row->slice)),
          1,
          row->pid,
          trace_.Device(row->slice)->stream == trace::kNoInt
              ? Value()
              : Value(trace_.Device(row->slice)->stream),
          row->dims,
          row->types,
          "()",
          row->concrete,
          details,
          row->latency_ns ? Value(Us(*row->latency_ns)) : Value()};
      if (bytes) cells.emplace_back(InputBytes(*row));
      table.AddRow(cells);
    }
    result.tables.push_back(std::move(table));
  }

  // Rows by a key, most time first, ties by first event.
  struct Group {
    std::string key;
    std::vector<const JaxRow*> rows;
    int64_t sum_ns = 0;
  };
  template <class KeyOf>
  std::vector<Group> GroupBy(const std::vector<const JaxRow*>& rows,
                             KeyOf key_of) const {
    std::map<std::string, Group> groups;
    for (const JaxRow* row : rows) {
      Group& group = groups[key_of(*row)];
      group.rows.push_back(row);
      group.sum_ns += trace_.Duration(row->slice);
    }
    std::vector<Group> out;
    for (auto& [key, group] : groups) {
      group.key = key;
      out.push_back(std::move(group));
    }
    std::stable_sort(
        out.begin(), out.end(), [&](const Group& a, const Group& b) {
          if (a.sum_ns != b.sum_ns) return a.sum_ns > b.sum_ns;
          return trace_.Uid(a.rows[0]->slice) < trace_.Uid(b.rows[0]->slice);
        });
    return out;
  }

  template <class KeyOf>
  void AddSummary(const char* name, const char* key, bool microseconds,
                  const std::vector<const JaxRow*>& rows, KeyOf key_of,
                  ResultSet& result) const {
    Schema schema{name, "Kernels by one property.", {Text(key)}};
    if (microseconds)
      schema.columns.push_back(Number("total_direct_kernel_time_sum"));
    for (const Column& column :
         {Count("Count"), Number("total_direct_kernel_time_ms"),
          Number("Percentage (%)"), Number("Cumulative Percentage (%)"),
          Number("time ms per gpu")})
      schema.columns.push_back(column);
    Table table(std::move(schema));
    const std::vector<Group> groups = GroupBy(rows, key_of);
    int64_t total_ns = 0;
    int64_t running_ns = 0;
    for (const Group& group : groups) total_ns += group.sum_ns;
    const auto total = static_cast<double>(total_ns);
    for (const Group& group : groups) {
      running_ns += group.sum_ns;
      std::vector<Value> cells = {group.key};
      if (microseconds) cells.emplace_back(Us(group.sum_ns));
      cells.insert(cells.end(),
                   {group.rows.size(), Ms(group.sum_ns),
                    Percent(static_cast<double>(group.sum_ns), total),
                    Percent(static_cast<double>(running_ns), total),
                    Ms(group.sum_ns) / static_cast<double>(gpus_)});
      table.AddRow(cells);
    }
    result.tables.push_back(std::move(table));
  }

  std::vector<double> TimesOf(const Group& group) const {
    std::vector<double> times;
    for (const JaxRow* row : group.rows)
      times.push_back(Us(trace_.Duration(row->slice)));
    return times;
  }

  std::string DetailsOf(const Group& group) const {
    std::vector<std::vector<KernelPlace>> kernels;
    for (const JaxRow* row : group.rows)
      kernels.push_back(PlacesOf(trace_, {row->slice}));
    return DetailsCell(SummarizePlaces(kernels));
  }

  void AddUniqueArgs(const std::vector<const JaxRow*>& rows,
                     ResultSet& result) const {
    Schema schema{"kernel_launchers_unique_args",
                  "Kernels by name and operands.",
                  {Text("name"), Text("Input Dims"), Text("Input type"),
                   Text("Input Strides"), Text("Concrete Inputs"),
                   Count("operation_count")}};
    for (const char* statistic : kStatistics)
      schema.columns.push_back(
          Number(std::string("total_direct_kernel_time_") + statistic));
    for (const Column& column :
         {Number("total_direct_kernel_time_sum"), Count("ex_UID"),
          Text("kernel_details_summary"), Number("Percentage (%)"),
          Number("Cumulative Percentage (%)")})
      schema.columns.push_back(column);
    Table table(std::move(schema));
    const std::vector<Group> groups = GroupBy(rows, [](const JaxRow& row) {
      return std::string(row.name) + '\x1f' + row.dims + '\x1f' + row.types +
             '\x1f' + row.concrete;
    });
    int64_t total_ns = 0;
    int64_t running_ns = 0;
    for (const Group& group : groups) total_ns += group.sum_ns;
    const auto total = static_cast<double>(total_ns);
    for (const Group& group : groups) {
      running_ns += group.sum_ns;
      const JaxRow& first = *group.rows[0];
      const std::string details = DetailsOf(group);
      std::vector<Value> cells = {first.name,     first.dims,
                                  first.types,    "()",
                                  first.concrete, group.rows.size()};
      AppendFive(cells, Summary(TimesOf(group)));
      cells.insert(cells.end(),
                   {Us(group.sum_ns), trace_.Uid(first.slice), details,
                    Percent(static_cast<double>(group.sum_ns), total),
                    Percent(static_cast<double>(running_ns), total)});
      table.AddRow(cells);
    }
    result.tables.push_back(std::move(table));
  }

  // ---- op_conv: FLOPs and bytes as TraceLens counts them, which takes the
  // spatial part of the filter for all of it. op_efficiency has the right ones.

  // Dimensions of the first array of a shape: "(bf16[1,2], u8[9])".
  static List FirstShape(std::string_view shape) {
    const size_t open = shape.find('[');
    if (open == std::string_view::npos) return {};
    const size_t close = shape.find(']', open);
    List out;
    for (size_t at = open + 1; at < close && at < shape.size();) {
      size_t end = shape.find_first_of(",]", at);
      if (end == std::string_view::npos) end = shape.size();
      if (const auto value = ParseDouble(shape.substr(at, end - at)))
        out.push_back(*value);
      at = end + 1;
    }
    return out;
  }

  struct Convolution {
    List input, filter, output;
    bool bias = false;
    double size = 0;  // bytes of an element

    static double Product(const List& list, size_t from = 0) {
      double product = 1;
      for (size_t i = from; i < list.size(); ++i) product *= list[i];
      return product;
    }
    double Flops() const {
      const double out = Product(output);
      return 2 * out * Product(filter, 1) + (bias ? out : 0);
    }
    double Bytes() const {
      return size * (Product(input) + Product(filter) + Product(output));
    }
  };

  std::optional<Convolution> ConvolutionOf(const JaxRow& row) const {
    if (row.category != kConvolution || row.instruction == nullptr ||
        !row.instruction->target.valid() || row.operand_dims.size() < 2)
      return std::nullopt;
    const std::string_view target = trace_.Text(row.instruction->target);
    if (!Contains(target, "cudnn$convForward") &&
        !Contains(target, "cudnn$convBiasActivationForward"))
      return std::nullopt;
    Convolution c;
    c.input = row.operand_dims[0];
    const List& filter = row.operand_dims[1];
    if (c.input.size() < 3 || c.input.size() > 5 || filter.size() < 3)
      return std::nullopt;
    c.filter.assign(filter.begin() + 2, filter.end());
    if (row.instruction->shape.valid())
      c.output = FirstShape(trace_.Text(row.instruction->shape));
    c.bias = row.operand_dims.size() == 3;
    const std::string& type = row.operand_types[0];
    c.size = Contains(type, "64")   ? 8
             : Contains(type, "32") ? 4
             : Contains(type, "16") ? 2
                                    : 1;
    return c;
  }

  void AddConvolutions(ResultSet& result) const {
    std::vector<const JaxRow*> rows;
    std::map<const JaxRow*, Convolution> convolutions;
    for (const JaxRow& row : rows_) {
      auto c = ConvolutionOf(row);
      if (!c) continue;
      rows.push_back(&row);
      convolutions.emplace(&row, std::move(*c));
    }
    if (rows.empty()) return;
    Schema schema{
        "op_conv",
        "Convolutions by kernel and shapes.",
        {Text("name"), Text("param: convNd"), Text("param: input_shape"),
         Text("param: filter_shape"), Text("param: output_shape"),
         Text("param: bias"), Text("param: bytes_per_element"),
         Text("param: transposed_conv"), Number("GFLOPS_first"),
         Number("Data Moved (MB)_first"), Number("FLOPS/Byte_first")}};
    const auto five = [&](const std::string& what) {
      for (const char* statistic : kStatistics)
        schema.columns.push_back(Number(what + "_" + statistic));
    };
    five("TB/s");
    five("TFLOPS/s");
    for (const char* column : {"kernel_details__summarize_kernel_stats",
                               "Input Dims_first", "Input type_first"})
      schema.columns.push_back(Text(column));
    five("Kernel Time (µs)");
    schema.columns.push_back(Number("Kernel Time (µs)_sum"));
    schema.columns.push_back(Count("name_count"));
    schema.columns.push_back(Count("UID_first"));
    Table table(std::move(schema));
    for (const Group& group : GroupBy(rows, [&](const JaxRow& row) {
           const Convolution& c = convolutions.at(&row);
           return std::string(row.name) + '\x1f' + Tuple(c.input) + '\x1f' +
                  Tuple(c.filter) + '\x1f' + Tuple(c.output) + '\x1f' +
                  row.types;
         })) {
      const JaxRow& first = *group.rows[0];
      const Convolution& c = convolutions.at(&first);
      std::vector<double> tbs, tflops;
      for (const double us : TimesOf(group)) {
        if (us <= 0) continue;
        tbs.push_back(c.Bytes() / us / 1e6);
        tflops.push_back(c.Flops() / us / 1e6);
      }
      const std::string dimensions =
          "conv" + std::to_string(c.input.size() - 2) + "d";
      const std::string input = Tuple(c.input);
      const std::string filter = Tuple(c.filter);
      const std::string output = Tuple(c.output);
      const std::string size = Whole(c.size);
      const std::string details = DetailsOf(group);
      std::vector<Value> cells = {
          first.name,
          dimensions,
          input,
          filter,
          output,
          c.bias ? "True" : "False",
          size,
          "False",
          c.Flops() / 1e9,
          c.Bytes() / 1048576.0,
          c.Bytes() > 0 ? Value(c.Flops() / c.Bytes()) : Value()};
      AppendFive(cells, Summary(std::move(tbs)));
      AppendFive(cells, Summary(std::move(tflops)));
      cells.insert(cells.end(), {details, first.dims, first.types});
      AppendFive(cells, Summary(TimesOf(group)));
      cells.insert(cells.end(), {Us(group.sum_ns), group.rows.size(),
                                 trace_.Uid(first.slice)});
      table.AddRow(cells);
    }
    result.tables.push_back(std::move(table));
  }

  const Model& model_;
  const Trace& trace_;
  const tree::Tree& tree_;
  std::vector<JaxRow> rows_;                         // by event
  std::map<int64_t, std::vector<SliceId>> devices_;  // work by start
  size_t gpus_ = 1;                                  // with kernels
};

}  // namespace

void AddJaxSheets(const Model& model, ResultSet& result) {
  Jax(model).Add(result);
}

}  // namespace lamina::compat::tracelens
