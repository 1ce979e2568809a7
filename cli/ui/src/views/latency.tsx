/** View `Latency`: heat map of the pairs, and the history of the chosen pair. */

import type { LatencyCell, LatencyDocument } from "../contract";
import { type History, pairKey } from "../history";
import {
  cellsOf,
  heatClass,
  LIMITS,
  NUMBERED,
  quantileNames,
  slowest,
  textOf,
  valueOf,
  withoutSummary,
} from "../latency";
import type { Choices, Dispatch } from "../state";
import { count, duration, ends } from "../text";
import { Sparkline } from "./charts";
import { Grid } from "./grid";
import { Card, Empty, Heading, Select, Sideways, Toggle } from "./parts";

interface Props {
  document: LatencyDocument;
  history: History;
  choices: Choices;
  dispatch: Dispatch;
}

export function LatencyView({ document, history, choices, dispatch }: Props) {
  const names = quantileNames(document);
  const quantile = Math.min(choices.quantile, Math.max(0, names.length - 1));
  const isSmall = document.members.length <= NUMBERED;
  const choose = (origin: string, destination: string) =>
    dispatch({ type: "choose", choices: { latencyPair: { origin, destination } } });
  const shared = { document, quantile, chosen: choices.latencyPair, choose };
  return (
    <>
      <Heading note="Time from a change in a member until it is imported in another member.">Latency</Heading>
      <div class="controls">
        <Toggle
          label="Quantile"
          value={quantile}
          options={names.map((text, value) => ({ value, text }))}
          onChoose={(value) => dispatch({ type: "choose", choices: { quantile: value } })}
        />
        <Legend />
      </div>
      <div class="columns">
        <Card title="Pairs" note="Choose a pair to see its history.">
          {document.cells.length === 0 && <Empty>No samples yet. A member sends the first ones after a minute.</Empty>}
          {isSmall ? <Numbered {...shared} /> : <HeatMap {...shared} />}
        </Card>
        <div class="side">
          <Pair document={document} history={history} chosen={choices.latencyPair} quantile={quantile} />
          {!isSmall && <Slowest {...shared} />}
        </div>
      </div>
      <WithoutSummary document={document} />
    </>
  );
}

function Legend() {
  const texts = [...LIMITS.map((limit) => `<${duration(limit)}`), `≥${duration(LIMITS[LIMITS.length - 1] ?? 0)}`];
  return (
    <span class="legend heat-legend">
      {texts.map((text, index) => (
        <span class={`heat-key heat-${index}`}>{text}</span>
      ))}
    </span>
  );
}

interface MapProps {
  document: LatencyDocument;
  quantile: number;
  chosen: Choices["latencyPair"];
  choose: (origin: string, destination: string) => void;
}

function Numbered({ document, quantile, chosen, choose }: MapProps) {
  const cells = cellsOf(document);
  return (
    <Sideways label="Matrix of the latency">
      <table class="matrix">
        <thead>
          <tr>
            <td class="corner">from \ to</td>
            {document.members.map((member) => (
              <th scope="col" title={member}>
                {member}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {document.members.map((origin) => (
            <tr>
              <th scope="row" title={origin}>
                {origin}
              </th>
              {document.members.map((destination) => (
                <td>
                  <HeatButton
                    cell={cells.get(pairKey(origin, destination))}
                    name={`${origin} → ${destination}`}
                    quantile={quantile}
                    isChosen={chosen?.origin === origin && chosen.destination === destination}
                    onChoose={() => choose(origin, destination)}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Sideways>
  );
}

interface HeatProps {
  cell: LatencyCell | undefined;
  name: string;
  quantile: number;
  isChosen: boolean;
  onChoose: () => void;
}

function HeatButton({ cell, name, quantile, isChosen, onChoose }: HeatProps) {
  const value = valueOf(cell, quantile);
  const text = textOf(cell, quantile);
  const isWrong = cell?.clockMilliseconds !== undefined;
  return (
    <button
      type="button"
      class={`heat ${value === null ? "heat-none" : `heat-${heatClass(value)}`}`}
      aria-label={`${name}: ${text}`}
      aria-pressed={isChosen}
      title={`${name}: ${text}`}
      onClick={onChoose}
    >
      {isWrong ? "! clocks" : text}
    </button>
  );
}

function HeatMap({ document, quantile, chosen, choose }: MapProps) {
  const { members } = document;
  const cells = cellsOf(document);
  const options = members.map((member) => ({ value: member, text: member }));
  const [first = ""] = members;
  const { origin, destination } = chosen ?? { origin: first, destination: first };
  return (
    <>
      <div class="controls">
        <Select label="From" value={origin} options={options} onChoose={(value) => choose(value, destination)} />
        <Select label="To" value={destination} options={options} onChoose={(value) => choose(origin, value)} />
      </div>
      <Sideways label="Matrix of the latency">
        <Grid
          rows={members.length}
          columns={members.length}
          size={Math.max(7, Math.floor(560 / members.length))}
          label={`${members.length} origins as rows, ${members.length} destinations as columns`}
          chosen={chosen && { row: members.indexOf(origin), column: members.indexOf(destination) }}
          onChoose={(row, column) => choose(members[row] ?? first, members[column] ?? first)}
          classOf={(row, column) => {
            const value = valueOf(cells.get(pairKey(members[row] ?? "", members[column] ?? "")), quantile);
            return value === null ? null : { name: `heat-${heatClass(value)}`, mark: "full" };
          }}
        />
      </Sideways>
    </>
  );
}

function Slowest({ document, quantile, choose }: MapProps) {
  return (
    <Card title="Slowest pairs">
      <table>
        <tbody>
          {slowest(document, quantile).map((cell) => (
            <tr>
              <th scope="row">
                <button type="button" class="link-button" onClick={() => choose(cell.origin, cell.destination)}>
                  {cell.origin} → {cell.destination}
                </button>
              </th>
              <td class="number">{textOf(cell, quantile)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

interface PairProps extends Omit<MapProps, "choose"> {
  history: History;
}

/** History of the chosen pair, or of the slowest one. */
function Pair({ document, history, chosen, quantile }: PairProps) {
  const pair = chosen ?? slowest(document, quantile)[0];
  if (!pair) {
    return null;
  }
  const key = pairKey(pair.origin, pair.destination);
  const cell = cellsOf(document).get(key);
  const points = history.get(key) ?? [];
  return (
    <Card title={`${pair.origin} → ${pair.destination}`} note={chosen ? "" : "the slowest pair"}>
      {cell?.clockMilliseconds !== undefined && <p>{textOf(cell, quantile)}: the values would be wrong.</p>}
      {points.length === 0 && <Empty>No samples.</Empty>}
      {quantileNames(document).map((name, index) => (
        <Sparkline points={points} quantile={index} name={name} key={name} />
      ))}
      {cell && <p class="muted">{count(cell.count, "sample")} in the last minutes. ~ means fewer than 20.</p>}
    </Card>
  );
}

function WithoutSummary({ document }: { document: LatencyDocument }) {
  const reasons = withoutSummary(document);
  return reasons.length === 0 ? null : (
    <Card title="Members without a summary">
      <ul class="plain-list">
        {reasons.map(([why, members]) => (
          <li>
            latency to {ends(members)}: {why}
          </li>
        ))}
      </ul>
    </Card>
  );
}
