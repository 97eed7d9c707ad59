# SPDX-License-Identifier: Apache-2.0
"""Questions as methods and functions.

Made by make_questions.py from what the library says of them; not edited. Long
as it says of each parameter what it is.
"""
from __future__ import annotations

from typing import Any, Literal, Optional, Sequence, Union

from ._ask import Asked, Input, ask
from ._report import Path, Progress, Report

Text = Union[str, int]  # a number is taken as its digits
Texts = Union[Text, Sequence[Text]]
Inputs = Union[Input, Sequence[Input]]


class TraceQuestions(Asked):
    """Questions to a trace."""

    def ask(self, question: str, *, allow_write: bool = False,
            progress: Optional[Progress] = None, **params: Any) -> Report:
        raise NotImplementedError

    def diagnose(self, *, category: Texts = (), only: Texts = (),
                 min_share: float = 1, all: bool = False,
                 top: Optional[int] = None, param: Texts = (),
                 suppress: Optional[Input] = None,
                 progress: Optional[Progress] = None) -> Report:
        """What to change next.

        Ranked findings: what is wrong, what fixing it saves at least and at
        most, how sure that is, events that prove it, what could not be looked
        at and how to record it. A folder of ranks is one job.

        category: Run only rules of these categories
        only: Rules or tables
        min_share: Percent of the window below which a finding is only counted
            (from 0 to 100)
        all: Small and suppressed findings, too
        top: Rows per table
        param: RULE.NAME=NUMBER: another threshold; may be repeated
        suppress: File of findings that are known (default:
            .lamina-findings.yaml beside the trace or above it)
        """
        return self.ask("diagnose", progress=progress, category=category,
                        only=only, min_share=min_share, all=all, top=top,
                        param=param, suppress=suppress)

    def layers(self, *, stage: Literal["all", "prefill", "decode", "mixed",
               "none", "unknown"] = "all", layer: Optional[Text] = None,
               variants: bool = False, only: Texts = (),
               top: Optional[int] = None, detector: Literal["auto", "repeat",
               "module", "classic"] = "auto",
               profile: Optional[Literal["default", "classic"]] = None,
               min_layers: int = 3, layers_per_pass: Optional[int] = None,
               split_half_layers: bool = False,
               grid_threshold: Optional[int] = None,
               debug_layers: Optional[Text] = None,
               layout: Literal["native", "classic"] = "native",
               explain: Optional[Text] = None, verbose: bool = False,
               progress: Optional[Progress] = None) -> Report:
        """Forward passes and transformer layers.

        Passes, stage (prefill, decode), layers per pass, time by kind and by
        part, odd layers. `layer` lists the kernels of layers of the first
        pass; `variants` shows kinds kernel by kernel.

        stage: Rows of this stage only
        layer: List the kernels of these layers of the first pass: 3, 0-2 or
            1,5-7
        variants: Kinds of layers kernel by kernel, equal kernels in the same
            place
        only: Only these tables: a,b
        top: Rows per table
        detector: auto: modules where the trace has them, else repeats in the
            sequence of kernels; classic: norms, by name
        profile: Name tables: default, or classic as the known analyzer has
            them (the default of detector classic)
        min_layers: Least copies that are layers (from 2 to 100000)
        layers_per_pass: Check the number of layers; exit status 1 when it
            differs (from 1 to 100000)
        split_half_layers: Leave attention halves and feed-forward halves apart
            (detector classic)
        grid_threshold: Attention kernels with more blocks in x are decode
            (detector classic)
        debug_layers: Votes and longest kernels of these layers of the first
            pass, with the rules that decided
        layout: classic: the files of the known analyzer
        explain: Say which rules decide about this kernel name, and stop; needs
            no trace
        verbose: Show the rules behind the most expensive names
        """
        return self.ask("layers", progress=progress, stage=stage, layer=layer,
                        variants=variants, only=only, top=top,
                        detector=detector, profile=profile,
                        min_layers=min_layers, layers_per_pass=layers_per_pass,
                        split_half_layers=split_half_layers,
                        grid_threshold=grid_threshold,
                        debug_layers=debug_layers, layout=layout,
                        explain=explain, verbose=verbose)

    def tree(self, *, by: Optional[Literal["op", "module"]] = None,
             depth: Optional[int] = None, min_share: float = 0.1,
             expand: bool = False, python_stacks: bool = False,
             compiled: Inputs = (), only: Texts = (),
             top: Optional[int] = None,
             progress: Optional[Progress] = None) -> Report:
        """Call tree or module tree.

        Ops or modules as a tree with device time, small branches folded.

        by: module or op (default: module if the trace has modules)
        depth: Levels to show (from 1 to 1000)
        min_share: Fold lines below this percentage of the device time (from 0
            to 100)
        expand: One line per module instead of "24 x DecoderLayer"
        python_stacks: Python frames too (with by op)
        compiled: Output code of Inductor (output_code.py), a log or
            TORCH_TRACE file that holds it, or a folder of tlparse or
            TORCH_COMPILE_DEBUG: says which ops and lines of the model each
            compiled kernel is; may be repeated
        only: Only these tables: a,b
        top: Rows per table
        """
        return self.ask("tree", progress=progress, by=by, depth=depth,
                        min_share=min_share, expand=expand,
                        python_stacks=python_stacks, compiled=compiled,
                        only=only, top=top)

    def host(self, *, by: Literal["device", "stream", "step", "layer",
             "annotation", "op"] = "device", step: Optional[Text] = None,
             ranks: Inputs = (), no_sync_records: bool = False,
             infer: Literal["on", "off"] = "on", only: Texts = (),
             top: Optional[int] = None,
             progress: Optional[Progress] = None) -> Report:
        """Why the device waits.

        Idle time cut by cause to the nanosecond, launches and what they cost,
        queues, copies, waits of collectives, counters.

        by: Idle time also by stream, step, layer, annotation or op
        step: Only gaps that work of this step ended
        ranks: Traces of the other ranks, a folder or a pattern: comm_exposure
            then says how long collectives waited for them
        no_sync_records: Take no notice of what the profiler recorded of waits
        infer: Whether waits that are not recorded are inferred from times
        only: Only these tables: a,b
        top: Rows per table
        """
        return self.ask("host", progress=progress, by=by, step=step,
                        ranks=ranks, no_sync_records=no_sync_records,
                        infer=infer, only=only, top=top)

    def path(self, *, window: Optional[Text] = None,
             by: Literal["step", "layer"] = "step", what_if: Texts = (),
             no_sync_records: bool = False, infer: Literal["on", "off"] = "on",
             only: Texts = (), top: Optional[int] = None,
             progress: Optional[Progress] = None) -> Report:
        """The critical path of a run.

        What host and device spend it on, slack, and the predicted end if
        something were faster; also over ranks.

        window: A step, a range whose name contains this text, or A..B from the
            first event (1.5ms..2ms); else the whole trace
        by: What gets a verdict of its own beside the window
        what_if: Predict the end if: scale:kernel~RE:F, scale:op~RE:F,
            scale:host~RE:F, scale:class=NAME:F, bandwidth:copy=GBPS,
            bandwidth:comm=GBPS, drop:sync[~RE], graph:step=N,
            graph:run=STREAM/RUN, fuse:SEQUENCE, zero:launch or zero:gaps; may
            be repeated
        no_sync_records: Take no notice of what the profiler recorded of waits
        infer: Whether waits that are not recorded are inferred from times
        only: Only these tables: a,b
        top: Rows per table
        """
        return self.ask("path", progress=progress, window=window, by=by,
                        what_if=what_if, no_sync_records=no_sync_records,
                        infer=infer, only=only, top=top)

    def requests(self, bench: Input, *, slo: Optional[Text] = None,
                 request: Optional[Text] = None, only: Texts = (),
                 top: Optional[int] = None,
                 clock: Literal["auto", "epoch", "own"] = "auto",
                 clock_offset: Optional[Text] = None,
                 bench_line: Optional[int] = None, log: Inputs = (),
                 findings: bool = False, steady: bool = False,
                 progress: Optional[Progress] = None) -> Report:
        """What users of a server waited for.

        Lays the records of a client's bench on the trace: queue, TTFT and ITL
        of each request, whose prefill delayed whom, goodput. `request`: its
        path.

        bench: Records of the bench
        slo: Limits of a request: ttft=200ms,itl=25ms; p99: before one: of all
        request: Also the path of this request: what its time is made of
        only: Only these tables: a,b
        top: Rows per table
        clock: Whether times of the records are a wall clock or have any zero
        clock_offset: Place by hand: the clock of the records minus that of the
            trace
        bench_line: Of a file with a line per run this one, from 1 (default:
            the last)
        log: Log of the server, for passes whose load the trace does not say:
            vLLM, TensorRT-LLM or SGLang; may be repeated
        findings: Also what the findings of the trace mean for users:
            fix_effects
        steady: Summaries of the stretch of even load alone
        """
        return self.ask("requests", progress=progress, bench=bench, slo=slo,
                        request=request, only=only, top=top, clock=clock,
                        clock_offset=clock_offset, bench_line=bench_line,
                        log=log, findings=findings, steady=steady)

    def annotate(self, *, from_: Inputs = (),
                 min_evidence: Optional[Text] = None, only: Texts = (),
                 top: Optional[int] = None, compiled: Inputs = (),
                 method: Literal["align", "name"] = "align",
                 tags: Optional[Text] = None, levels: Texts = (),
                 batch: Text = "auto",
                 kernel_annotations: Optional[Input] = None,
                 progress: Optional[Progress] = None) -> Report:
        """Ops of replayed graph kernels.

        Which op, module and line each kernel of a replayed CUDA graph goes
        back to, with the level of evidence of each match.

        from_: Traces of the capture or of an eager run
        min_evidence: No tag for kernels below this level, for example sure
        only: Only these tables: a,b
        top: Rows per table
        compiled: Output code of Inductor (output_code.py), a log or
            TORCH_TRACE file that holds it, or a folder of tlparse or
            TORCH_COMPILE_DEBUG: says which ops and lines of the model each
            compiled kernel is; may be repeated
        method: align: every kernel by its place; name: all tags of its name,
            as the simple method does it, for comparison
        tags: Ranges that count as tags (RE2; default: ^line_)
        levels: Tags to write: op, instance, module, line, range (default:
            all); with method name the one to collect
        batch: Batch of the replays: its capture is the smallest that holds it
            (auto: what the steps say)
        kernel_annotations: JSON that PyTorch wrote while it recorded the
            graphs: tags or Python stacks by node id
        """
        return self.ask("annotate", progress=progress, from_=from_,
                        min_evidence=min_evidence, only=only, top=top,
                        compiled=compiled, method=method, tags=tags,
                        levels=levels, batch=batch,
                        kernel_annotations=kernel_annotations)

    def graph_kernels(self, *, dump: Optional[Input] = None,
                      section: Optional[Text] = None,
                      dialect: Optional[Text] = None,
                      layer: Optional[Text] = None,
                      graph: Optional[int] = None,
                      phase: Optional[Literal["prefill", "decode"]] = None,
                      only: Texts = (), top: Optional[int] = None,
                      progress: Optional[Progress] = None) -> Report:
        """Kernels of a replayed graph.

        Times of the kernels of a replayed device graph; with `dump` on its
        nodes and layers.

        dump: Graph dump, or a folder of them: kernels are put on its nodes
        section: GraphModule of the dump (default: the largest)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        layer: Only this layer
        graph: Id of the device graph (default: the one that fits)
        phase: Only graphs of this phase
        only: Only these tables: a,b
        top: Rows per table
        """
        return self.ask("graph_kernels", progress=progress, dump=dump,
                        section=section, dialect=dialect, layer=layer,
                        graph=graph, phase=phase, only=only, top=top)

    def slice(self, output: Path, *, step: Optional[int] = None,
              where: Texts = (), time: Optional[Text] = None,
              layer: Optional[Text] = None, name: Optional[Text] = None,
              stream: Optional[int] = None, top: Optional[int] = None,
              progress: Optional[Progress] = None) -> Report:
        """A smaller trace.

        Writes part of a trace as a file.

        output: File to write, which must not be there yet
        step: The step with this number, with all that it launched
        where: Device work with FIELD=VALUE, or without (FIELD!=VALUE); of
            several for one field any, of several fields all. Fields:   group
            colour group of the family: gemm, attention, norm ...   family
            family, as in the table kernels   kernel         name of the kernel
            op             op above the launch, as in the table kernels
            op_efficiency  row of op_efficiency (an op with shapes) by its
            first_uid; none: work in no op   module         path of a module,
            with all below it   layers         row of the table layers by its
            first_uid   layer          number of a layer, in every pass   pass
            number of a pass   stage          stage of a pass: prefill, decode,
            mixed ...   step           name of a step, as in the table steps
            stream         stream, or DEVICE/STREAM, or PROCESS/DEVICE/STREAM
            time           span that it overlaps, from the first event:
            10ms..20ms   length         span of lengths, end excluded: 10us..
            or ..2us   event          number of an event of the trace   text
            words that all occur in the kernel, in the op or in the module
        time: What overlaps this span, from the first event: 10ms..20ms
        layer: Layers with these numbers, in every pass: 3, 0-2 or 1,5-7
        name: Kernels and host events whose name matches (RE2), with what is
            inside
        stream: Device work of this stream
        top: Rows per table
        """
        return self.ask("slice", allow_write=True, progress=progress,
                        output=output, step=step, where=where, time=time,
                        layer=layer, name=name, stream=stream, top=top)

    def replay(self, output: Path, *, op: Optional[Text] = None,
               shape: Optional[Text] = None, id: Optional[int] = None,
               all: bool = False, outer: bool = False,
               top: Optional[int] = None,
               progress: Optional[Progress] = None) -> Report:
        """Scripts that run ops again.

        Writes a folder with a script for each of the ops that take longest.

        output: Folder to write
        op: Ops of this name: aten::mm or mm
        shape: Only calls whose shapes hold this text: [8944,1024]
        id: The op with this event number, or that launched it
        all: All ops, not only the ten (top N) with most device time
        outer: Also ops that launch their work through ops inside them
        top: Rows per table
        """
        return self.ask("replay", allow_write=True, progress=progress,
                        output=output, op=op, shape=shape, id=id, all=all,
                        outer=outer, top=top)

    def annotate_trace(self, output: Path, *, from_: Inputs = (),
                       compiled: Inputs = (),
                       method: Literal["align", "name"] = "align",
                       tags: Optional[Text] = None, levels: Texts = (),
                       batch: Text = "auto",
                       kernel_annotations: Optional[Input] = None,
                       min_evidence: Optional[Text] = None, only: Texts = (),
                       top: Optional[int] = None,
                       progress: Optional[Progress] = None) -> Report:
        """A replay with its ops.

        Writes a copy of a trace in which each kernel of a replayed graph has
        its op, module and line among its arguments.

        output: File to write; for a folder of replays, a folder
        from_: Traces of the capture or of an eager run, or a folder of them;
            not needed where the trace itself says which node each kernel goes
            back to (Nsight Systems)
        compiled: Output code of Inductor (output_code.py), a log or
            TORCH_TRACE file that holds it, or a folder of tlparse or
            TORCH_COMPILE_DEBUG: says which ops and lines of the model each
            compiled kernel is; may be repeated
        method: align: every kernel by its place; name: all tags of its name,
            as the simple method does it, for comparison
        tags: Ranges that count as tags (RE2; default: ^line_)
        levels: Tags to write: op, instance, module, line, range (default:
            all); with method name the one to collect
        batch: Batch of the replays: its capture is the smallest that holds it
            (auto: what the steps say)
        kernel_annotations: JSON that PyTorch wrote while it recorded the
            graphs: tags or Python stacks by node id
        min_evidence: No tag for kernels below this level, for example sure
        only: Only these tables: a,b
        top: Rows per table
        """
        return self.ask("annotate_trace", allow_write=True, progress=progress,
                        output=output, from_=from_, compiled=compiled,
                        method=method, tags=tags, levels=levels, batch=batch,
                        kernel_annotations=kernel_annotations,
                        min_evidence=min_evidence, only=only, top=top)

    def convert(self, output: Path, *, no_args: bool = False,
                top: Optional[int] = None,
                progress: Optional[Progress] = None) -> Report:
        """A trace in another form.

        Writes a trace as a Perfetto trace or as Chrome JSON.

        output: File to write: .pftrace or .json, each also with .gz
        no_args: Perfetto: names and times only, for very large traces
        top: Rows per table
        """
        return self.ask("convert", allow_write=True, progress=progress,
                        output=output, no_args=no_args, top=top)


