/** State of the page, and the only function that changes it. */

import type {
  CodeEntry,
  FleetMessage,
  Happened,
  LatencyDocument,
  NotReadMessage,
  RequestsMessage,
  ServiceAnswer,
  ServicesDocument,
  ServiceState,
  StatusDocument,
  Traffic,
  Verdict,
} from "./contract";
import { append, type History } from "./history";
import { withRequests } from "./requests";
import type { Route } from "./route";
import { worst } from "./tone";

/** Maximum number of lines in `What happens`. */
const LINES = 500;
/** Time without a message after which the data is old. The server sends one at least every 20 s. */
const OLD_AFTER_MILLISECONDS = 30_000;

export type Connection = "connecting" | "live" | "reconnecting";

/** Choices of the user. */
export interface Choices {
  serviceText: string;
  serviceState: ServiceState | "";
  onlyConflicts: boolean;
  happenedText: string;
  /** Index of the quantile that the heat map shows. */
  quantile: number;
  /** Chosen pair in `Latency`. */
  latencyPair: { origin: string; destination: string } | null;
  /** Name of the chosen pair of the Service, such as `west → east`. */
  servicePair: string | null;
}

/** Service that is shown. */
export interface Shown {
  namespace: string;
  name: string;
  answer: ServiceAnswer | null;
  /** Reason why the last request failed. */
  why: string | null;
}

export interface State {
  route: Route;
  /** Time of the page in milliseconds. */
  now: number;
  connection: Connection;
  /** Time of the last reading. */
  readAt: string | null;
  /** Time of the page at the last message. */
  receivedAt: number | null;
  status: StatusDocument | null;
  services: ServicesDocument | null;
  latency: LatencyDocument | null;
  contextsNotRead: string[];
  eventsNotRead: string[];
  notRead: NotReadMessage | null;
  history: History;
  /** Newest first. */
  happened: Happened[];
  /** Lines at the time of `Pause`. */
  paused: Happened[] | null;
  traffic: Traffic | null;
  /** Oldest first. */
  requests: RequestsMessage[];
  shown: Shown | null;
  codes: ReadonlyMap<string, CodeEntry>;
  choices: Choices;
}

export type Action =
  | { type: "tick"; now: number }
  | { type: "opened" }
  | { type: "lost" }
  | { type: "fleet"; message: FleetMessage; now: number }
  | { type: "notRead"; message: NotReadMessage }
  | { type: "happened"; line: Happened }
  | { type: "requests"; message: RequestsMessage }
  | { type: "route"; route: Route }
  | { type: "answer"; namespace: string; name: string; answer: ServiceAnswer }
  | { type: "noAnswer"; namespace: string; name: string; why: string }
  | { type: "codes"; codes: CodeEntry[] }
  | { type: "pause" }
  | { type: "continue" }
  | { type: "choose"; choices: Partial<Choices> };

export type Dispatch = (action: Action) => void;

export function initialState(route: Route, now: number): State {
  const choices: Choices = {
    serviceText: "",
    serviceState: "",
    onlyConflicts: false,
    happenedText: "",
    quantile: 0,
    latencyPair: null,
    servicePair: null,
  };
  const state: State = {
    route,
    now,
    connection: "connecting",
    readAt: null,
    receivedAt: null,
    status: null,
    services: null,
    latency: null,
    contextsNotRead: [],
    eventsNotRead: [],
    notRead: null,
    history: new Map(),
    happened: [],
    paused: null,
    traffic: null,
    requests: [],
    shown: null,
    codes: new Map(),
    choices,
  };
  return reduce(state, { type: "route", route });
}

/** Returns the state after an action. */
export function reduce(state: State, action: Action): State {
  switch (action.type) {
    case "tick":
      return { ...state, now: action.now };
    case "opened":
      return { ...state, connection: "live" };
    case "lost":
      return { ...state, connection: "reconnecting" };
    case "fleet":
      return withFleet(state, action.message, action.now);
    case "notRead":
      return { ...state, notRead: action.message };
    case "happened":
      return { ...state, happened: withLine(state.happened, action.line) };
    case "requests":
      return { ...state, requests: withRequests(state.requests, action.message) };
    case "route":
      return withRoute(state, action.route);
    case "answer":
      return withAnswer(state, action, { answer: action.answer, why: null });
    case "noAnswer":
      return withAnswer(state, action, { why: action.why });
    case "codes":
      return { ...state, codes: new Map(action.codes.map((entry) => [entry.code, entry])) };
    case "pause":
      return { ...state, paused: state.happened };
    case "continue":
      return { ...state, paused: null };
    case "choose":
      return { ...state, choices: { ...state.choices, ...action.choices } };
  }
}

function withFleet(state: State, message: FleetMessage, now: number): State {
  return {
    ...state,
    now,
    connection: "live",
    readAt: message.time,
    receivedAt: now,
    status: message.status ?? state.status,
    services: message.services ?? state.services,
    latency: message.latency ?? state.latency,
    history: message.latency ? append(state.history, message.latency, message.time) : state.history,
    contextsNotRead: message.contextsNotRead,
    traffic: message.traffic,
    eventsNotRead: message.eventsNotRead,
    notRead: null,
  };
}

/** Returns the lines with a new one. The server sends the last lines again after a lost connection. */
function withLine(lines: Happened[], line: Happened): Happened[] {
  if (lines.some((other) => isSameLine(other, line))) {
    return lines;
  }
  const place = lines.findIndex((other) => Date.parse(other.time) <= Date.parse(line.time));
  const at = place < 0 ? lines.length : place;
  return [...lines.slice(0, at), line, ...lines.slice(at)].slice(0, LINES);
}

function isSameLine(one: Happened, two: Happened): boolean {
  const keys = ["time", "cluster", "kind", "namespace", "name", "reason", "text"] as const;
  return keys.every((key) => one[key] === two[key]);
}

function withRoute(state: State, route: Route): State {
  if (route.page !== "service") {
    return { ...state, route, shown: null };
  }
  const { namespace, name } = route;
  const isSame = state.shown?.namespace === namespace && state.shown.name === name;
  const shown = isSame ? state.shown : { namespace, name, answer: null, why: null };
  const servicePair = isSame ? state.choices.servicePair : null;
  return { ...state, route, shown, choices: { ...state.choices, servicePair } };
}

/** Ignores an answer about a Service that is not shown any more. */
function withAnswer(state: State, of: { namespace: string; name: string }, change: Partial<Shown>): State {
  const { shown } = state;
  return shown && shown.namespace === of.namespace && shown.name === of.name
    ? { ...state, shown: { ...shown, ...change } }
    : state;
}

/** Returns the verdict of the fleet: the worst of the three documents. `null` before the first message. */
export function fleetVerdict(state: State): Verdict | null {
  const documents = [state.status, state.services, state.latency].filter((document) => document !== null);
  if (documents.length === 0) {
    return null;
  }
  const verdicts = documents.map((document) => document.verdict);
  return worst(state.contextsNotRead.length > 0 ? [...verdicts, "notKnown"] : verdicts);
}

/** True if the shown data may differ from the fleet. */
export function isOld(state: State): boolean {
  return (
    state.receivedAt !== null &&
    (state.connection !== "live" || state.notRead !== null || state.now - state.receivedAt > OLD_AFTER_MILLISECONDS)
  );
}

/** Returns the number of lines that came after `Pause`. */
export function linesSincePause(state: State): number {
  const first = state.paused?.[0];
  if (state.paused === null) {
    return 0;
  }
  const place = first ? state.happened.indexOf(first) : -1;
  return place < 0 ? state.happened.length : place;
}
