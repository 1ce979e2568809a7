/** Explanation of a fault code, as `fleetnet explain --explain-code` has it. */

import type { CodeEntry } from "../contract";
import { Card, Copyable, Empty, Heading } from "./parts";

export function CodeView({ code, codes }: { code: string; codes: ReadonlyMap<string, CodeEntry> }) {
  const entry = codes.get(code);
  return (
    <>
      <Heading note={entry?.title}>{code}</Heading>
      {entry ? <Entry entry={entry} /> : <Unknown code={code} hasCodes={codes.size > 0} />}
    </>
  );
}

function Entry({ entry }: { entry: CodeEntry }) {
  return (
    <Card title={entry.notice ? "Notice" : "Fault"}>
      <dl class="facts">
        <dt>Meaning</dt>
        <dd>{entry.meaning}</dd>
        <dt>Evidence</dt>
        <dd>{entry.evidence}</dd>
        {entry.reasons.length > 0 && (
          <>
            <dt>Reasons</dt>
            <dd>{entry.reasons.join(", ")}</dd>
          </>
        )}
        <dt>Remedy</dt>
        <dd>{entry.remedy}</dd>
        {entry.confirm && (
          <>
            <dt>Confirm</dt>
            <dd>
              <Copyable text={entry.confirm} />
            </dd>
          </>
        )}
      </dl>
    </Card>
  );
}

function Unknown({ code, hasCodes }: { code: string; hasCodes: boolean }) {
  return hasCodes ? (
    <Empty>There is no code {code}.</Empty>
  ) : (
    <Empty>
      The codes were not read. The command has them: <code>fleetnet explain --explain-code {code}</code>
    </Empty>
  );
}
