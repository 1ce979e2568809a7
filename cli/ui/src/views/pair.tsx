/** Steps of one pair, with the cause of its fault. */

import type { CodeEntry, Evidence, Finding, Pair, Step } from "../contract";
import { listedSteps, stepTitle } from "../pairs";
import { outcomeLabel, pairLabel, labelOf } from "../tone";
import { Badge, CodeLink, Copyable, Icon } from "./parts";

interface Props {
  pair: Pair;
  codes: ReadonlyMap<string, CodeEntry>;
}

export function PairSteps({ pair, codes }: Props) {
  const { cause } = pair;
  const { steps, unknown } = listedSteps(pair);
  const number = (outcome: string) => pair.steps.filter((step) => step.outcome === outcome).length;
  return (
    <>
      {cause ? <Cause finding={cause} /> : <Badge label={pairLabel(pair)} />}
      {pair.earlierUnknown && (
        <p class="note">
          <Icon label={labelOf("unknown", "")} /> An earlier step could not be read, and may be the cause.
        </p>
      )}
      {unknown.map(({ why, number }) => (
        <p class="note" key={why}>
          <Icon label={labelOf("unknown", "")} /> {number} steps are unknown: {why}
        </p>
      ))}
      {steps.length > 0 && <Steps steps={steps} codes={codes} />}
      {steps.length < pair.steps.length && (
        <details class="all-steps">
          <summary>
            All steps: {number("ok")} ok, {number("skipped")} skipped, {number("unknown")} unknown
          </summary>
          <Steps steps={pair.steps} codes={codes} />
        </details>
      )}
    </>
  );
}

function Cause({ finding }: { finding: Finding }) {
  return (
    <div class="finding bad">
      <h3>
        <Icon label={labelOf("bad", "")} /> <CodeLink code={finding.code} /> {finding.title}
      </h3>
      <FindingFacts finding={finding} others={[]} />
    </div>
  );
}

/** Number of other objects with the same notice that are listed. */
const LISTED = 3;

/** Evidence, command, reasons and remedy of a fault or notice. */
export function FindingFacts({ finding, others }: { finding: Finding; others: Finding[] }) {
  const { evidence } = finding;
  return (
    <dl class="facts">
      <dt>Evidence</dt>
      <dd>
        <EvidenceText evidence={evidence} />
        {others.slice(0, LISTED).map((other) => (
          <EvidenceText evidence={other.evidence} />
        ))}
        {others.length > LISTED && <span class="muted">and {others.length - LISTED} more</span>}
      </dd>
      {evidence.command && (
        <>
          <dt>Confirm</dt>
          <dd>
            <Copyable text={evidence.command} />
          </dd>
        </>
      )}
      {finding.reasons.length > 0 && (
        <>
          <dt>Reasons</dt>
          <dd>{finding.reasons.join(", ")}</dd>
        </>
      )}
      <dt>Remedy</dt>
      <dd class="remedy">{finding.remedy}</dd>
    </dl>
  );
}

function EvidenceText({ evidence }: { evidence: Evidence }) {
  const object = [evidence.namespace, evidence.name].filter((part) => part !== "").join("/");
  return (
    <div>
      <span class="muted">
        {evidence.cluster}: {evidence.kind} {object} {evidence.field}
      </span>
      <div class="value">
        {evidence.value}
        {evidence.time && <span class="muted"> since {evidence.time}</span>}
      </div>
    </div>
  );
}

function Steps({ steps, codes }: { steps: Step[]; codes: Props["codes"] }) {
  return (
    <ol class="steps">
      {steps.map((step) => {
        const label = outcomeLabel(step.outcome, codes.get(step.code)?.notice ?? false);
        return (
          <li key={step.code}>
            <Icon label={label} />
            <span class="outcome">{label.text}</span>
            <CodeLink code={step.code} />
            <span>
              {stepTitle(step, codes)}
              {step.detail && <span class="muted"> {step.detail}</span>}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
