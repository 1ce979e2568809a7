/** List of changes and Events. */

import type { Happened } from "../contract";
import { timeOfDay } from "../text";
import { labelOf } from "../tone";
import { Icon } from "./parts";

const TONES: Record<string, string> = { good: "good: ", warning: "warning: ", bad: "fault: " };

export function Lines({ lines }: { lines: Happened[] }) {
  return (
    <ol class="lines">
      {lines.map((line) => (
        <Line key={`${line.time} ${line.cluster} ${line.kind} ${line.name} ${line.reason} ${line.text}`} line={line} />
      ))}
    </ol>
  );
}

function Line({ line }: { line: Happened }) {
  const object = [line.namespace, line.name].filter((part) => part !== "").join("/");
  return (
    <li>
      <time dateTime={line.time} title={line.time}>
        {timeOfDay(line.time)}
      </time>
      <Icon label={labelOf(line.tone, "")} />
      <span class="line-cluster">{line.cluster}</span>
      <span class="line-text">
        <span class="sr">{TONES[line.tone]}</span>
        {line.reason && <strong>{line.reason} </strong>}
        {line.text}
        <span class="muted">
          {" "}
          {line.kind} {object}
        </span>
      </span>
    </li>
  );
}
