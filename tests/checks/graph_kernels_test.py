#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of a replayed graph on the nodes of its dump, against the truth of a
made export: as it is, with its streams joined, without graph ids, without
launches, and with names that no rule knows."""

import collections
import json
import pathlib
import shutil
import sqlite3
import sys
import tempfile

import common


def kernels(trace, dump, *args):
    document = json.loads(common.lamina(
        "graph", "kernels", trace, "--dump", dump, "--format", "json",
        *args).stdout)
    return document["tables"]


def check(name, tables, truth, least, certain):
    bad = []
    got = {row["graph_node_id"]: row for row in tables["graph_kernels"]}
    want = {row["graph_node_id"]: row for row in truth["graph_nodes"]}
    if set(got) != set(want):
        return [f"{name}: other graph nodes"]
    right = wrong_sure = sure = 0
    for node, row in want.items():
        mine = got[node]
        correct = mine["node"] == row["dump_node"]
        right += correct
        if mine["confidence"] in ("exact", "sure"):
            sure += 1
            wrong_sure += not correct
        if (abs(mine["median_us"] * 1000 - row["median_ns"]) > 1e-6
                      or abs(mine["p95_us"] * 1000 - row["p95_ns"]) > 1e-6):
            bad.append(f"{name}: times of {node}")
    if right < least * len(want):
        bad.append(f"{name}: {right} of {len(want)} right")
    if wrong_sure:
        bad.append(f"{name}: {wrong_sure} wrong among sure ones")
    if sure < certain * len(want):
        bad.append(f"{name}: only {sure} of {len(want)} sure")
    chosen = [r for r in tables["graphs"] if r["chosen"]]
    if len(chosen) != 1 or chosen[0]["full_replays"] != truth["full_replays"]:
        bad.append(f"{name}: chose {chosen}")
    if right == len(want):
        nodes = {r["node"]: r for r in tables["node_times"]}
        for row in truth["per_dump_node"]:
            mine = nodes.get(row["dump_node"])
            if mine is None or (mine["kernels"] != row["kernels"]
                    or abs(mine["median_us"] * 1000 - row["median_ns"]) > 1e-6
                    or abs(mine["p95_us"] * 1000 - row["p95_ns"]) > 1e-6):
                bad.append(f"{name}: {row['dump_node']}")
    print(f"{name}: {right} of {len(want)} right, {sure} sure, "
          f"{wrong_sure} of them wrong")
    return bad


def check_eager(name, trace, dump, truth):
    """Kernels that no graph launched: by names and order, and the few that are
    called sure are right."""
    tables = kernels(trace, dump, "--phase", "decode")
    want = collections.Counter((r["dump_node"], r["kernel"])
                               for r in truth["graph_nodes"])
    right = sure = wrong = 0
    left = want.copy()
    for row in tables["graph_kernels"]:
        key = (row["node"], row["full_name"])
        correct = left[key] > 0
        left[key] -= correct
        right += correct
        if row["confidence"] in ("exact", "sure"):
            sure += 1
            wrong += not correct
    total = sum(want.values())
    print(f"{name}: {right} of {total} right, {sure} sure, {wrong} of them "
          "wrong")
    return ([f"{name}: {right} of {total} right"] if right < 0.9 * total else []
            ) + ([f"{name}: {wrong} wrong among sure ones"] if wrong else [])


def check_quantised(dump, trace, truth, folder):
    """SwiGLU in FP8: quantisers in front of its products, of which each may be
    there or not."""
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    text = dump.read_text().replace("auto_deploy.fused_swiglu_mlp.default(",
                                    "auto_deploy.fused_finegrained_fp8_swiglu_"
                                    "mlp.default(")
    made = pathlib.Path(folder) / dump.name
    made.write_text(text)
    of_node = {}
    for row in truth["graph_nodes"]:
        if "swiglu" in row["dump_node"]:
            of_node.setdefault(row["dump_node"], []).append(row)
    bad = []
    for what, places in (("both", (0, 2)), ("the first", (0,)),
                         ("the second", (2,)), ("none", ())):
        path = changed(trace, folder, "quantised")
        db = sqlite3.connect(path)
        name = 900000001
        db.execute("insert into StringIds values (?, ?)",
                   (name, "void scale_1x128_kernel<__nv_bfloat16>(int)"))
        columns = [r[1] for r in db.execute(f"pragma table_info({table})")]
        new = {"start": "start - 900", "end": "start - 300",
               "graphNodeId": "graphNodeId - 1"}
        new.update({c: str(name) for c in ("demangledName", "shortName",
                                           "mangledName")})
        want = {r["graph_node_id"]: r["dump_node"]
                for r in truth["graph_nodes"]}
        for node, rows in of_node.items():
            products = [r for r in rows if "splitKreduce" not in r["kernel"]]
            for place in places:
                gemm = products[place]["graph_node_id"]
                db.execute(f"insert into {table} ({', '.join(columns)}) select "
                           + ", ".join(new.get(c, c) for c in columns) +
                           f" from {table} where graphNodeId = {gemm}")
                want[gemm - 1] = node
        db.commit()
        db.close()
        got = {r["graph_node_id"]: r["node"]
               for r in kernels(path, made)["graph_kernels"]}
        right = sum(got.get(k) == v for k, v in want.items())
        print(f"quantisers, {what}: {right} of {len(want)} right")
        if right < 0.98 * len(want):
            bad.append(f"quantisers, {what}: {right} of {len(want)} right")
    return bad


def changed(source, folder, name, *statements):
    path = pathlib.Path(folder) / f"{name}.sqlite"
    shutil.copyfile(source, path)
    path.chmod(0o644)
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()
    return path


# What the ops of the sample dump launch, by names that libraries give.
LAUNCHED = {
    "aten.embedding.default":
        ["void at::native::vectorized_gather_kernel<16, long>(char*, char*)"],
    "auto_deploy.torch_rmsnorm.default":
        ["void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(float)"],
    "auto_deploy.torch_linear_simple.default":
        ["nvjet_tst_64x8_64x16_4x1_v_bz_TNT"],
    "auto_deploy.flashinfer_rope.default":
        ["void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true>()"],
    "auto_deploy.flashinfer_attention_mha_with_cache.default":
        ["void flashinfer::AppendPagedKVCacheKernel<128u, 8u>(int)",
         "void flashinfer::BatchDecodeWithPagedKVCacheKernel<false>(int)"],
    "fn.fused_add_rms_norm":
        ["void flashinfer::norm::FusedAddRMSNormKernel<8u>(float)"],
    "auto_deploy.triton_fused_topk_softmax.default":
        ["_fused_topk_softmax_kernel"],
    "auto_deploy.torch_moe.default": ["fused_moe_kernel"]}
REPLAYS = 4


def replayed(dump):
    """Events of replays of the sample dump, and their truth in the form of
    that of the shared export. Durations differ by node, not by replay."""
    nodes = json.loads(common.lamina("graph", "layers", dump, "--format",
                                     "json").stdout)["tables"]["layer_nodes"]
    graph = [(node["node"], name) for node in nodes
             for name in LAUNCHED.get(node["op"], [])]
    events, truth, per_node = [], [], collections.defaultdict(list)
    for i, (node, kernel) in enumerate(graph):
        ns = 1000 + 37 * (i * 7919 % 53)
        truth.append({"graph_node_id": (1 << 32) + i, "dump_node": node,
                      "kernel": kernel, "median_ns": ns, "p95_ns": ns})
        per_node[node].append(ns)
    for replay in range(REPLAYS):
        at = 1000 + 1000 * replay
        events.append({"ph": "X", "cat": "cuda_runtime", "name":
                       "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": at - 9,
                       "dur": 8, "args": {"correlation": replay}})
        for row in truth:
            events.append({
                "ph": "X", "cat": "kernel", "name": row["kernel"], "pid": 0,
                "tid": 7, "ts": round(at, 3), "dur": row["median_ns"] / 1000,
                "args": {"device": 0, "stream": 7, "correlation": replay,
                         "graph id": 1,
                         "graph node id": row["graph_node_id"]}})
            at += row["median_ns"] / 1000 + 0.5
    return events, {"graph_nodes": truth, "full_replays": REPLAYS,
                    "per_dump_node": [
                        {"dump_node": node, "kernels": len(times),
                         "median_ns": sum(times), "p95_ns": sum(times)}
                        for node, times in per_node.items()]}


def check_sample(folder):
    """Replays of the sample dump: with names that rules know, and with none."""
    dump = (common.SAMPLES /
            "dumps/064_post_load_fusion_fuse_add_rms_norm.txt")
    events, truth = replayed(dump)
    trace = pathlib.Path(folder) / "replays.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    bad = check("sample", kernels(trace, dump), truth, 0.98, 0.7)
    names = sorted({e["name"] for e in events if e["cat"] == "kernel"})
    for event in events:
        if event["cat"] == "kernel":
            event["name"] = f"k{names.index(event['name'])}"
    trace.write_text(json.dumps({"traceEvents": events}))
    bad += check("sample, unknown names", kernels(trace, dump), truth, 0.9, 0)
    return bad


def finish(bad):
    for line in bad[:20]:
        print(line)
    print(f"{len(bad)} differences")
    return 1 if bad else 0


def main():
    checks = common.Checks()
    with tempfile.TemporaryDirectory() as folder:
        bad = check_sample(folder)
    checks.equal("kernels of the sample", bad, [])
    shared = common.shared()
    truth = json.load(
        open(shared / "goldens/llama_32l_decode_graph_truth.json"))
    dump = shared / "dumps" / truth["source_dump"]
    trace = shared / "traces/nsys/llama_32l_decode_graph.sqlite"
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    bad += check("as it is", kernels(trace, dump), truth, 0.98, 0.7)
    with tempfile.TemporaryDirectory() as folder:
        for name, least, certain, statements in [
                ("no graph ids", 0.98, 0.7,
                 [f"alter table {table} drop column graphId"]),
                ("one stream", 0.98, 0.7, [f"update {table} set streamId = 7"]),
                ("no launches", 0.98, 0.7,
                 [f"update {table} set correlationId = null"]),
                ("no ids or launches", 0.98, 0.7,
                 [f"alter table {table} drop column graphId",
                  f"update {table} set correlationId = null"]),
                ("unknown names", 0.9, 0,
                 ["update StringIds set value = 'k' || id where id in (select "
                  f"demangledName from {table} union select shortName from "
                  f"{table})"])]:
            path = changed(trace, folder, "copy", *statements)
            bad += check(name, kernels(path, dump), truth, least, certain)
        # No device graphs: every kernel has a launch of its own.
        # The host launches in the order of the graph.
        own = ["create temp table o(r integer primary key, n integer)",
               "insert into o select rowid, row_number() over (order by "
               "coalesce(correlationId, 0), graphNodeId, start) from " + table,
               f"update {table} set graphNodeId = null, graphId = null, "
               "correlationId = 5000000 + (select n from o where r = "
               f"{table}.rowid)"]
        for name, statements in [
                ("eager", own),
                ("eager, one stream",
                 own + [f"update {table} set streamId = 7"]),
                ("eager, no ranges", own + ["delete from NVTX_EVENTS"])]:
            path = changed(trace, folder, "copy", *statements)
            bad += check_eager(name, path, dump, truth)
        bad += check_quantised(dump, trace, truth, folder)
        # A layer with its kernels.
        out = pathlib.Path(folder) / "layer.json"
        common.lamina("graph", "layer", dump, "-n", "5", "--trace", trace,
                      "-o", out)
        layer = json.load(open(out))
        want = [r for r in truth["per_layer"] if r["layer"] == 5][0]
        total = sum(k["duration_us"] for n in layer["nodes"]
                    for k in n.get("trace_kernels", []))
        if (layer["trace_summary"]["kernel_count"] != want["kernel_count"]
                or layer["trace_summary"]["num_streams"] != want["num_streams"]
                or abs(layer["trace_summary"]["total_duration_us"] - total)
                > 1e-6):
            bad.append(f"layer 5: {layer['trace_summary']}, expected {want}")
        listed = json.load(open(pathlib.Path(folder) / "layer_kernels.json"))
        if listed["num_layers_detected"] != 32 or listed["num_replays"] != 20:
            bad.append("kernels file: other counts")
        if len(listed["layers"]["5"]["kernels"]) != want["kernel_count"]:
            bad.append("kernels file: other kernels")
    return finish(bad)


if __name__ == "__main__":
    sys.exit(main())
