/** Page of `fleetnet ui`. */

import { render } from "preact";
import { listen, pollService, readCodes } from "./connect";
import { routeOf } from "./route";
import { type Action, initialState, reduce } from "./state";
import { App, titleOf } from "./views/app";

const root = document.getElementById("app") as HTMLElement;
let state = initialState(routeOf(location.hash), Date.now());
let isDrawn = true;
let stopPolling = () => {};

function dispatch(action: Action): void {
  state = reduce(state, action);
  if (isDrawn) {
    isDrawn = false;
    requestAnimationFrame(draw);
  }
  if (action.type === "opened" && state.codes.size === 0) {
    readCodes(dispatch);
  }
}

function draw(): void {
  isDrawn = true;
  render(<App state={state} dispatch={dispatch} />, root);
  document.title = titleOf(state);
}

/** Shows the route of the address, and reads its Service. */
function follow(): void {
  stopPolling();
  stopPolling = () => {};
  const route = routeOf(location.hash);
  dispatch({ type: "route", route });
  if (route.page === "service") {
    stopPolling = pollService(route.namespace, route.name, dispatch);
  }
}

/** Scroll positions of the views by hash. The browser cannot restore them, as the rows are not drawn yet. */
const positions = new Map<string, number>();
history.scrollRestoration = "manual";

addEventListener("hashchange", (event) => {
  positions.set(new URL(event.oldURL).hash, scrollY);
  follow();
  draw();
  scrollTo(0, positions.get(location.hash) ?? 0);
  root.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
});
setInterval(() => dispatch({ type: "tick", now: Date.now() }), 1_000);
follow();
draw();
listen(dispatch);
