/** Way of the last change of each slice of a pair, with the time of each step. */

import type { Span, Way } from "../contract";
import { count } from "../text";
import { pointText, stateLabel, stepText, timeOfStep, wayText } from "../ways";
import { StackedBar } from "./charts";
import { Card, Empty, Icon } from "./parts";

/** Number of slices whose way is shown. */
const LISTED = 3;

interface Props {
  ways: Way[];
  /** Number of ways that the server left out. */
  leftOut: number;
  /** Name of the pair. */
  name: string;
}

export function Ways({ ways, leftOut, name }: Props) {
  const others = ways.length - LISTED;
  return (
    <Card title="Way of the last change" note={name}>
      {ways.length === 0 && <Empty>{leftOut > 0 ? "The ways of this pair are left out." : "No slice is known."}</Empty>}
      <div class="ways">
        {ways.slice(0, LISTED).map((way) => (
          <OneWay way={way} key={way.slice} />
        ))}
      </div>
      {others > 0 && <p class="muted">and {count(others, "further slice")} of this pair</p>}
      {leftOut > 0 && <p class="muted">The Service has many slices: {count(leftOut, "way")} left out.</p>}
      <p class="muted note">
        Objects show their last write in whole seconds, so most time spans have only limits. “About” compares the clocks
        of two clusters.
      </p>
    </Card>
  );
}

/** Bar up to the lower limit of a span, and from there to its upper limit. */
function SpanBar({ span, whole }: { span: Span; whole: number }) {
  const { atLeastMilliseconds: least, atMostMilliseconds: most } = span;
  const parts = [
    { name: "bar-least", value: least },
    { name: "bar-most", value: most - least },
  ];
  return <StackedBar whole={whole} parts={parts} />;
}

function OneWay({ way }: { way: Way }) {
  const most = Math.max(...way.steps.map((step) => step.since?.atMostMilliseconds ?? 0));
  return (
    <section class="way" aria-label={`Way of ${way.slice}`}>
      <h3>
        {way.slice} <span class="muted">{wayText(way)}</span>
      </h3>
      <ol>
        {way.steps.map((step) => (
          <li key={step.point}>
            <time dateTime={step.time ?? undefined} title={step.time ?? undefined}>
              {timeOfStep(step.time)}
            </time>
            <Icon label={stateLabel(step.state)} />
            <span>{pointText(step.point, way)}</span>
            {step.since && <SpanBar span={step.since} whole={most} />}
            <span class="way-span">{stepText(step)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
