// The graph of a definition. It is laid out once for its shape, so that nothing moves while an execution changes colours.
import { graphlib, layout as place } from '@dagrejs/dagre';
import { Background, Controls, type Edge, Handle, MarkerType, MiniMap, type Node, type NodeProps, Panel, Position, ReactFlow, useReactFlow, type Viewport } from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { type KeyboardEvent, memo, useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { Graph } from '../api/client';
import { StatusMark } from './basics';
import { placeInLayers } from './layers';
import { useTheme } from './theme';
import { duration, plural } from './words';

/** A graph is that of a definition, or of a run of it. */
type StepNode = Node<{ step: Graph['nodes'][number]; isChosen: boolean; isRun: boolean; child: string | undefined; stop: Stop | undefined }, 'step'>;

/** The one step of a graph that the Tab key reaches: the arrow keys move it. */
interface Stop {
  id: string;
  /** Why it is this step: it then has the focus, or is marked as found. */
  by?: 'arrow' | 'search';
}

const WIDTH = 240;
const HEIGHT = 76;
const GAP_Y = 56;
const MINIMAP_FROM = 30;
/** Above this number of steps, the graph has a search field. */
const SEARCH_FROM = 30;
/** Above this number of steps, dagre takes seconds. */
const LARGE_FROM = 150;
const IN_VIEW = 12;
const LABEL_MAX = 28;

function positions(graph: Graph): Map<string, { x: number; y: number }> {
  // Labels of two routes from one step are next to each other.
  const gapX = graph.edges.some(({ label }) => label) ? 120 : 36;
  if (graph.nodes.length > LARGE_FROM) return placeInLayers(graph, { width: WIDTH, height: HEIGHT, gapX, gapY: GAP_Y });
  const drawn = new graphlib.Graph();
  drawn.setGraph({ rankdir: 'TB', nodesep: gapX, ranksep: GAP_Y });
  drawn.setDefaultEdgeLabel(() => ({}));
  graph.nodes.forEach(({ id }) => drawn.setNode(id, { width: WIDTH, height: HEIGHT }));
  graph.edges.forEach(({ from, to }) => drawn.setEdge(from, to));
  place(drawn);
  return new Map(graph.nodes.map(({ id }) => [id, drawn.node(id)]));
}

/** At a lower zoom, the names of steps cannot be read. */
const ZOOM_MIN = 0.5;

type Places = ReadonlyMap<string, { x: number; y: number }>;

/** Whether a graph is too wide to be shown as a whole. */
function isWide(at: Places): boolean {
  const places = [...at.values()].map(({ x }) => x);
  return (Math.max(...places) - Math.min(...places) + WIDTH) * ZOOM_MIN > window.innerWidth;
}

/** What is in view first: the whole graph, or of a large one the steps that failed or run, or else its beginning. Of a wide one, it is the
 * surroundings of the first of these steps. */
function firstView(graph: Graph, at: Places): { id: string }[] | undefined {
  const isLarge = graph.nodes.length > LARGE_FROM;
  if (!isLarge && !isWide(at)) return undefined;
  const lively = graph.nodes.filter(({ state }) => state && ['failed', 'running', 'retrying', 'waiting'].includes(state.status));
  const found = lively.length > 0 ? lively : graph.nodes;
  if (isLarge) return found.slice(0, IN_VIEW).map(({ id }) => ({ id }));
  const centre = at.get(found[0]?.id ?? '')?.x ?? 0;
  const distance = ({ id }: { id: string }) => Math.abs((at.get(id)?.x ?? 0) - centre);
  return graph.nodes.toSorted((one, other) => distance(one) - distance(other)).slice(0, IN_VIEW).map(({ id }) => ({ id }));
}

const Step = memo(function Step({ data: { step, isChosen, isRun, child, stop } }: NodeProps<StepNode>) {
  const { state } = step;
  const box = useRef<HTMLDivElement>(null);
  // A step out of view is in the document only after the view has moved.
  useEffect(() => {
    if (stop?.by === 'arrow') box.current?.closest<HTMLElement>('.react-flow__node')?.focus({ preventScroll: true });
  }, [stop]);
  const details = [
    state?.iterations && `${plural(state.iterations.begun, 'iteration')}${state.iterations.failed ? `, ${state.iterations.failed} failed` : ''}`,
    state && state.firings > 1 && `${state.firings} times`,
    state && state.attempts > 1 && plural(state.attempts, 'attempt'),
    state?.durationMs ? duration(state.durationMs) : undefined,
  ].filter(Boolean);
  return (
    <div ref={box} className={`step ${state?.status ?? (isRun ? 'unreached' : 'defined')} ${step.shape.replace(' ', '-')}${isChosen ? ' chosen' : ''}${stop?.by === 'search' ? ' found' : ''}`}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <strong title={step.id}>{step.name}</strong>
      <span className="faint">{step.captions.join(' · ')}</span>
      {state && <StatusMark status={state.status} text={[state.status, ...details].join(' · ')} title={[state.status, ...details].join(' · ')} />}
      {child && (
        <Link href={`/executions/${child}`} className="child nodrag nopan" tabIndex={stop ? 0 : -1} aria-label={`Child execution of ${step.name}`} title="its child execution" onClick={(event) => event.stopPropagation()}>
          child ↗
        </Link>
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
});

const TYPES = { step: Step };

/** Sizes and ends of routes are known before a step is drawn, so that only steps in view are drawn, from the first frame on. */
const FIXED = {
  width: WIDTH,
  height: HEIGHT,
  measured: { width: WIDTH, height: HEIGHT },
  handles: [
    { type: 'target' as const, position: Position.Top, x: WIDTH / 2, y: 0, width: 1, height: 1 },
    { type: 'source' as const, position: Position.Bottom, x: WIDTH / 2, y: HEIGHT, width: 1, height: 1 },
  ],
};

/** The keys are those of the page: a graph is only read, and each of these keys would cost an update of all its nodes. */
const NO_KEYS = { deleteKeyCode: null, selectionKeyCode: null, multiSelectionKeyCode: null, panActivationKeyCode: null, zoomActivationKeyCode: null };

interface Shown {
  graph: Graph;
  at: Map<string, { x: number; y: number }>;
  chosen: string | undefined;
  started: ReadonlyMap<string, string> | undefined;
  stop: Stop | undefined;
}

/** Nodes of steps that have not changed are kept, so that nothing is computed again for them. */
function nodesOf({ graph, at, chosen, started, stop: only }: Shown, before: ReadonlyMap<string, StepNode>): StepNode[] {
  const isRun = graph.nodes.some(({ state }) => state) || graph.edges.some(({ taken }) => taken != null);
  return graph.nodes.map((step) => {
    const { x, y } = at.get(step.id) ?? { x: 0, y: 0 };
    const isChosen = step.id === chosen;
    const child = started?.get(step.id);
    const stop = step.id === only?.id ? only : undefined;
    const known = before.get(step.id);
    if (known && known.data.step === step && known.data.isChosen === isChosen && known.data.isRun === isRun && known.data.child === child && known.data.stop === stop && known.position.x === x - WIDTH / 2 && known.position.y === y - HEIGHT / 2) return known;
    return {
      ...FIXED,
      id: step.id,
      type: 'step',
      position: { x: x - WIDTH / 2, y: y - HEIGHT / 2 },
      ariaLabel: isRun ? `${step.name}, ${step.state?.status ?? 'not reached'}` : step.name,
      ariaRole: 'group',
      // A click, too, may set the focus.
      domAttributes: { tabIndex: stop ? 0 : -1, 'aria-describedby': undefined },
      data: { step, isChosen, isRun, child, stop },
    };
  });
}

function edgesOf(graph: Graph): Edge[] {
  return graph.edges.map(({ from, to, label, kind, taken }, number) => ({
    id: String(number),
    source: from,
    target: to,
    label: shortLabel(label),
    className: `edge ${kind}${taken ? ' taken' : taken === 0 ? ' untaken' : ''}`,
    markerEnd: { type: MarkerType.ArrowClosed, color: `var(--${taken ? 'text' : kind === 'error' ? 'bad' : 'field'})` },
  }));
}

const shortLabel = (label: string | null | undefined) => (label && label.length > LABEL_MAX ? `${label.slice(0, LABEL_MAX)} …` : (label ?? undefined));

export interface GraphProps {
  graph: Graph;
  chosen?: string | undefined;
  choose?: (id: string) => void;
  /** The newest child executions of steps, by the ids of the steps. */
  started?: ReadonlyMap<string, string> | undefined;
}

export default function GraphView({ graph, chosen, choose, started }: GraphProps) {
  const shape = graph.nodes.map(({ id }) => id).join('\n') + graph.edges.map(({ from, to }) => `${from}>${to}`).join('\n');
  const at = useMemo(() => positions(graph), [shape]);
  const known = useRef<ReadonlyMap<string, StepNode>>(new Map());
  const [moved, setMoved] = useState<Stop>();
  const inView = useMemo(() => firstView(graph, at), [shape]);
  const first = chosen ?? inView?.[0]?.id ?? graph.entries[0] ?? graph.nodes[0]?.id;
  const stop = useMemo(() => (moved && at.has(moved.id) ? moved : first !== undefined ? { id: first } : undefined), [moved, at, first]);
  const nodes = useMemo(() => nodesOf({ graph, at, chosen, started, stop }, known.current), [graph.nodes, at, chosen, started, stop]);
  known.current = useMemo(() => new Map(nodes.map((node) => [node.id, node])), [nodes]);
  const edges = useMemo(() => edgesOf(graph), [graph.edges]);
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  /** Steps out of view are not in the document: the stop is one in view. */
  const keepStop = (_: unknown, { x, y, zoom }: Viewport) => {
    const place = stop && at.get(stop.id);
    if (!box.current || !place) return;
    const { clientWidth: width, clientHeight: height } = box.current;
    const [left, top] = [place.x * zoom + x, place.y * zoom + y];
    if (left < 0 || left > width || top < 0 || top > height) setMoved(nearest(at, (width / 2 - x) / zoom, (height / 2 - y) / zoom));
  };
  const press = (event: KeyboardEvent<HTMLElement>) => {
    if ((event.target as HTMLElement).tagName === 'A') return;
    const id = (event.target as HTMLElement).closest<HTMLElement>('.react-flow__node')?.dataset['id'];
    if (!id) return;
    if (event.key === 'Enter' || event.key === ' ') choose?.(id);
    else if (ARROWS[event.key]) setMoved({ id: neighbour(at, id, event.key) ?? id, by: 'arrow' });
    else return;
    event.preventDefault();
  };
  return (
    <div className="graph" ref={box} onKeyDown={press}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        colorMode={theme}
        fitView
        fitViewOptions={{ maxZoom: 1, ...(inView && { nodes: inView, minZoom: ZOOM_MIN }) }}
        minZoom={0.05}
        {...NO_KEYS}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        onlyRenderVisibleElements={graph.nodes.length > LARGE_FROM}
        onMoveEnd={keepStop}
        onNodeClick={(_, node) => choose?.(node.id)}
        proOptions={{ hideAttribution: true }}
      >
        <Background />
        <Controls showInteractive={false} />
        <View at={at} stop={moved} />
        {graph.nodes.length > SEARCH_FROM && <Search graph={graph} show={setMoved} />}
        {(inView || graph.nodes.length > MINIMAP_FROM) && <MiniMap pannable zoomable />}
      </ReactFlow>
    </div>
  );
}

function nearest(at: Places, x: number, y: number): Stop | undefined {
  const distance = (place: { x: number; y: number }) => Math.hypot(place.x - x, place.y - y);
  const [found] = [...at].toSorted(([, one], [, other]) => distance(one) - distance(other));
  return found && { id: found[0] };
}

/** The directions of the arrow keys. */
const ARROWS: Record<string, readonly [number, number]> = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

/** Returns the nearest step in the direction of an arrow key; what is off its line counts as farther. */
function neighbour(at: Places, from: string, key: string): string | undefined {
  const [across, down] = ARROWS[key] ?? [0, 0];
  const start = at.get(from);
  let found: { id: string; distance: number } | undefined;
  for (const [id, { x, y }] of at) {
    if (!start || id === from) continue;
    const along = (x - start.x) * across + (y - start.y) * down;
    const aside = Math.abs((x - start.x) * down) + Math.abs((y - start.y) * across);
    const distance = along + aside * 3;
    if (along > 1 && (!found || distance < found.distance)) found = { id, distance };
  }
  return found?.id;
}

/** At a lower zoom, the view is enlarged to show a step that was found. */
const ZOOM_FOUND = 0.8;

/** Moves the view to the step that was found or reached with the arrow keys. */
function View({ at, stop }: { at: Places; stop: Stop | undefined }) {
  const { setCenter, getZoom } = useReactFlow();
  useEffect(() => {
    const place = stop?.by && at.get(stop.id);
    if (place) void setCenter(place.x, place.y, { zoom: stop.by === 'search' ? Math.max(getZoom(), ZOOM_FOUND) : getZoom() });
    // A new layout does not move the view.
  }, [stop]);
  return null;
}

/** Finds steps by their names. Enter shows the next one. */
function Search({ graph, show }: { graph: Graph; show: (stop: Stop | undefined) => void }) {
  const [words, setWords] = useState('');
  const [place, setPlace] = useState(0);
  const find = (text: string) => {
    const wanted = text.trim().toLowerCase();
    return wanted ? graph.nodes.filter(({ id, name }) => id.toLowerCase().includes(wanted) || name.toLowerCase().includes(wanted)) : [];
  };
  const found = find(words);
  const shown = found[place % Math.max(found.length, 1)];
  const go = (text: string, to: number) => {
    const steps = find(text);
    const step = steps[(to + steps.length) % Math.max(steps.length, 1)];
    setWords(text);
    setPlace(steps.length > 0 ? (to + steps.length) % steps.length : 0);
    show(step && { id: step.id, by: 'search' });
  };
  return (
    <Panel position="top-left" className="find nopan nodrag nowheel">
      <form
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          go(words, place + 1);
        }}
      >
        <input
          type="search"
          aria-label="Find a step"
          placeholder="Find a step"
          value={words}
          onChange={(event) => go(event.target.value, 0)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !event.shiftKey) return;
            event.preventDefault();
            go(words, place - 1);
          }}
        />
        <span role="status">{words.trim() && (shown ? `${place + 1} of ${found.length}: ${shown.name}` : 'No step matches.')}</span>
      </form>
    </Panel>
  );
}
