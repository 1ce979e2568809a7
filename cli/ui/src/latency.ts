/** What `Latency` shows, computed from the document of `fleetnet latency`. */

import type { LatencyCell, LatencyDocument } from "./contract";
import { pairKey } from "./history";

/** Upper limits of the classes of the heat map, in milliseconds. The last class has no limit. */
export const LIMITS = [5, 10, 25, 100, 1_000] as const;

/** Largest number of members whose cells have numbers. */
export const NUMBERED = 12;
/** Number of pairs in the table of the slowest pairs. */
const SLOWEST = 10;

/** Returns the class of a latency, from 0. */
export function heatClass(milliseconds: number): number {
  const found = LIMITS.findIndex((limit) => milliseconds < limit);
  return found < 0 ? LIMITS.length : found;
}

/** Returns a quantile of a cell in milliseconds. `null` without samples, or if the clocks differ. */
export function valueOf(cell: LatencyCell | undefined, quantile: number): number | null {
  return cell === undefined || cell.clockMilliseconds !== undefined
    ? null
    : (cell.quantiles[quantile]?.milliseconds ?? null);
}

/** Returns the text of a cell, as the command shows it. */
export function textOf(cell: LatencyCell | undefined, quantile: number): string {
  if (cell?.clockMilliseconds !== undefined) {
    return `clocks differ by ${(Math.abs(cell.clockMilliseconds) / 1_000).toFixed(1)}s`;
  }
  return cell?.quantiles[quantile]?.text ?? "–";
}

/** Returns the cells by pair. */
export function cellsOf(document: LatencyDocument): Map<string, LatencyCell> {
  return new Map(document.cells.map((cell) => [pairKey(cell.origin, cell.destination), cell]));
}

/** Returns the slowest pairs, the slowest first. */
export function slowest(document: LatencyDocument, quantile: number): LatencyCell[] {
  const known = document.cells.filter((cell) => valueOf(cell, quantile) !== null);
  known.sort((one, two) => (valueOf(two, quantile) ?? 0) - (valueOf(one, quantile) ?? 0));
  return known.slice(0, SLOWEST);
}

/** Returns the names of the quantiles, such as `p50` and `p99`. */
export function quantileNames(document: LatencyDocument): string[] {
  const quantiles = document.cells[0]?.quantiles ?? [];
  return quantiles.map((quantile) => `p${Number((quantile.quantile * 100).toFixed(3))}`);
}

/** Returns the reasons why members have no summary, each with its members. */
export function withoutSummary(document: LatencyDocument): [string, string[]][] {
  const reasons = new Map<string, string[]>();
  for (const { member, why } of document.withoutSummary) {
    reasons.set(why, [...(reasons.get(why) ?? []), member]);
  }
  return [...reasons];
}
