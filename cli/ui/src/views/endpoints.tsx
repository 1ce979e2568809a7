/** Endpoints by cluster, and the sides of a conflict. */

import type { ConflictSide, EndpointCount } from "../contract";
import { ENDPOINT_KINDS as KINDS, endpointsText } from "../endpoints";
import { byImporter } from "../pairs";
import { BarLegend, StackedBar } from "./charts";
import { Card, Sideways } from "./parts";

/** Number of rows up to which the endpoints of all importers are shown. */
const LISTED = 48;

interface Props {
  endpoints: EndpointCount[];
  /** Importer of the chosen pair. Of a large fleet, only its endpoints are shown. */
  importer: string | null;
}

export function Endpoints({ endpoints, importer }: Props) {
  const shown = endpoints.length > LISTED ? endpoints.filter((one) => one.importer === importer) : endpoints;
  const whole = Math.max(...shown.map((one) => KINDS.reduce((sum, kind) => sum + one[kind.field], 0)));
  const present = KINDS.filter((kind) => kind.field === "ready" || shown.some((one) => one[kind.field] > 0));
  return (
    <Card
      title="Endpoints by cluster"
      note={<BarLegend entries={present.map(({ name, text }): [string, string] => [name, text])} />}
    >
      {byImporter(shown).map(([importer, counts]) => (
        <div class="endpoints" key={importer}>
          <h3>in {importer}</h3>
          <ul>
            {counts.map((one) => (
              <li key={one.exporter}>
                <span>from {one.exporter}</span>
                <StackedBar whole={whole} parts={KINDS.map(({ name, field }) => ({ name, value: one[field] }))} />
                <span class="muted">{endpointsText(one)}</span>
              </li>
            ))}
          </ul>
        </div>
      ))}
      <Meanings />
    </Card>
  );
}

function Meanings() {
  return (
    <details class="all-steps">
      <summary>What the words mean</summary>
      <dl class="facts">
        {KINDS.map(({ text, meaning }) => (
          <>
            <dt>{text}</dt>
            <dd>{meaning}</dd>
          </>
        ))}
      </dl>
    </details>
  );
}

export function ConflictTable({ conflicts }: { conflicts: ConflictSide[] }) {
  return (
    <Card title="Conflict" note="All sides of it.">
      <Sideways label="Sides of the conflict">
        <table class="wrap">
          <thead>
            <tr>
              <th scope="col">Cluster</th>
              <th scope="col">What</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {conflicts.map((side) => (
              <tr>
                <th scope="row">{side.cluster}</th>
                <td>{side.what}</td>
                <td>{side.value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Sideways>
    </Card>
  );
}
