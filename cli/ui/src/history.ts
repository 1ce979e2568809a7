/** Latency of each pair since the page was opened. */

import type { LatencyCell, LatencyDocument } from "./contract";

/** Maximum number of points of a pair, twice as many as its chart has pixels. */
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

/**
 * Returns the history with the values of a document. A pair whose values did not change gets no point. If a pair has
 * too many points, every second one is dropped, so that the history still begins with the first one.
 */
export function append(history: History, document: LatencyDocument, time: string): History {
  const limit = Math.max(2, Math.min(POINTS_OF_PAIR, Math.floor(POINTS / Math.max(1, document.cells.length))));
  const next = new Map(history);
  for (const cell of document.cells) {
    const key = pairKey(cell.origin, cell.destination);
    const points = history.get(key) ?? [];
    const values = valuesOf(cell);
    if (values.some((value) => value !== null) && !isSame(points[points.length - 1], values)) {
      const kept = points.length < limit ? points : points.filter((_, index) => index % 2 === 0);
      next.set(key, [...kept, { time, values }]);
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