class DumpQuestions:
    """Questions to graph dumps."""

    path: str

    def layers(self, *, section: Optional[Text] = None,
               dialect: Optional[Text] = None, only: Texts = (),
               top: Optional[int] = None, threads: int = 0,
               rules: Optional[Path] = None,
               progress: Optional[Progress] = None) -> Report:
        """All layers of a graph dump.

        Kinds of layers, parts, odd layers, boundaries. A folder of dumps: its
        last one.

        section: GraphModule (default: the largest)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_layers", dump=self.path, threads=threads,
                   rules=rules, progress=progress, section=section,
                   dialect=dialect, only=only, top=top)

    def layer(self, layer: Text, *, section: Optional[Text] = None,
              dialect: Optional[Text] = None, trace: Optional[Input] = None,
              phase: Optional[Literal["prefill", "decode"]] = None,
              extended: bool = False, graph: Optional[int] = None,
              force: bool = False, threads: int = 0,
              rules: Optional[Path] = None,
              progress: Optional[Progress] = None) -> Report:
        """One layer of a graph dump.

        Nodes with ops, shapes, groups and inputs, weights and what comes from
        outside; with `trace` the kernels of a replay on each node.

        layer: Layer: 5, 2-4, STACK:5, all, shared or epilogue
        section: GraphModule (default: the largest)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        trace: Trace with replays of the graph
        phase: Only graphs of this phase
        extended: Also what the layer format has no place for, below the key
            lamina
        graph: Id of the device graph (default: the one that fits)
        force: Put kernels on nodes though less than 80 % of the kernel time
            fits the dump surely
        """
        return ask("graph_layer", dump=self.path, threads=threads, rules=rules,
                   progress=progress, layer=layer, section=section,
                   dialect=dialect, trace=trace, phase=phase,
                   extended=extended, graph=graph, force=force)

    def census(self, *, rule: Texts = (), section: Optional[Text] = None,
               dialect: Optional[Text] = None, log: Optional[Input] = None,
               explain: bool = False, only: Texts = (),
               top: Optional[int] = None, threads: int = 0,
               rules: Optional[Path] = None,
               progress: Optional[Progress] = None) -> Report:
        """Known fusions in dumps.

        Which fusion rules match, which nearly match and why not, by file and
        layer.

        rule: Only these rules
        section: Only this GraphModule
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        log: Log of the run (default: transform.log of the folder)
        explain: List the rules with their conditions, and stop
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_census", dump=self.path, threads=threads,
                   rules=rules, progress=progress, rule=rule, section=section,
                   dialect=dialect, log=log, explain=explain, only=only,
                   top=top)

    def candidates(self, *, section: Optional[Text] = None,
                   dialect: Optional[Text] = None,
                   tree: Optional[Input] = None, log: Optional[Input] = None,
                   trace: Optional[Input] = None, bind: Texts = (),
                   min_layers: Optional[int] = None, without_rule: Texts = (),
                   graph: Optional[int] = None,
                   phase: Optional[Literal["prefill", "decode"]] = None,
                   device: Optional[Text] = None, force: bool = False,
                   only: Texts = (), top: Optional[int] = None,
                   threads: int = 0, rules: Optional[Path] = None,
                   progress: Optional[Progress] = None) -> Report:
        """What could be fused.

        Known rules, switched-off ones and repeated forms, each with the
        kernels that exist for it, support, risk and worth: an estimate, or
        with `trace` a bound. `tree` is a source checkout to look kernels up
        in; without it nothing is known of kernels.

        section: GraphModule to look at (default: the largest)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        tree: Source checkout of TensorRT-LLM to look up kernels in
        log: Log of the run (default: transform.log beside the dump)
        trace: Trace with replays of this graph: savings are bounds by what its
            nodes took, not estimates
        bind: Sizes of symbols, like s72=1,s70=128
        min_layers: Layers that must hold a form (default: half of them)
        without_rule: Leave out these rules: what they match is searched for
        graph: Id of the device graph (default: the one that fits)
        phase: Only graphs of this phase
        device: Device that savings are for: a name or a file (default: what
            the trace says, else an H100 SXM)
        force: Go on with a trace of which less than 80 % of the time is surely
            on nodes of the dump
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_candidates", dump=self.path, threads=threads,
                   rules=rules, progress=progress, section=section,
                   dialect=dialect, tree=tree, log=log, trace=trace, bind=bind,
                   min_layers=min_layers, without_rule=without_rule,
                   graph=graph, phase=phase, device=device, force=force,
                   only=only, top=top)

    def review(self, after: Input, rule: Text, *, tree: Optional[Input] = None,
               log: Inputs = (), config: Optional[Input] = None,
               overlay: Inputs = (), only: Texts = (),
               top: Optional[int] = None, threads: int = 0,
               rules: Optional[Path] = None,
               progress: Optional[Progress] = None) -> Report:
        """Checklist of a fusion.

        A fusion pass judged by the dumps of a run before and after it, row by
        row.

        after: Dumps of the run after
        rule: The fusion under review
        tree: Source checkout to look for the registration and tests
        log: Logs of both runs (default: transform.log of the folders)
        config: Configuration of the pipeline, as for graph rewrite
        overlay: Files laid over it
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_review", before=self.path, threads=threads,
                   rules=rules, progress=progress, after=after, rule=rule,
                   tree=tree, log=log, config=config, overlay=overlay,
                   only=only, top=top)

    def rewrite(self, config: Input, *, overlay: Inputs = (),
                assume: Texts = (), stage_order: Texts = (),
                device: Optional[Text] = None, only: Texts = (),
                top: Optional[int] = None, threads: int = 0,
                rules: Optional[Path] = None,
                progress: Optional[Progress] = None) -> Report:
        """What transforms would do.

        A dump as the transforms of a pipeline configuration leave it: matches,
        ops before and after, savings. Nothing is written.

        config: Transforms to run, in the form of AutoDeploy's default.yaml
        overlay: Files to lay over it, such as those of a model registry
        assume: Ids of guards to take as given that a dump cannot show
        stage_order: Another order of stages
        device: Device that savings are for: a name or a file (default: what
            the trace says, else an H100 SXM)
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_rewrite", dump=self.path, threads=threads,
                   rules=rules, progress=progress, config=config,
                   overlay=overlay, assume=assume, stage_order=stage_order,
                   device=device, only=only, top=top)

    def diff(self, b: Input, *, section: Optional[Text] = None,
             dialect: Optional[Text] = None, only: Texts = (),
             top: Optional[int] = None, threads: int = 0,
             rules: Optional[Path] = None,
             progress: Optional[Progress] = None) -> Report:
        """What two dumps compute differently.

        Nodes that came, went or changed between two dumps, by layer.

        b: The other one
        section: GraphModule (default: the largest of each)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_diff", a=self.path, threads=threads, rules=rules,
                   progress=progress, b=b, section=section, dialect=dialect,
                   only=only, top=top)

    def kernels(self, trace: Input, *, section: Optional[Text] = None,
                dialect: Optional[Text] = None, layer: Optional[Text] = None,
                graph: Optional[int] = None,
                phase: Optional[Literal["prefill", "decode"]] = None,
                only: Texts = (), top: Optional[int] = None, threads: int = 0,
                rules: Optional[Path] = None,
                progress: Optional[Progress] = None) -> Report:
        """Kernels of a replayed graph.

        Times of the kernels of a replayed device graph; with `dump` on its
        nodes and layers.

        trace: Path of a trace
        section: GraphModule of the dump (default: the largest)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        layer: Only this layer
        graph: Id of the device graph (default: the one that fits)
        phase: Only graphs of this phase
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_kernels", dump=self.path, threads=threads,
                   rules=rules, progress=progress, trace=trace,
                   section=section, dialect=dialect, layer=layer, graph=graph,
                   phase=phase, only=only, top=top)

    def pipeline(self, *, section: Optional[Text] = None,
                 dialect: Optional[Text] = None, all: bool = False,
                 ops: bool = False, only: Texts = (),
                 top: Optional[int] = None, threads: int = 0,
                 rules: Optional[Path] = None,
                 progress: Optional[Progress] = None) -> Report:
        """What each transform of a run changed.

        The dumps of a run, stage by stage: nodes and ops that came and went.

        section: GraphModule to follow (default: the largest)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        all: Also transforms that changed nothing
        ops: Every op whose count changed, not only those that came or went
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_pipeline", folder=self.path, threads=threads,
                   rules=rules, progress=progress, section=section,
                   dialect=dialect, all=all, ops=ops, only=only, top=top)

    def print(self, *, section: Optional[Text] = None,
              dialect: Optional[Text] = None, bind: Texts = (),
              stats: bool = False, strict: bool = False, only: Texts = (),
              top: Optional[int] = None, threads: int = 0,
              rules: Optional[Path] = None,
              progress: Optional[Progress] = None) -> Report:
        """A graph dump as tables.

        Graphs, ops by number, nodes, weights and edges of a dump.

        section: Only this GraphModule (default: all)
        dialect: Read the dump as this one of autodeploy, fx, fx-graph,
            fx-table, inductor, mlir, hlo, log, trace, whatever its content
            looks like
        bind: Values of symbols for sizes in bytes: s72=1,s70=128
        stats: Count instead of printing
        strict: Stop at the first bad line
        only: Only these tables: a,b
        top: Rows per table
        """
        return ask("graph_print", dump=self.path, threads=threads, rules=rules,
                   progress=progress, section=section, dialect=dialect,
                   bind=bind, stats=stats, strict=strict, only=only, top=top)


