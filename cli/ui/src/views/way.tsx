/** Way of the last change of a slice, with the time of each step. */

import type { Way } from "../contract";
import { duration, timeOfDay } from "../text";
import { StackedBar } from "./charts";
import { Card } from "./parts";

/** Number of slices whose way is shown. */
const LISTED = 5;

export function Ways({ ways }: { ways: Way[] }) {
  return (
    <Card title="Way of the last change" note="Bars show how long a step took.">
      <div class="ways">
        {ways.slice(0, LISTED).map((way) => (
          <OneWay way={way} key={way.slice} />
        ))}
      </div>
      {ways.length > LISTED && <p class="muted">and {ways.length - LISTED} more slices</p>}
    </Card>
  );
}

function OneWay({ way }: { way: Way }) {
  const total = way.steps.reduce((sum, step) => sum + (step.milliseconds ?? 0), 0);
  return (
    <div class="way">
      <h3>
        {way.slice} <span class="muted">{duration(total)} in total</span>
      </h3>
      <ol>
        {way.steps.map((step) => (
          <li>
            <time dateTime={step.time ?? ""}>{timeOfDay(step.time)}</time>
            <span>{step.name}</span>
            <StackedBar whole={total} parts={[{ name: "bar-step", value: step.milliseconds ?? 0 }]} />
            <span class="number">{step.milliseconds === null ? "–" : duration(step.milliseconds)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}
