/** Frame of the page: header, navigation and the view of the route. */

import type { ComponentChild } from "preact";
import { type Connection, type Dispatch, fleetVerdict, isOld, type State } from "../state";
import { timeOfDay } from "../text";
import { type Label, labelOf, verdictLabel } from "../tone";
import { CodeView } from "./code";
import { FleetView } from "./fleet";
import { HappenedView } from "./happened";
import { LatencyView } from "./latency";
import { Badge, Empty, Icon } from "./parts";
import { RequestsView } from "./requests";
import { ServiceView } from "./service";
import { ServicesView } from "./services";

interface Props {
  state: State;
  dispatch: Dispatch;
}

export function App({ state, dispatch }: Props) {
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Header state={state} />
      <Tabs state={state} />
      <OldData state={state} />
      <main id="main" tabIndex={-1} class={isOld(state) ? "is-old" : ""}>
        <View state={state} dispatch={dispatch} />
      </main>
      <footer class="muted">This page only reads. It shows the same as the commands of fleetnet.</footer>
    </>
  );
}

/** Moves the focus. The address keeps its route. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** Returns the title of the document, which starts with the verdict. */
export function titleOf(state: State): string {
  const label = verdictOf(state);
  return `${label.icon} ${label.text} – fleetnet`;
}

/** Returns the verdict of the fleet. An old one counts as not known. */
function verdictOf(state: State): Label {
  const verdict = fleetVerdict(state);
  if (verdict === null) {
    return state.notRead ? labelOf("unknown", "The hub could not be read") : labelOf("plain", "Reading the fleet");
  }
  const label = verdictLabel(verdict);
  return isOld(state) ? labelOf("unknown", `${label.text} at ${timeOfDay(state.readAt)}`) : label;
}

const CONNECTIONS: Record<Connection, Label> = {
  connecting: labelOf("plain", "connecting"),
  live: { shade: "good", icon: "●", text: "live" },
  reconnecting: { shade: "warning", icon: "↻", text: "reconnecting" },
};

function Header({ state }: { state: State }) {
  const connection = CONNECTIONS[state.connection];
  return (
    <header class="top">
      <a class="brand" href="#/fleet">
        <img src="favicon.svg" alt="" width="28" height="28" />
        fleetnet
      </a>
      <div class="verdict" role="status">
        <Badge label={verdictOf(state)} />
      </div>
      <div class="reading">
        <span class="muted">{state.readAt ? `read at ${timeOfDay(state.readAt)}` : "not read yet"}</span>
        <span class={`connection ${connection.shade}`}>
          <Icon label={connection} />
          {connection.text}
        </span>
      </div>
    </header>
  );
}

function Tabs({ state }: { state: State }) {
  const { page } = state.route;
  const tab = (name: string, text: string, isCurrent = page === name) => (
    <a href={`#/${name}`} {...(isCurrent ? { "aria-current": "page" as const } : {})}>
      {text}
    </a>
  );
  return (
    <nav class="tabs" aria-label="Views">
      {tab("fleet", "Fleet")}
      {tab("services", "Services", page === "services" || page === "service" || page === "code")}
      {tab("latency", "Latency")}
      {tab("happened", "What happens")}
      {state.traffic && tab("requests", "Requests")}
    </nav>
  );
}

/** Says why the data is old. The text is the same each second, so that a screen reader says it once. */
function OldData({ state }: { state: State }) {
  if (!isOld(state)) {
    return null;
  }
  return (
    <p class="old" role="alert">
      <Icon label={labelOf("warning", "")} />
      <span>
        This is the state of {timeOfDay(state.readAt)}. {reasonOf(state)}
      </span>
    </p>
  );
}

function reasonOf(state: State): string {
  if (state.connection !== "live") {
    return "There is no connection to fleetnet ui. The page connects again by itself while the command runs.";
  }
  return state.notRead ? `The hub could not be read: ${state.notRead.why}` : "No message came since then.";
}

function View({ state, dispatch }: Props): ComponentChild {
  const { route } = state;
  if (route.page === "code") {
    return <CodeView code={route.code} codes={state.codes} />;
  }
  if (route.page === "happened") {
    return <HappenedView state={state} dispatch={dispatch} />;
  }
  if (route.page === "requests") {
    return <RequestsView traffic={state.traffic} requests={state.requests} />;
  }
  if (route.page === "service") {
    return <ServiceView state={state} dispatch={dispatch} />;
  }
  if (!state.status || !state.services || !state.latency) {
    const isWaiting = state.connection !== "reconnecting" && state.notRead === null;
    return <Empty>{isWaiting ? "Reading the fleet …" : reasonOf(state)}</Empty>;
  }
  switch (route.page) {
    case "services":
      return <ServicesView document={state.services} choices={state.choices} dispatch={dispatch} />;
    case "latency":
      return (
        <LatencyView document={state.latency} history={state.history} choices={state.choices} dispatch={dispatch} />
      );
    default:
      return <FleetView state={state} status={state.status} services={state.services} latency={state.latency} />;
  }
}