def diff(a: Input, b: Input, *, findings: bool = False, capture: Inputs = (),
         only: Texts = (), top: Optional[int] = None,
         unit: Literal["auto", "step", "pass", "window"] = "auto",
         measure: Literal["unit", "kernel_time", "busy", "total"] = "unit",
         run_noise: Optional[Text] = None, capture_a: Inputs = (),
         capture_b: Inputs = (), against: Inputs = (),
         store: Optional[Text] = None,
         layout: Literal["native", "tracelens"] = "native",
         python_stacks: bool = False, threads: int = 0,
         rules: Optional[Path] = None,
         progress: Optional[Progress] = None) -> Report:
    """What changed between two traces.

    By step or pass: verdict, parts, kernels. `findings`: what diagnose
    says of both.

    a: The trace before
    b: The trace after
    findings: What the rules of diagnose say of both: fixed, new, better,
        worse, or not to be seen any more
    capture: Captures of replayed graphs
    only: Only these tables: a,b
    top: Rows per table
    unit: What is compared: steps, passes of a server, or whole windows
        (auto: steps, else passes, else windows)
    measure: What is compared of a unit: the unit itself, the sum of its
        device work, or the time in which the device was busy; total: the
        window
    run_noise: What recordings of one program differ by, one standard
        deviation (default: 0.5% is assumed)
    capture_a: Captures of the replayed graphs of the first trace alone
    capture_b: Captures of the replayed graphs of the others alone
    against: Traces of B where all others are of A: recordings of both
        programs, whose own noise is measured, or ranks of two jobs, which
        meet by number
    store: A store of runs: what recordings differ by is measured there,
        and what was decided about this pair holds; A and B may be run:NAME
        or baseline:NAME
    layout: Tables of another tool: diff_stats of TraceLens' TraceDiff
    python_stacks: Match all Python frames, not only modules
    """
    return ask("diff", threads=threads, rules=rules, progress=progress, a=a,
               b=b, findings=findings, capture=capture, only=only, top=top,
               unit=unit, measure=measure, run_noise=run_noise,
               capture_a=capture_a, capture_b=capture_b, against=against,
               store=store, layout=layout, python_stacks=python_stacks)


