/** Addresses of the views, as the part of the page's address after `#`. */

import { visible } from "./text";

export type Route =
  | { page: "fleet" | "services" | "latency" | "happened" | "requests" }
  | { page: "service"; namespace: string; name: string }
  | { page: "code"; code: string };

const PAGES = ["fleet", "services", "latency", "happened", "requests"] as const;

/** Returns the route of a hash. An unknown one leads to the fleet. */
export function routeOf(hash: string): Route {
  const [first, second, third] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (first === "service" && second && third) {
    return { page: "service", namespace: second, name: third };
  }
  if (first === "code" && second) {
    return { page: "code", code: second };
  }
  return { page: PAGES.find((page) => page === first) ?? "fleet" };
}

/** Returns the hash of a Service. */
export function serviceHash(namespace: string, name: string): string {
  return `#/service/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

function decode(part: string): string {
  try {
    return visible(decodeURIComponent(part));
  } catch {
    return visible(part);
  }
}
