/** List of changes and Events. */

import type { Happened } from "../contract";
import { timeOfDay } from "../text";
import { labelOf } from "../tone";
import { Icon } from "./parts";

const TONES: Record<string, string> = { good: "good: ", warning: "warning: ", bad: "fault: " };

export function Lines({ lines }: { lines: Happened[] }) {
  return (
    <ol class="lines">
      {withKeys(lines).map(([key, line]) => (
        <Line key={key} line={line} />
      ))}
    </ol>
  );
}

/** Returns each line with its key. Equal lines have an index, and a new line does not change the keys of others. */
function withKeys(lines: Happened[]): [string, Happened][] {
  const numbers = new Map<string, number>();
  return lines.map((line) => {
    const { time, cluster, kind, namespace, name, reason, text } = line;
    const key = [time, cluster, kind, namespace, name, reason, text].join(" ");
    const index = numbers.get(key) ?? 0;
    numbers.set(key, index + 1);
    return [`${key} ${index}`, line];
  });
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
