// The chain of evidence, verified in the browser.
import { memo, useEffect, useRef, useState } from 'react';
import type { Schemas } from '../../api/client';
import { useEvidence } from '../../api/executions';
import { Empty, Loading, More, Result, StatusMark, Time } from '../../parts/basics';
import { Download } from '../../parts/Download';
import { Json } from '../../parts/Json';
import { Bounded, Unfolding } from '../../parts/Rows';
import { pathText, plural, shortId } from '../../parts/words';
import { Verifier, type Verdict } from './verify';

const MARKS: Record<string, string> = { Succeeded: 'completed', Failed: 'failed', Cancelled: 'cancelled', PartialSuccess: 'partial_success', Skipped: 'skipped', Held: 'paused', Refused: 'failed' };

export function Evidence({ id, isOver }: { id: string; isOver: boolean }) {
  const found = useEvidence(id);
  const records = found.data?.pages.flatMap((page) => page.evidence) ?? [];
  const anchor = found.data?.pages.at(-1)?.anchor;
  return (
    <>
      <div className="filters">
        <VerdictMark records={records} isRead={!found.hasNextPage} isWhole={isOver && !found.hasNextPage && !found.isFetching} anchor={anchor} />
        <Download path={`/executions/${id}/evidence`} query={{ format: 'jsonl' }} name={`${id}.evidence.jsonl`}>
          download the chain
        </Download>
        <span className="faint">
          verify it anywhere with <code>windlass evidence verify FILE</code>
        </span>
      </div>
      <Result of={found}>
        {records.length === 0 && <Empty title="There is no evidence yet: nothing has been attempted." />}
        <section className="steps" aria-label="Evidence">
          <Bounded rows={records} name="record">
            {(record) => <RecordRow key={record.evidenceId} record={record} />}
          </Bounded>
        </section>
      </Result>
      <More of={found} />
    </>
  );
}

const RecordRow = memo(function RecordRow({ record }: { record: Schemas['Evidence'] }) {
  return (
    <Unfolding
      summary={
        <>
          <StatusMark status={MARKS[record.outcome] ?? record.outcome} text={record.outcome} />
          <strong>
            {record.actionId ?? 'execution'}
            {pathText(record.path)}
          </strong>
          <span className="faint">
            {record.category}
            {record.attempt && ` · attempt ${record.attempt}`} · {record.actor.kind === 'User' ? record.actor.userId : 'system'} · <Time at={record.endedAtIso} />
          </span>
        </>
      }
    >
      {() => (
        <>
          <p>{record.summary}</p>
          <Json value={record} label={`record ${record.evidenceId}`} />
        </>
      )}
    </Unfolding>
  );
});

interface VerdictProps {
  records: readonly Schemas['Evidence'][];
  /** Whether all records that exist were read. */
  isRead: boolean;
  /** Whether the execution ended before they were read. */
  isWhole: boolean;
  anchor: Schemas['Anchor'] | undefined;
}

function VerdictMark({ records, isRead, isWhole, anchor }: VerdictProps) {
  const [verdict, setVerdict] = useState<Verdict>();
  const verifier = useRef<Verifier>(undefined);
  const last = records.at(-1)?.hashSha256;
  useEffect(() => {
    let isCurrent = true;
    verifier.current ??= new Verifier();
    verifier.current
      .verify({ records, anchor, isWhole })
      .catch((error: unknown): Verdict => ({ isGood: undefined, reason: `The records could not be verified: ${error instanceof Error ? error.message : String(error)}` }))
      .then((found) => isCurrent && setVerdict(found));
    return () => {
      isCurrent = false;
    };
    // The last hash depends on every record.
  }, [last, anchor, isWhole]);
  if (records.length === 0) return null;
  if (!verdict) return <Loading />;
  if (verdict.isGood === undefined) return <span className="faint">{verdict.reason}</span>;
  if (!verdict.isGood) return <StatusMark status="failed" text={`record ${verdict.evidenceId} is wrong: ${verdict.reason}`} />;
  return (
    <>
      <StatusMark status="completed" text={`${plural(verdict.count, 'record')} verified${isRead ? '' : ' of those shown'}`} />
      {anchor && <span className="faint">anchored by key {shortId(anchor.keyId)}</span>}
    </>
  );
}
