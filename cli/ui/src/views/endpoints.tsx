/** Endpoints by cluster, and the sides of a conflict. */

import type { ConflictSide, EndpointCount } from "../contract";
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
  const whole = Math.max(...shown.map((one) => one.ready + one.draining + one.notReady));
  return (
    <Card title="Endpoints by cluster" note={<BarLegend entries={LEGEND} />}>
      {byImporter(shown).map(([importer, counts]) => (
        <div class="endpoints" key={importer}>
          <h3>in {importer}</h3>
          <ul>
            {counts.map((one) => (
              <li key={one.exporter}>
                <span>from {one.exporter}</span>
                <StackedBar whole={whole} parts={partsOf(one)} />
                <span class="muted">{textOf(one)}</span>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Card>
  );
}

function partsOf(one: EndpointCount) {
  return [
    { name: "bar-ready", value: one.ready },
    { name: "bar-draining", value: one.draining },
    { name: "bar-not-ready", value: one.notReady },
  ];
}

function textOf(one: EndpointCount): string {
  const others = [
    one.draining > 0 ? `, ${one.draining} draining` : "",
    one.notReady > 0 ? `, ${one.notReady} not ready` : "",
  ];
  return `${one.ready} ready${others.join("")}`;
}

const LEGEND: [string, string][] = [
  ["bar-ready", "ready"],
  ["bar-draining", "draining"],
  ["bar-not-ready", "not ready"],
];

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