def sweep(paths: Inputs, *, x: Literal["auto", "batch", "context", "tokens",
          "requests"] = "auto",
          group: Literal["half", "family", "module", "kernel"] = "half",
          phase: Literal["auto", "decode", "prefill", "mixed"] = "auto",
          steady: bool = False, capture: Inputs = (), only: Texts = (),
          top: Optional[int] = None, threads: int = 0,
          rules: Optional[Path] = None,
          progress: Optional[Progress] = None) -> Report:
    """Time over batch or context.

    Traces at several loads: the time of each part of a layer as a
    function, its knee, what one more request costs.

    paths: One trace per load
    x: The load: requests that generate, their mean context, tokens of a
        pass, or prompts; auto: the first of which there are several
    group: What is a part of a pass
    phase: Passes that are taken; auto: those with most time
    steady: Of each trace the stretch of even load alone
    capture: Traces in which the replayed graphs were captured, or a folder
        of them: their ops join the tree below the launches
    only: Only these tables: a,b
    top: Rows per table
    """
    return ask("sweep", threads=threads, rules=rules, progress=progress,
               paths=paths, x=x, group=group, phase=phase, steady=steady,
               capture=capture, only=only, top=top)


def ranks(paths: Inputs, *, only: Texts = (), top: Optional[int] = None,
          capture: Inputs = (),
          layout: Literal["native", "tracelens"] = "native",
          raw_clocks: bool = False, threads: int = 0,
          rules: Optional[Path] = None,
          progress: Optional[Progress] = None) -> Report:
    """Many ranks of one job.

    Collectives matched over ranks: stragglers and their causes, waits,
    clock offsets, bandwidth.

    paths: A folder of traces, or one trace per rank
    only: Only these tables: a,b
    top: Rows per table
    capture: Traces in which the replayed graphs were captured, or a folder
        of them: their ops join the tree below the launches
    layout: native, or the tables of TraceLens's report over ranks
    raw_clocks: Leave times as recorded; clock_offsets still says how
        clocks differ
    """
    return ask("ranks", threads=threads, rules=rules, progress=progress,
               paths=paths, only=only, top=top, capture=capture, layout=layout,
               raw_clocks=raw_clocks)


