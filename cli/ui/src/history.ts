/** Latency of each pair since the page was opened. */

import type { LatencyCell, LatencyDocument } from "./contract";

/** Maximum number of points of a pair: 20 minutes at one change in 2 s. */
const POINTS_OF_PAIR = 600;
/** Maximum number of points of all pairs, which limits the memory of a fleet of 100 members to some 30 MB. */
const POINTS = 200_000;

/** One reading of a pair. `values` has one entry for each quantile, in milliseconds. */
export interface Point {
  time: string;
  values: (number | null)[];
}

export type History = ReadonlyMap<string, readonly Point[]>;

export function pairKey(origin: string, destination: string): string {
  return `${origin}/${destination}`;
}

/** Returns the history with the values of a document. A pair whose values did not change gets no point. */
export function append(history: History, document: LatencyDocument, time: string): History {
  const limit = Math.max(2, Math.min(POINTS_OF_PAIR, Math.floor(POINTS / Math.max(1, document.cells.length))));
  const next = new Map(history);
  for (const cell of document.cells) {
    const key = pairKey(cell.origin, cell.destination);
    const points = history.get(key) ?? [];
    const values = valuesOf(cell);
    if (values.some((value) => value !== null) && !isSame(points[points.length - 1], values)) {
      next.set(key, [...points.slice(1 - limit), { time, values }]);
    }
  }
  return next;
}

/** Returns the values of a cell. They are not known if the clocks differ. */
function valuesOf(cell: LatencyCell): (number | null)[] {
  return cell.quantiles.map((quantile) => (cell.clockMilliseconds === undefined ? quantile.milliseconds : null));
}

function isSame(point: Point | undefined, values: (number | null)[]): boolean {
  return point !== undefined && values.every((value, index) => value === point.values[index]);
}
