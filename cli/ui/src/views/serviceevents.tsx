/** Last Events about the objects of a Service. */

import type { Happened } from "../contract";
import { Lines } from "./lines";
import { Card, Empty } from "./parts";

export function ServiceEvents({ events, notRead }: { events: Happened[]; notRead: string[] }) {
  return (
    <Card title="Last Events" note="Of the agents, about the objects of this Service. Kubernetes keeps them for an hour.">
      {events.length > 0 ? <Lines lines={events} /> : <Empty>No Events.</Empty>}
      <EventsNotRead notRead={notRead} />
    </Card>
  );
}

/** Clusters whose Events are left out. */
export function EventsNotRead({ notRead }: { notRead: string[] }) {
  return notRead.length === 0 ? null : <p class="muted note">Events not read: {notRead.join("; ")}</p>;
}
