// A long list of log lines. Only blocks of lines near the visible part are in the document; the others are empty boxes of their height.
import { type KeyboardEvent, memo, type PointerEvent, startTransition, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Schemas } from '../../api/client';
import { clock, exact, withoutColours } from '../../parts/words';
import { lineData } from './lineText';

type LogLine = Schemas['Entry'];

const BLOCK = 50;
/** Height of a line that was not drawn yet. */
const LINE_PX = 21;
/** Blocks are drawn this far above and below the visible part. */
const MARGIN = '400px 0px';
/** A view this near to the end is at the end. */
const END_PX = 40;
const UP = ['ArrowUp', 'PageUp', 'Home'];
/** Characters of the data of a line. A search finds the rest, too. */
const DATA_MAX = 400;

interface Block {
  key: string;
  lines: readonly LogLine[];
}

interface LogLinesProps {
  /** Lines, oldest first. Of a page that has not changed, nothing is rendered again. */
  pages: readonly (readonly LogLine[])[];
  hasStep: boolean;
  isFollowing: boolean;
  /** Called when a user who follows the log scrolls back. */
  leave: () => void;
  /** Whether the first view is that of the newest lines. */
  beginsAtEnd: boolean;
  /** Reads the lines before the first one, if there are any. */
  earlier: { isPending: boolean; read: () => void } | undefined;
}

export const LogLines = memo(function LogLines({ pages, hasStep, isFollowing, leave, beginsAtEnd, earlier }: LogLinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const [observer, setObserver] = useState<IntersectionObserver>();
  useEffect(() => {
    const made = new IntersectionObserver((entries) => entries.forEach((entry) => entry.target.dispatchEvent(new CustomEvent('near', { detail: entry.isIntersecting }))), { root: box.current, rootMargin: MARGIN });
    setObserver(made);
    return () => made.disconnect();
  }, []);
  const isPlaced = useRef(!beginsAtEnd || isFollowing);
  const first = pages[0]?.[0]?.id;
  useEffect(() => {
    if (isPlaced.current || !observer || first === undefined || !box.current) return;
    isPlaced.current = true;
    box.current.scrollTop = box.current.scrollHeight;
  }, [observer, first]);
  // Blocks that are drawn after the user scrolled back, and before that is known, do not lead to the end again.
  const isLeft = useRef(false);
  const goBack = () => {
    isLeft.current = true;
    leave();
  };
  useEffect(() => {
    if (!isFollowing || !inner.current) return;
    isLeft.current = false;
    const end = () => box.current && !isLeft.current && (box.current.scrollTop = box.current.scrollHeight);
    end();
    const resized = new ResizeObserver(end);
    resized.observe(inner.current);
    return () => resized.disconnect();
  }, [isFollowing]);
  // Lines that are added above do not move those that are seen.
  const fromEnd = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (fromEnd.current !== undefined && box.current) box.current.scrollTop = box.current.scrollHeight - fromEnd.current;
    fromEnd.current = undefined;
  }, [first]);
  const readEarlier = () => {
    goBack();
    fromEnd.current = box.current ? box.current.scrollHeight - box.current.scrollTop : undefined;
    earlier?.read();
  };
  const press = (event: KeyboardEvent) => isFollowing && UP.includes(event.key) && goBack();
  const isHeld = useRef(false);
  const leaveAbove = () => {
    const own = box.current;
    if (isFollowing && own && own.scrollHeight - own.scrollTop - own.clientHeight > END_PX) goBack();
  };
  // A scroll bar that is dragged reports its beginning, and not always its end.
  const hold = {
    onPointerDown: () => (isHeld.current = true),
    onPointerUp: () => (isHeld.current = false),
    onPointerMove: ({ buttons }: PointerEvent) => (isHeld.current &&= buttons !== 0),
    onScroll: () => isHeld.current && leaveAbove(),
  };
  // Hundreds of lines a second are not read aloud.
  return (
    <div ref={box} className="logs mono" tabIndex={0} role="log" aria-live="off" aria-label="Log lines" onWheel={({ deltaY }) => isFollowing && deltaY < 0 && goBack()} onTouchMove={leaveAbove} onKeyDown={press} {...hold}>
      {earlier && (
        <button type="button" onClick={readEarlier} disabled={earlier.isPending}>
          Earlier lines
        </button>
      )}
      <div ref={inner}>{observer && pages.map((lines, place) => <PageBlocks key={lines[0]?.id ?? `empty ${place}`} lines={lines} hasStep={hasStep} observer={observer} isLast={place === pages.length - 1} />)}</div>
    </div>
  );
});

interface PageBlocksProps {
  lines: readonly LogLine[];
  hasStep: boolean;
  observer: IntersectionObserver;
  isLast: boolean;
}

const PageBlocks = memo(function PageBlocks({ lines, hasStep, observer, isLast }: PageBlocksProps) {
  const blocks = useBlocks(lines);
  return blocks.map((block, place) => <LineBlock key={block.key} block={block} hasStep={hasStep} observer={observer} isLast={isLast && place === blocks.length - 1} />);
});

/** Blocks of lines. A block that has not changed stays the same object, so that only new lines are rendered. */
function useBlocks(lines: readonly LogLine[]): Block[] {
  const before = useRef<Block[]>([]);
  return useMemo(() => {
    const known = new Map(before.current.map((block) => [block.key, block]));
    const blocks: Block[] = [];
    for (let start = 0; start < lines.length; start += BLOCK) {
      const inside = lines.slice(start, start + BLOCK);
      const key = inside[0]?.id ?? '';
      const old = known.get(key);
      blocks.push(old && old.lines.length === inside.length && old.lines.every((line, place) => line === inside[place]) ? old : { key, lines: inside });
    }
    before.current = blocks;
    return blocks;
  }, [lines]);
}

interface LineBlockProps {
  block: Block;
  hasStep: boolean;
  observer: IntersectionObserver;
  isLast: boolean;
}

const LineBlock = memo(function LineBlock({ block: { lines }, hasStep, observer, isLast }: LineBlockProps) {
  const element = useRef<HTMLDivElement>(null);
  const height = useRef<number>(undefined);
  const [isNear, setNear] = useState(isLast);
  useEffect(() => {
    const own = element.current;
    if (!own) return;
    const change = (event: Event) => {
      const { detail } = event as CustomEvent<boolean>;
      // The height that the lines have is kept while they are not drawn.
      if (!detail && own.childElementCount > 0) height.current = own.offsetHeight;
      // A key that is pressed meanwhile comes first.
      startTransition(() => setNear(detail));
    };
    own.addEventListener('near', change);
    observer.observe(own);
    return () => {
      observer.unobserve(own);
      own.removeEventListener('near', change);
    };
  }, [observer]);
  return (
    <div ref={element} className="block" style={isNear ? undefined : { height: height.current ?? lines.length * LINE_PX }}>
      {isNear && lines.map((line) => <Line key={line.id} line={line} hasStep={hasStep} />)}
    </div>
  );
});

/** A line never changes: only new ones are rendered when more arrive. */
const Line = memo(function Line({ line, hasStep }: { line: LogLine; hasStep: boolean }) {
  const data = lineData(line);
  return (
    <div className={`line ${line.level}`}>
      <time dateTime={line.timestamp} title={exact(line.timestamp)}>
        {clock(line.timestamp)}
      </time>{' '}
      <span className="level">{line.level}</span> {line.nodeName && hasStep && <span className="faint">{line.nodeName} </span>}
      {withoutColours(line.message)}
      {data && <span className="faint"> {data.length > DATA_MAX ? `${data.slice(0, DATA_MAX)} …` : data}</span>}
    </div>
  );
});
