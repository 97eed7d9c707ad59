// SPDX-License-Identifier: Apache-2.0
//
// Two dumps of one model: 32 layers of 62 nodes, one with a near miss, before
// and after a fusion; and the page of their census.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder, run } from "./harness.mjs";

export const kType = "4x8 : torch.bfloat16";
export const kLayers = 32;
export const kOdd = 7;         // its silu has another user
export const kHostile = "x</script><img src=x onerror=alert(1)>\u202e";

// A rule with a hostile title: its text enters the page too.
const kRules = `rules:
  - rule: silu_times
    title: '${kHostile}'
    stage: post_load_fusion
    before: |
      %a = aten.silu(%x)
      %out = aten.mul(%a, %y)
    outputs: [out]
`;

function head(transform, stage) {
  const line = "=".repeat(80);
  return `# Transform: ${transform}\n# Stage: ${stage}\n` +
    `# GraphModules found: 1\n\n\n${line}\n# GraphModule: model\n${line}\n\n`;
}

export class Writer {
  lines = [`%x : ${kType}`];
  names = [];
  op(name, target, ...from) {
    const inputs = from.map((one) => one.startsWith("!")
      ? `%${one.slice(1)} : 8x8 : torch.bfloat16`
      : /^[[\d]|^None/.test(one) ? one : `%${one} : ${kType}`);
    this.lines.push(`%${name} = ${target}(${inputs.join(", ")}) : ${kType}`);
    this.names.push(name);
    return name;
  }
  text(transform, stage, last) {
    return head(transform, stage) + this.lines.join("\n") +
      `\noutput %${last}\n`;
  }
}

// 62 nodes: projections, a gate of silu and mul, 55 more in four branches.
function layer(w, i, last, fused) {
  const linear = (name, from, weight) => w.op(`${name}_${i}`,
    "auto_deploy.torch_linear_simple.default", from,
    `!model_layers_${i}_mlp_${weight}_weight`, "None");
  const gate = linear("gate", last, "gate_proj");
  const up = linear("up", last, "up_proj");
  let product;
  if (fused && i !== kOdd) {
    product = w.op(`silu_times_${i}`, "my.silu_times.default", gate, up);
  } else {
    const silu = w.op(`silu_${i}`, "aten.silu.default", gate);
    product = w.op(`mul_${i}`, "aten.mul.Tensor", silu, up);
    if (i === kOdd) product = w.op(`other_${i}`, "aten.add.Tensor", silu,
                                   product);
  }
  const down = linear("down", product, "down_proj");
  const ends = [0, 1, 2, 3].map((branch) => {
    let at = down;
    for (let k = 0; k < 13; ++k)
      at = w.op(`b${branch}_${k}_${i}`, "aten.abs.default", at);
    return at;
  });
  const a = w.op(`join_a_${i}`, "aten.maximum.default", ends[0], ends[1]);
  const b = w.op(`join_b_${i}`, "aten.maximum.default", ends[2], ends[3]);
  const both = w.op(`join_${i}`, "aten.maximum.default", a, b);
  w.op(`slice_${i}`, "aten.view.default", both, "[4, 8]");
  return w.op(`res_${i}`, "aten.add.Tensor", last, `slice_${i}`);
}

let made = null;
// Folder of two dumps, and the names of the nodes in the first.
export function dumps() {
  if (made) return made;
  const at = join(folder, "fusion_dumps");
  mkdirSync(at, { recursive: true });
  const names = [];
  for (const fused of [false, true]) {
    const w = new Writer();
    let last = "x";
    for (let i = 0; i < kLayers; ++i) last = layer(w, i, last, fused);
    const [file, transform, stage] = fused
      ? ["010_post_load_fusion_silu_times.txt", "silu_times",
         "post_load_fusion"]
      : ["001_export_export_to_gm.txt", "export_to_gm", "export"];
    writeFileSync(join(at, file), w.text(transform, stage, last));
    names.push(w.names);
  }
  const rules = join(folder, "mine.yaml");
  writeFileSync(rules, kRules);
  return made = { at, rules, names };
}

let census = null;
export function censusPage() {
  if (census) return census;
  const { at, rules } = dumps();
  census = join(folder, "census.html");
  run("graph", "census", at, "--rules", rules, "--format", "html", "-o",
      census);
  return census;
}