def graph_log_diff(log_a: Input, log_b: Input, *, dumps: Inputs = (),
                   max_drop: float = 0, layers: Optional[int] = None,
                   only: Texts = (), top: Optional[int] = None,
                   threads: int = 0, rules: Optional[Path] = None,
                   progress: Optional[Progress] = None) -> Report:
    """Transforms that lost matches.

    The logs of two runs, transform by transform; with `dumps` of both,
    which kind of near miss took the matches.

    log_a: Log of the run to compare with
    log_b: Log of the new run
    dumps: Folders of dumps of both runs
    max_drop: Percent of its matches that a transform may lose (from 0 to
        100)
    layers: Layers of the model (default: guessed from the first log) (from
        1 to 1e+06)
    only: Only these tables: a,b
    top: Rows per table
    """
    return ask("graph_log_diff", threads=threads, rules=rules,
               progress=progress, log_a=log_a, log_b=log_b, dumps=dumps,
               max_drop=max_drop, layers=layers, only=only, top=top)


def cost(op: Text, shapes: Text, dtypes: Texts, *,
         concrete: Optional[Text] = None, step: Optional[Text] = None,
         device: Optional[Text] = None, backward: bool = False,
         only: Texts = (), top: Optional[int] = None, threads: int = 0,
         rules: Optional[Path] = None,
         progress: Optional[Progress] = None) -> Report:
    """What one call of an op needs.

    FLOPs, bytes and roofline of a call by the cost models, without a
    trace.

    op: Name of the op, as in a trace
    shapes: JSON list with the shape of every argument
    dtypes: Element type of every argument, or one for all
    concrete: JSON list with the scalar arguments, as a trace has them
    step: Name of the serving step (execute_...), for attention over a
        cache
    device: Device for the roofline: a name or a file
    backward: Of the backward pass
    only: Only these tables: a,b
    top: Rows per table
    """
    return ask("cost", threads=threads, rules=rules, progress=progress, op=op,
               shapes=shapes, dtypes=dtypes, concrete=concrete, step=step,
               device=device, backward=backward, only=only, top=top)


