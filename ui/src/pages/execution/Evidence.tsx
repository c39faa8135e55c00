// The chain of evidence, verified in the browser.
import { useEffect, useState } from 'react';
import type { Schemas } from '../../api/client';
import { useEvidence } from '../../api/executions';
import { Download, Empty, Loading, More, Result, StatusMark, Time } from '../../parts/basics';
import { Json } from '../../parts/Json';
import { pathText, plural, shortId } from '../../parts/words';
import { type Verdict, verify } from './verify';

const MARKS: Record<string, string> = { Succeeded: 'completed', Failed: 'failed', Cancelled: 'cancelled', PartialSuccess: 'partial_success', Skipped: 'skipped', Held: 'paused', Refused: 'failed' };

export function Evidence({ id }: { id: string }) {
  const found = useEvidence(id);
  const records = found.data?.pages.flatMap((page) => page.evidence) ?? [];
  const anchor = found.data?.pages.at(-1)?.anchor;
  return (
    <>
      <div className="filters">
        <VerdictMark records={records} isWhole={!found.hasNextPage} anchor={anchor} />
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
          {records.map((record) => (
            <details key={record.evidenceId}>
              <summary>
                <StatusMark status={MARKS[record.outcome] ?? record.outcome} text={record.outcome} />
                <strong>
                  {record.actionId ?? 'execution'}
                  {pathText(record.path)}
                </strong>
                <span className="faint">
                  {record.category}
                  {record.attempt && ` · attempt ${record.attempt}`} · {record.actor.kind === 'User' ? record.actor.userId : 'system'} · <Time at={record.endedAtIso} />
                </span>
              </summary>
              <p>{record.summary}</p>
              <Json value={record} label={`record ${record.evidenceId}`} />
            </details>
          ))}
        </section>
      </Result>
      <More of={found} />
    </>
  );
}

function VerdictMark({ records, isWhole, anchor }: { records: readonly Schemas['Evidence'][]; isWhole: boolean; anchor: Schemas['Anchor'] | undefined }) {
  const [verdict, setVerdict] = useState<Verdict>();
  const last = records.at(-1)?.hashSha256;
  useEffect(() => {
    let isCurrent = true;
    void verify(records).then((found) => isCurrent && setVerdict(found));
    return () => {
      isCurrent = false;
    };
    // The last hash depends on every record.
  }, [last]);
  if (records.length === 0) return null;
  if (!verdict) return <Loading />;
  if (verdict.isGood === undefined) return <span className="faint">{verdict.reason}</span>;
  if (!verdict.isGood) return <StatusMark status="failed" text={`record ${verdict.evidenceId} is wrong: ${verdict.reason}`} />;
  return (
    <>
      <StatusMark status="completed" text={`${plural(verdict.count, 'record')} verified${isWhole ? '' : ' of those shown'}`} />
      {anchor && <span className="faint">anchored by key {shortId(anchor.keyId)}</span>}
    </>
  );
}
