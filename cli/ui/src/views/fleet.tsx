/** View `Fleet`: picture, figures and table of the members. */

import type { Happened, HubStatus, LatencyDocument, MemberStatus, ServicesDocument, StatusDocument } from "../contract";
import { quantileNames, slowest, textOf } from "../latency";
import { serviceHash } from "../route";
import { arrivedLabel } from "../services";
import type { State } from "../state";
import { clock, count, distinct, orDash, span } from "../text";
import { memberLabel, serviceLabel } from "../tone";
import { useMedia } from "../window";
import { Lines } from "./lines";
import { Badge, Card, Figure, Heading, Sideways } from "./parts";
import { AROUND, Picture, Tiles } from "./picture";

interface Props {
  state: State;
  status: StatusDocument;
  services: ServicesDocument;
  latency: LatencyDocument;
}

export function FleetView({ state, status, services, latency }: Props) {
  const isNarrow = useMedia("(max-width: 640px)");
  const View = isNarrow || status.members.length > AROUND ? Tiles : Picture;
  return (
    <>
      <Heading>Fleet</Heading>
      <Figures status={status} services={services} latency={latency} />
      <div class="columns">
        <Card title="Hub and members" note={<Legend isPicture={View === Picture} />}>
          <View members={status.members} hub={status.hub} />
        </Card>
        <div class="side">
          <NotReady services={services} />
          <Newest lines={state.happened} />
        </div>
      </div>
      <NotKnown state={state} />
      <Card title="Members">
        <Members members={status.members} />
        <p class="hub-line">{hubLine(status.hub)}</p>
      </Card>
    </>
  );
}

function Legend({ isPicture }: { isPicture: boolean }) {
  return isPicture ? (
    <span class="legend">
      <svg width="34" height="8" aria-hidden="true">
        <line class="link good" x1="0" y1="4" x2="34" y2="4" />
        <line class="stream" x1="0" y1="4" x2="34" y2="4" />
      </svg>
      slice stream connected
    </span>
  ) : null;
}

function Figures({ status, services, latency }: Omit<Props, "state">) {
  const ready = status.members.filter((member) => member.state === "Ready").length;
  const rows = services.services;
  const quantile = Math.max(0, quantileNames(latency).length - 1);
  const pair = slowest(latency, quantile)[0];
  return (
    <dl class="figures">
      <Figure name="Members Ready" value={`${ready} of ${status.members.length}`} />
      <Figure
        name="Services Ready"
        value={`${rows.filter((row) => row.state === "Ready").length} of ${rows.length.toLocaleString("en-US")}`}
      />
      <Figure name="Services with conflicts" value={String(rows.filter((row) => row.conflicts.length > 0).length)} />
      <Figure
        name="Exported endpoints"
        value={rows.reduce((sum, row) => sum + row.endpoints, 0).toLocaleString("en-US")}
      />
      <Figure
        name={pair ? `Slowest pair, ${quantileNames(latency)[quantile]}` : "Slowest pair"}
        value={textOf(pair, quantile)}
        note={pair && `${pair.origin} → ${pair.destination}`}
      />
    </dl>
  );
}

/** Number of Services in the short list. */
const LISTED = 8;

function NotReady({ services }: { services: ServicesDocument }) {
  const rows = services.services.filter((row) => row.state !== "Ready");
  return (
    <Card title="Services that are not Ready">
      {rows.length === 0 && <p class="empty">All Services are Ready.</p>}
      <ul class="short-list">
        {rows.slice(0, LISTED).map((row) => (
          <li>
            <a href={serviceHash(row.namespace, row.name)}>
              {row.namespace}/{row.name}
            </a>
            <Badge label={serviceLabel(row.state)} />
            <span class="muted">{arrivedLabel(row).text}</span>
          </li>
        ))}
      </ul>
      {rows.length > LISTED && <a href="#/services">{count(rows.length - LISTED, "more Service")}</a>}
    </Card>
  );
}

/** Number of changes and Events beside the picture. */
const NEWEST = 5;

function Newest({ lines }: { lines: Happened[] }) {
  return lines.length === 0 ? null : (
    <Card title="What happens" class="newest" note={<a href="#/happened">all lines</a>}>
      <Lines lines={lines.slice(0, NEWEST)} />
    </Card>
  );
}

/** Everything that could not be read. */
function NotKnown({ state }: { state: State }) {
  const documents = [state.status, state.services, state.latency];
  const contexts = state.contextsNotRead.map((context) => `context ${context}`);
  const texts = distinct([...documents.flatMap((document) => document?.notKnown ?? []), ...contexts]);
  return texts.length === 0 ? null : (
    <Card title="Could not be read">
      <ul class="plain-list">
        {texts.map((text) => (
          <li>{text}</li>
        ))}
      </ul>
    </Card>
  );
}

const COLUMNS = ["Member", "State", "Version", "Heard", "Clock", "Exports", "Endpoints", "Imports"];
const WIDE = ["Slices out", "Slices in", "Slice stream", "Slices by", "Cluster UID"];

function Members({ members }: { members: MemberStatus[] }) {
  const isWide = useMedia("(min-width: 1240px)");
  return (
    <Sideways label="Table of the members">
      <table>
        <thead>
          <tr>
            {[...COLUMNS, ...(isWide ? WIDE : [])].map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {members.map((member) => (
            <tr key={member.member}>
              <th scope="row" title={member.member}>
                {member.member}
              </th>
              <td>
                <Badge label={memberLabel(member.state)} />
              </td>
              {cellsOf(member, isWide).map((text) => (
                <td class={text === "–" || text === "not known" ? "muted" : ""}>{text}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Sideways>
  );
}

function cellsOf(member: MemberStatus, isWide: boolean): string[] {
  const cells = [
    orDash(member.version),
    member.heardSeconds === null ? "–" : span(member.heardSeconds),
    clock(member.clockMilliseconds),
    orDash(member.exports),
    orDash(member.endpoints),
    orDash(member.imports),
  ];
  const wide = [
    member.exportedSlices,
    member.importedSlices,
    member.sliceStream,
    member.slicesMadeBy,
    member.clusterUid,
  ];
  return isWide ? [...cells, ...wide.map(orDash)] : cells;
}

/** Returns the line of the hub agent, as `fleetnet status` has it. */
function hubLine(hub: HubStatus): string {
  if (!hub.reached) {
    return `hub ${hub.server}: does not answer`;
  }
  const replicas = hub.replicas ? `${hub.replicas[0]} of ${hub.replicas[1]} replicas ready` : "replicas not known";
  return `hub ${hub.server}: hub agent ${hub.version ?? "not known"}, leader ${hub.leader ?? "none"}, ${replicas}`;
}
