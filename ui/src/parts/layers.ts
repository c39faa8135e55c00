// A layout for graphs that are too large for dagre: steps in layers along their routes, each near the steps before and after it.
// Its time grows with the number of routes.
import type { Graph } from '../api/client';

export interface Box {
  width: number;
  height: number;
  gapX: number;
  gapY: number;
}

type Links = Map<string, string[]>;

const SWEEPS = 4;
/** A layer with more steps has several rows. */
const ROW_MAX = 40;

export function placeInLayers(graph: Graph, { width, height, gapX, gapY }: Box): Map<string, { x: number; y: number }> {
  const { before, after } = forwardLinks(graph);
  const layers = layersOf(graph.nodes.map(({ id }) => id), before, after);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    sortLayers(isDown ? layers : layers.toReversed(), isDown ? before : after);
  }
  const at = new Map<string, { x: number; y: number }>();
  let y = 0;
  for (const layer of layers) {
    for (let start = 0; start < layer.length; start += ROW_MAX) {
      const row = layer.slice(start, start + ROW_MAX);
      row.forEach((id, place) => at.set(id, { x: (place - (row.length - 1) / 2) * (width + gapX), y }));
      y += height + gapY;
    }
  }
  return at;
}

/** The links without those that lead back to a step on the way to it, so that no cycle remains. */
function forwardLinks(graph: Graph): { before: Links; after: Links } {
  const targets: Links = new Map(graph.nodes.map(({ id }) => [id, []]));
  graph.edges.forEach(({ from, to }) => from !== to && targets.has(to) && targets.get(from)?.push(to));
  const before: Links = new Map(graph.nodes.map(({ id }) => [id, []]));
  const after: Links = new Map(graph.nodes.map(({ id }) => [id, []]));
  const state = new Map<string, 'open' | 'done'>();
  for (const root of [...graph.entries, ...targets.keys()]) {
    const way: { id: string; next: number }[] = state.has(root) ? [] : [{ id: root, next: 0 }];
    while (way.length > 0) {
      const here = way.at(-1) as { id: string; next: number };
      state.set(here.id, 'open');
      const target = targets.get(here.id)?.[here.next];
      here.next += 1;
      if (target === undefined) {
        state.set(here.id, 'done');
        way.pop();
      } else if (state.get(target) !== 'open') {
        after.get(here.id)?.push(target);
        before.get(target)?.push(here.id);
        if (!state.has(target)) way.push({ id: target, next: 0 });
      }
    }
  }
  return { before, after };
}

/** Each step is in the layer after the last of those before it. */
function layersOf(ids: readonly string[], before: Links, after: Links): string[][] {
  const rank = new Map<string, number>();
  const missing = new Map(ids.map((id) => [id, before.get(id)?.length ?? 0]));
  const ready = ids.filter((id) => missing.get(id) === 0);
  for (let place = 0; place < ready.length; place += 1) {
    const id = ready[place] as string;
    const own = Math.max(-1, ...(before.get(id) ?? []).map((other) => rank.get(other) ?? 0)) + 1;
    rank.set(id, own);
    for (const next of after.get(id) ?? []) {
      const left = (missing.get(next) ?? 0) - 1;
      missing.set(next, left);
      if (left === 0) ready.push(next);
    }
  }
  const layers: string[][] = [];
  for (const id of ready) (layers[rank.get(id) ?? 0] ??= []).push(id);
  return layers;
}

/** Sorts each layer by the mean place of the neighbours in the layers that are sorted already. */
function sortLayers(layers: readonly string[][], neighbours: Links): void {
  const place = new Map<string, number>();
  for (const layer of layers) {
    const mean = new Map(
      layer.map((id, own) => {
        const places = (neighbours.get(id) ?? []).flatMap((other) => place.get(other) ?? []);
        return [id, places.length > 0 ? places.reduce((sum, one) => sum + one, 0) / places.length : own / Math.max(layer.length - 1, 1)] as const;
      }),
    );
    layer.sort((one, other) => (mean.get(one) ?? 0) - (mean.get(other) ?? 0));
    // Places are shares of the width, because layers are centred.
    layer.forEach((id, own) => place.set(id, layer.length > 1 ? own / (layer.length - 1) : 0.5));
  }
}
