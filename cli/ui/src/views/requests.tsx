/** View `Requests`: requests of the last 120 seconds, sent by `fleetnet sandbox --packets`. */

import type { RequestsMessage } from "../contract";
import { distinct } from "../text";
import { StackedBar } from "./charts";
import { Card, Empty, Heading } from "./parts";

/** Number of seconds in the chart. */
const SECONDS = 120;
const HEIGHT = 120;

export function RequestsView({ requests }: { requests: RequestsMessage[] }) {
  const sum = (of: (message: RequestsMessage) => number) => requests.reduce((total, one) => total + of(one), 0);
  const [sent, lost] = [sum((one) => one.sent), sum((one) => one.lost)];
  const clusters = distinct(requests.flatMap((one) => Object.keys(one.byCluster)));
  return (
    <>
      <Heading note="Requests of the last 120 seconds through the Services of the sandbox.">Requests</Heading>
      {requests.length === 0 ? (
        <Empty>No requests. Only fleetnet sandbox --packets sends some.</Empty>
      ) : (
        <>
          <dl class="figures">
            <Figure name="Sent" value={sent} />
            <Figure name="Lost" value={lost} isBad={lost > 0} />
            <Figure name="Sent in the last second" value={requests[requests.length - 1]?.sent ?? 0} />
          </dl>
          <Card title="Each second" note={<Legend />}>
            <Seconds requests={requests} />
          </Card>
          <Card title="Answered by cluster">
            <Clusters clusters={clusters} of={(cluster) => sum((one) => one.byCluster[cluster] ?? 0)} />
          </Card>
        </>
      )}
    </>
  );
}

function Figure({ name, value, isBad = false }: { name: string; value: number; isBad?: boolean }) {
  return (
    <div class={isBad ? "figure bad" : "figure"}>
      <dt>{name}</dt>
      <dd>
        <strong>
          {isBad && "✕ "}
          {value.toLocaleString("en-US")}
        </strong>
      </dd>
    </div>
  );
}

function Legend() {
  const entry = (name: string, text: string) => (
    <span>
      <svg class="key" width="12" height="12" aria-hidden="true">
        <rect class={name} width="12" height="12" rx="2" />
      </svg>
      {text}
    </span>
  );
  return (
    <span class="legend">
      {entry("sent", "sent")}
      {entry("lost", "of these, lost")}
    </span>
  );
}

function Seconds({ requests }: { requests: RequestsMessage[] }) {
  const most = Math.max(1, ...requests.map((one) => one.sent));
  const first = SECONDS - requests.length;
  const height = (value: number) => (value / most) * HEIGHT;
  return (
    <svg
      class="seconds"
      role="img"
      aria-label={`Requests each second, ${most} at most`}
      viewBox={`0 0 ${SECONDS * 5} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {requests.map((one, index) => {
        const x = (first + index) * 5;
        return (
          <>
            <rect class="sent" x={x} y={HEIGHT - height(one.sent)} width="4" height={height(one.sent)} />
            <rect class="lost" x={x} y={HEIGHT - height(one.lost)} width="4" height={height(one.lost)} />
          </>
        );
      })}
    </svg>
  );
}

function Clusters({ clusters, of }: { clusters: string[]; of: (cluster: string) => number }) {
  const numbers = clusters.map((cluster) => ({ cluster, number: of(cluster) }));
  const whole = numbers.reduce((total, one) => total + one.number, 0);
  return (
    <ul class="shares">
      {numbers.map(({ cluster, number }) => (
        <li key={cluster}>
          <span>{cluster}</span>
          <StackedBar whole={whole} parts={[{ name: "bar-step", value: number }]} />
          <span class="number">
            {number.toLocaleString("en-US")} ({whole > 0 ? Math.round((number / whole) * 100) : 0} %)
          </span>
        </li>
      ))}
    </ul>
  );
}
