/** Connection to the server. It only reads. */

import type { CodesDocument, FleetMessage, Happened, NotReadMessage, RequestsMessage, ServiceAnswer } from "./contract";
import type { Action, Dispatch } from "./state";
import { parse, visible } from "./text";

/** Time between two readings of the shown Service. */
const POLL_MILLISECONDS = 2_000;
/** Time until the next attempt, if the browser does not connect again by itself. */
const RECONNECT_MILLISECONDS = 3_000;

/**
 * Listens to the events of the server while the page is visible. A browser has only a few connections to one server,
 * and the server reads the clusters while a page listens.
 */
export function listen(dispatch: Dispatch): void {
  let events: EventSource | undefined;
  const connect = () => {
    events?.close();
    events = document.hidden ? undefined : open(dispatch, connect);
  };
  document.addEventListener("visibilitychange", connect);
  connect();
}

/** Opens a connection for events. The browser connects again by itself, except after an HTTP error. */
function open(dispatch: Dispatch, again: () => void): EventSource {
  const events = new EventSource("events");
  const on = <T>(name: string, action: (message: T) => Action) => {
    events.addEventListener(name, (event: MessageEvent<string>) => dispatch(action(parse<T>(event.data))));
  };
  on<FleetMessage>("fleet", (message) => ({ type: "fleet", message, now: Date.now() }));
  on<NotReadMessage>("notRead", (message) => ({ type: "notRead", message }));
  on<Happened>("happened", (line) => ({ type: "happened", line }));
  on<RequestsMessage>("requests", (message) => ({ type: "requests", message }));
  events.addEventListener("open", () => dispatch({ type: "opened" }));
  events.addEventListener("error", () => {
    dispatch({ type: "lost" });
    if (events.readyState === EventSource.CLOSED) {
      setTimeout(again, RECONNECT_MILLISECONDS);
    }
  });
  return events;
}

/** Reads a Service until the returned function is called. The next request starts after the answer to the last one. */
export function pollService(namespace: string, name: string, dispatch: Dispatch): () => void {
  const stop = new AbortController();
  const path = `service/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const read = async () => {
    try {
      const answer = await get<ServiceAnswer>(path, stop.signal);
      dispatch({ type: "answer", namespace, name, answer });
    } catch (error) {
      if (!stop.signal.aborted) {
        dispatch({
          type: "noAnswer",
          namespace,
          name,
          why: visible(error instanceof Error ? error.message : String(error)),
        });
      }
    }
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      if (!document.hidden) {
        await read();
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
    }
  };
  void run();
  return () => stop.abort();
}

/** Reads the fault codes. A failure changes nothing: the page then has no titles of steps that are ok. */
export function readCodes(dispatch: Dispatch): void {
  get<CodesDocument>("codes").then(
    (document) => dispatch({ type: "codes", codes: document.codes }),
    () => undefined,
  );
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, signal ? { signal } : {});
  const text = await response.text();
  if (!response.ok) {
    throw new Error(text.trim() || `the server answers ${response.status}`);
  }
  return parse<T>(text);
}