def memory(files: Inputs, *, device: Optional[Text] = None, peak:
           Literal["active", "allocated", "requested", "reserved"] = "active",
           at: Optional[Text] = None, by: Literal["category", "module", "op",
           "line", "stack", "stream", "pool", "device"] = "category",
           trace: Optional[Input] = None, depth: Optional[int] = None,
           steps: Optional[Text] = None, own: Optional[Text] = None,
           capacity: Optional[Text] = None, leak_steps: int = 3,
           from_: Optional[int] = None, to: Optional[int] = None,
           diff: bool = False, all: bool = False, full: bool = False,
           native: bool = False, explain: Optional[Text] = None,
           salvage: bool = False, only: Texts = (), top: Optional[int] = None,
           threads: int = 0, rules: Optional[Path] = None,
           progress: Optional[Progress] = None) -> Report:
    """What fills the GPU.

    Memory snapshots, or traces with memory events: peaks, who allocated,
    fragmentation, leaks, what to free.

    files: Memory snapshots, or traces with memory events; several are
        ranks of one job
    device: Only this device: a number, or cpu in a trace
    peak: Measure whose peak is looked at
    at: Another moment: a number of events, end, oom, step:K or +12.5ms
    by: Rows of memory_peak
    trace: Trace of the same run: ops, modules and steps of allocations
    depth: Calls of modules that are told apart (default: 3 on a terminal,
        all in files) (from 1 to 1000)
    steps: Annotations that are steps (RE2)
    own: Paths of the program's own code (RE2)
    capacity: Memory of the device: 80GB, 64GiB
    leak_steps: Steps that a leak must be seen in (from 3 to 1e+06)
    from_: First event that is looked at
    to: Last event that is looked at
    diff: What differs between two snapshots at their peaks
    all: All allocations, not only those of the moment
    full: Every moment of the timeline, not 2000
    native: Native frames stay in the tree of stacks
    explain: Why the largest allocation of a line (train.py:12) has its
        category
    salvage: Use what is complete in a file that is cut off
    only: Only these tables: a,b
    top: Rows per table
    """
    return ask("memory", threads=threads, rules=rules, progress=progress,
               files=files, device=device, peak=peak, at=at, by=by,
               trace=trace, depth=depth, steps=steps, own=own,
               capacity=capacity, leak_steps=leak_steps, from_=from_, to=to,
               diff=diff, all=all, full=full, native=native, explain=explain,
               salvage=salvage, only=only, top=top)


def merge(paths: Inputs, output: Path, *, align_clocks: bool = False,
          python: bool = False, top: Optional[int] = None, threads: int = 0,
          rules: Optional[Path] = None,
          progress: Optional[Progress] = None) -> Report:
    """Many ranks in one trace.

    Writes the traces of all ranks as one.

    paths: A folder of traces, or one trace per rank
    output: File to write: .json or .pftrace, each also with .gz
    align_clocks: Take the offset and drift of each rank's clock off its
        times, as ranks finds them
    python: Keep Python frames
    top: Rows per table
    """
    return ask("merge", allow_write=True, threads=threads, rules=rules,
               progress=progress, paths=paths, output=output,
               align_clocks=align_clocks, python=python, top=top)
