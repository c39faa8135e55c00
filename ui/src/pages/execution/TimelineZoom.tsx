// The part of a timeline that is shown: in the address, so that a link shows the same part.
import { type PointerEvent, useMemo, useRef, useState } from 'react';
import { useAddress } from '../../parts/address';
import { duration } from '../../parts/words';

const TICKS = 5;

export interface Span {
  from: number;
  to: number;
}

/** Returns the enlarged part, if any. The address has it in milliseconds from the beginning. */
export function useZoom(begin: number): [Span | undefined, (span: Span | undefined) => void] {
  const [query, change] = useAddress();
  const [from, to] = [query.get('from'), query.get('to')];
  const zoom = useMemo(() => {
    const span = { from: begin + Number(from), to: begin + Number(to) };
    return from !== null && to !== null && span.to > span.from ? span : undefined;
  }, [begin, from, to]);
  const text = (at: number | undefined) => (at === undefined ? undefined : String(Math.round((at - begin) * 10) / 10));
  return [zoom, (span) => change({ from: text(span?.from), to: text(span?.to) })];
}

interface ZoomProps {
  whole: Span;
  shown: Span;
  set: (span: Span | undefined) => void;
}

export function Zoom({ whole, shown, set, isZoomed }: ZoomProps & { isZoomed: boolean }) {
  const length = shown.to - shown.from;
  const scale = (factor: number) => {
    const middle = (shown.from + shown.to) / 2;
    const half = Math.max((length * factor) / 2, 1);
    if (half * 2 >= whole.to - whole.from) set(undefined);
    else set({ from: middle - half, to: middle + half });
  };
  const move = (share: number) => set({ from: shown.from + length * share, to: shown.to + length * share });
  return (
    <span className="row">
      <button type="button" aria-label="Earlier" onClick={() => move(-0.5)} disabled={!isZoomed}>
        ←
      </button>
      <button type="button" aria-label="Later" onClick={() => move(0.5)} disabled={!isZoomed}>
        →
      </button>
      <button type="button" aria-label="Zoom out" onClick={() => scale(2)} disabled={!isZoomed}>
        −
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => scale(0.5)}>
        +
      </button>
      <button type="button" onClick={() => set(undefined)} disabled={!isZoomed}>
        All
      </button>
    </span>
  );
}

/** Times above the rows. Dragging over them enlarges that part. */
export function Axis({ whole, shown, set }: ZoomProps) {
  const axis = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Span>();
  const length = shown.to - shown.from;
  const share = (event: PointerEvent) => {
    const box = axis.current?.getBoundingClientRect();
    return box ? Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) : 0;
  };
  const end = () => {
    if (drag && Math.abs(drag.to - drag.from) > 0.01) {
      const [one, other] = [drag.from, drag.to].sort((a, b) => a - b) as [number, number];
      set({ from: shown.from + one * length, to: shown.from + other * length });
    }
    setDrag(undefined);
  };
  return (
    <div
      ref={axis}
      className="axis"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag({ from: share(event), to: share(event) });
      }}
      onPointerMove={(event) => drag && setDrag({ from: drag.from, to: share(event) })}
      onPointerUp={end}
      onPointerCancel={() => setDrag(undefined)}
    >
      {drag && <div className="select" style={{ left: `${Math.min(drag.from, drag.to) * 100}%`, width: `${Math.abs(drag.to - drag.from) * 100}%` }} />}
      {Array.from({ length: TICKS }, (_, tick) => (
        <span key={tick} style={{ left: `${((tick + 0.5) / TICKS) * 100}%` }}>
          {duration(shown.from + ((tick + 0.5) / TICKS) * length - whole.from)}
        </span>
      ))}
    </div>
  );
}
