/** Picture of the hub and its members. */

import type { HubStatus, MemberStatus } from "../contract";
import { count, orDash, span } from "../text";
import { memberLabel, labelOf } from "../tone";
import { Icon } from "./parts";

/** Largest number of members around the hub. More members are tiles. */
export const AROUND = 24;
/** Largest number of members with details beside them. */
const DETAILED = 12;

const WIDTH = 800;
const HUB = { x: WIDTH / 2, y: 250, width: 150, height: 72 };
/** Room for the labels above and below the members. */
const MARGIN = 84;

interface Props {
  members: MemberStatus[];
  hub: HubStatus;
}

export function Picture({ members, hub }: Props) {
  const ready = members.filter((member) => member.state === "Ready").length;
  const label = `Hub and ${count(members.length, "member")}, ${ready} of them Ready. The table below has the same.`;
  const places = members.map((_, index) => placeOf(index, members.length).y);
  const top = Math.min(HUB.y - 40, ...places) - MARGIN;
  const height = Math.max(HUB.y + 40, ...places) + MARGIN - top;
  return (
    <svg class="picture" role="img" aria-label={label} viewBox={`0 ${top} ${WIDTH} ${height}`}>
      {members.map((member, index) => (
        <Line member={member} place={placeOf(index, members.length)} />
      ))}
      <Hub hub={hub} />
      {members.map((member, index) => (
        <Node member={member} place={placeOf(index, members.length)} isDetailed={members.length <= DETAILED} />
      ))}
    </svg>
  );
}

interface Place {
  x: number;
  y: number;
  /** Position of the label: -1 left or above, 1 right or below, 0 in the middle. */
  side: number;
  level: number;
}

/** Returns the place of a member on an ellipse around the hub. The first one is above the hub, or left of two. */
function placeOf(index: number, number: number): Place {
  const start = number <= 2 ? Math.PI : -Math.PI / 2;
  const angle = start + (2 * Math.PI * index) / number;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const side = Math.abs(cos) < 0.2 ? 0 : Math.sign(cos);
  return {
    x: Math.round(HUB.x + 228 * cos),
    y: Math.round(HUB.y + (number > DETAILED ? 200 : 158) * sin),
    side,
    level: Math.sign(sin),
  };
}

function Line({ member, place }: { member: MemberStatus; place: Place }) {
  const { shade, icon } = memberLabel(member.state);
  const ends = { x1: HUB.x, y1: HUB.y, x2: place.x, y2: place.y };
  const [x, y] = [HUB.x + (place.x - HUB.x) * 0.6, HUB.y + (place.y - HUB.y) * 0.6];
  return (
    <g>
      <line class={`link ${shade}`} {...ends} />
      {member.state === "Ready" && member.sliceStream === "Connected" && <line class="stream" {...ends} />}
      {shade !== "good" && (
        <text class={`link-icon ${shade}`} x={x} y={y}>
          {icon}
        </text>
      )}
    </g>
  );
}

function Hub({ hub }: { hub: HubStatus }) {
  const shade = hub.reached ? "good" : "bad";
  return (
    <g class={`hub ${shade}`}>
      <rect x={HUB.x - HUB.width / 2} y={HUB.y - HUB.height / 2} width={HUB.width} height={HUB.height} rx="14" />
      <text class="name" x={HUB.x} y={HUB.y - 4}>
        hub
      </text>
      <text class="detail" x={HUB.x} y={HUB.y + 18}>
        {hub.reached ? `hub agent ${shorten(hub.version ?? "not known", 14)}` : "✕ does not answer"}
      </text>
    </g>
  );
}

function Node({ member, place, isDetailed }: { member: MemberStatus; place: Place; isDetailed: boolean }) {
  const { shade, icon, text } = memberLabel(member.state);
  const radius = isDetailed ? 21 : 14;
  const anchor = place.side === 0 ? "middle" : place.side > 0 ? "start" : "end";
  const x = place.x + place.side * (radius + 10);
  const above = isDetailed ? -64 : -24;
  const y = place.side === 0 ? place.y + (place.level < 0 ? above : radius + 20) : place.y + (isDetailed ? -8 : 5);
  const details = isDetailed ? [`${text}, ${heard(member)}`, figures(member)] : [];
  return (
    <g class={`member ${shade}`}>
      <title>{[member.member, `${text}, ${heard(member)}`, figures(member)].join("\n")}</title>
      <circle cx={place.x} cy={place.y} r={radius} />
      <text class="icon" x={place.x} y={place.y}>
        {icon}
      </text>
      <text class="name" x={x} y={y} text-anchor={anchor}>
        {shorten(member.member, isDetailed ? 16 : 12)}
      </text>
      {details.map((detail, index) => (
        <text class="detail" x={x} y={y + 16 * (index + 1)} text-anchor={anchor}>
          {detail}
        </text>
      ))}
    </g>
  );
}

function heard(member: MemberStatus): string {
  return member.heardSeconds === null ? "not heard" : `heard ${span(member.heardSeconds)} ago`;
}

function figures(member: MemberStatus): string {
  return `exports ${orDash(member.exports)} · imports ${orDash(member.imports)}`;
}

function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** Members as tiles, for a large fleet or a narrow screen. */
export function Tiles({ members, hub }: Props) {
  return (
    <ul class="tiles">
      <li class={`tile hub-tile ${hub.reached ? "good" : "bad"}`}>
        <Icon label={labelOf(hub.reached ? "good" : "bad", "")} />
        <strong>hub</strong>
        <span class="muted">{hub.reached ? `hub agent ${hub.version ?? "not known"}` : "does not answer"}</span>
      </li>
      {members.map((member) => {
        const label = memberLabel(member.state);
        return (
          <li class={`tile ${label.shade}`}>
            <Icon label={label} />
            <strong>{member.member}</strong>
            <span class="muted">
              {label.text}, {heard(member)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
