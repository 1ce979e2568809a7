/** Requests of the last seconds, and their sums. */

import type { RequestsMessage } from "./contract";

/** Number of messages that are kept. The server sends one each second. */
export const SECONDS = 120;

/** Returns the messages with a new one. The server sends the last ones again after a lost connection. */
export function withRequests(requests: RequestsMessage[], message: RequestsMessage): RequestsMessage[] {
  const last = requests[requests.length - 1];
  const isNew = last === undefined || Date.parse(last.time) < Date.parse(message.time);
  return isNew ? [...requests.slice(1 - SECONDS), message] : requests;
}

/** Part of a whole. */
export interface Share {
  name: string;
  number: number;
  /** In percent, with one decimal place. */
  percent: number;
}

export interface Totals {
  sent: number;
  lost: number;
  /** Largest number of requests in one message. */
  most: number;
  lostByKind: Share[];
  answersByCluster: Share[];
}

export function totals(requests: readonly RequestsMessage[]): Totals {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  return {
    sent: sum(requests.map((one) => one.sent)),
    lost: sum(requests.map((one) => one.lost)),
    most: Math.max(0, ...requests.map((one) => one.sent)),
    lostByKind: shares(requests.map((one) => one.lostByKind)),
    answersByCluster: shares(requests.map((one) => one.answersByCluster)),
  };
}

/** Returns the sum of each name, ordered by name. */
function shares(counts: Record<string, number>[]): Share[] {
  const sums = new Map<string, number>();
  for (const [name, number] of counts.flatMap((one) => Object.entries(one))) {
    sums.set(name, (sums.get(name) ?? 0) + number);
  }
  const whole = [...sums.values()].reduce((total, number) => total + number, 0);
  const names = [...sums].sort(([one], [two]) => one.localeCompare(two, "en", { numeric: true }));
  const percent = (number: number) => (whole > 0 ? Math.round((number / whole) * 1_000) / 10 : 0);
  return names.map(([name, number]) => ({ name, number, percent: percent(number) }));
}

/** Bar of one message, in a chart with this height. */
export interface Bar {
  /** Place from the left, below `SECONDS`. The newest message is on the right. */
  place: number;
  sent: number;
  lost: number;
}

/** Least height of a bar that is not 0, so that a single lost request is seen. */
const SEEN = 3;

export function bars(requests: readonly RequestsMessage[], height: number): Bar[] {
  const { most } = totals(requests);
  const scaled = (value: number) => (value > 0 ? Math.max(SEEN, (value / most) * height) : 0);
  const first = SECONDS - requests.length;
  return requests.map((one, index) => ({ place: first + index, sent: scaled(one.sent), lost: scaled(one.lost) }));
}
