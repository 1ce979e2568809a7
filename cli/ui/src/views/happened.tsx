/** View `What happens`: the last changes, the newest first. */

import type { Happened } from "../contract";
import { type Dispatch, linesSincePause, type State } from "../state";
import { count } from "../text";
import { Lines } from "./lines";
import { Card, Empty, Heading, Search } from "./parts";
import { EventsNotRead } from "./serviceevents";

export function HappenedView({ state, dispatch }: { state: State; dispatch: Dispatch }) {
  const all = state.paused ?? state.happened;
  const text = state.choices.happenedText;
  const lines = filterLines(all, text);
  const later = linesSincePause(state);
  return (
    <>
      <Heading note="Changes between two readings of the clusters, and Events of the agents. The newest come first.">
        What happens
      </Heading>
      <div class="controls">
        <Search label="Filter" value={text} onText={(happenedText) => choose(dispatch, happenedText)} />
        <button type="button" class="main" onClick={() => dispatch({ type: state.paused ? "continue" : "pause" })}>
          {state.paused ? "Continue" : "Pause"}
        </button>
        <span class="muted">{later > 0 ? `${later} new since the pause` : ""}</span>
      </div>
      <Card title={count(lines.length, "line")} note={text && `of ${all.length}`}>
        {lines.length > 0 ? (
          <Lines lines={lines} />
        ) : (
          <Empty>{all.length > 0 ? "No line matches." : "Nothing yet."}</Empty>
        )}
        <EventsNotRead notRead={state.eventsNotRead} />
      </Card>
    </>
  );
}

function choose(dispatch: Dispatch, happenedText: string): void {
  dispatch({ type: "choose", choices: { happenedText } });
}

function filterLines(lines: Happened[], text: string): Happened[] {
  const wanted = text.trim().toLowerCase();
  const textOf = (line: Happened) =>
    `${line.cluster} ${line.kind} ${line.namespace}/${line.name} ${line.reason} ${line.text}`.toLowerCase();
  return wanted === "" ? lines : lines.filter((line) => textOf(line).includes(wanted));
}
