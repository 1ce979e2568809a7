/** View `Requests`: requests of the last 120 seconds, sent by the client of `fleetnet sandbox --packets`. */

import type { RequestsMessage, Traffic } from "../contract";
import { bars, SECONDS, type Share, totals } from "../requests";
import { BarLegend, StackedBar } from "./charts";
import { Card, Empty, Figure, Heading } from "./parts";

/** Height of the chart, and width of a second in it. */
const [HEIGHT, WIDTH] = [120, 5];

export function RequestsView({ traffic, requests }: { traffic: Traffic | null; requests: RequestsMessage[] }) {
  if (!traffic) {
    return <Empty>No client sends requests. Only fleetnet sandbox --packets has one.</Empty>;
  }
  const { sent, lost, most, lostByKind, answersByCluster } = totals(requests);
  const { service, exporters, importer, client, requestsPerSecond } = traffic;
  return (
    <>
      <Heading note={`The last ${SECONDS} seconds.`}>Requests</Heading>
      <p class="note">
        The pod {client} in {importer} sends {requestsPerSecond} requests a second to {service} of{" "}
        {exporters.join(", ")}. A request counts in the second of its outcome.
      </p>
      {requests.length === 0 ? (
        <Empty>No request has an outcome yet.</Empty>
      ) : (
        <>
          <dl class="figures">
            <Figure name="Sent" value={number(sent)} />
            <Figure name="Lost" value={number(lost)} isBad={lost > 0} />
            <Figure name="Sent in the last second" value={number(requests[requests.length - 1]?.sent ?? 0)} />
          </dl>
          <Card title="Each second" note={<BarLegend entries={LEGEND} />}>
            <Seconds requests={requests} label={`Each second ${number(most)} requests at most, ${number(lost)} lost`} />
          </Card>
          <div class="columns even">
            <Card title="Answers by cluster">
              <Shares shares={answersByCluster} bar="bar-sent" />
            </Card>
            <Card title="Lost by kind">
              {lost > 0 ? <Shares shares={lostByKind} bar="bar-lost" /> : <Empty>No request was lost.</Empty>}
            </Card>
          </div>
        </>
      )}
    </>
  );
}

const LEGEND: [string, string][] = [
  ["bar-sent", "sent"],
  ["bar-lost", "of these, lost"],
];

function number(value: number): string {
  return value.toLocaleString("en-US");
}

function Seconds({ requests, label }: { requests: RequestsMessage[]; label: string }) {
  return (
    <svg
      class="seconds"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${SECONDS * WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {bars(requests, HEIGHT).map(({ place, sent, lost }) => (
        <g key={place}>
          <rect class="bar-sent" x={place * WIDTH} y={HEIGHT - sent} width={WIDTH - 1} height={sent} />
          <rect class="bar-lost" x={place * WIDTH} y={HEIGHT - lost} width={WIDTH - 1} height={lost} />
        </g>
      ))}
    </svg>
  );
}

function Shares({ shares, bar }: { shares: Share[]; bar: string }) {
  return (
    <ul class="shares">
      {shares.map((share) => (
        <li key={share.name}>
          <span>{share.name}</span>
          <StackedBar whole={100} parts={[{ name: bar, value: share.percent }]} />
          <span class="number">
            {number(share.number)} ({share.percent.toFixed(1)} %)
          </span>
        </li>
      ))}
    </ul>
  );
}
