/** Small charts. */

import type { Point } from "../history";
import { duration } from "../text";

interface SparklineProps {
  points: readonly Point[];
  /** Index of the quantile. */
  quantile: number;
  name: string;
}

const [WIDTH, HEIGHT] = [300, 56];

/** Values of a pair over time, with the smallest and the largest one as text. */
export function Sparkline({ points, quantile, name }: SparklineProps) {
  const known = points.flatMap(({ time, values }) => {
    const value = values[quantile] ?? null;
    return value === null ? [] : [{ time: Date.parse(time), value }];
  });
  const [first, last] = [known[0], known[known.length - 1]];
  if (first === undefined || last === undefined) {
    return null;
  }
  const values = known.map(({ value }) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const x = (time: number) => round(4 + ((time - first.time) / (last.time - first.time || 1)) * (WIDTH - 8));
  const y = (value: number) => round(HEIGHT - 6 - ((value - least) / (most - least || 1)) * (HEIGHT - 12));
  const range = `${duration(least)} to ${duration(most)}`;
  return (
    <figure class="sparkline">
      <figcaption>
        <strong>{name}</strong> now {duration(last.value)} <span class="muted">({range})</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${name} since the page was opened: ${range}`}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        <polyline points={known.map(({ time, value }) => `${x(time)},${y(value)}`).join(" ")} />
        <circle cx={x(last.time)} cy={y(last.value)} r="3" />
      </svg>
    </figure>
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

interface Part {
  /** Class in the style sheet. */
  name: string;
  value: number;
}

/** Bar of parts that add up to a whole. Its text must be beside it. */
export function StackedBar({ parts, whole }: { parts: Part[]; whole: number }) {
  let start = 0;
  return (
    <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-back" width="100" height="10" />
      {parts.map((part) => {
        const width = whole > 0 ? (part.value / whole) * 100 : 0;
        const x = start;
        start += width;
        return width > 0 && <rect class={part.name} x={round(x)} width={round(width)} height="10" />;
      })}
    </svg>
  );
}

/** Legend of bars: classes in the style sheet, with their meaning. */
export function BarLegend({ entries }: { entries: [name: string, text: string][] }) {
  return (
    <span class="legend">
      {entries.map(([name, text]) => (
        <span key={name}>
          <svg width="12" height="12" aria-hidden="true">
            <rect class={name} width="12" height="12" rx="2" />
          </svg>
          {text}
        </span>
      ))}
    </span>
  );
}
