/** View `Services`: list with filter. Only the rows in view are in the document. */

import { useMemo } from "preact/hooks";
import type { ServiceRow, ServicesDocument, ServiceState } from "../contract";
import { serviceHash } from "../route";
import { apiName, type Arrived, arrivedAt, arrivedNumber, arrivedLabel, filterServices, MATRIX } from "../services";
import type { Choices, Dispatch } from "../state";
import { count, distinct, namesOrNumber } from "../text";
import { serviceLabel } from "../tone";
import { useMedia, useWindow } from "../window";
import { type CellClass, Grid } from "./grid";
import { Badge, Empty, Heading, Search, Select, Icon } from "./parts";

interface Props {
  document: ServicesDocument;
  choices: Choices;
  dispatch: Dispatch;
}

const STATES: (ServiceState | "")[] = ["", "Ready", "Waiting", "NotReady", "Unknown"];

export function ServicesView({ document, choices, dispatch }: Props) {
  const { serviceText: text, serviceState: state, onlyConflicts } = choices;
  const rows = useMemo(
    () => filterServices(document.services, { text, state, onlyConflicts }),
    [document, text, state, onlyConflicts],
  );
  const choose = (change: Partial<Choices>) => dispatch({ type: "choose", choices: change });
  return (
    <>
      <Heading>Services</Heading>
      <div class="controls">
        <Search label="Filter" value={text} onText={(serviceText) => choose({ serviceText })} />
        <Select
          label="State"
          value={state}
          options={STATES.map((value) => ({ value, text: value || "all" }))}
          onChoose={(value) => choose({ serviceState: STATES.find((known) => known === value) ?? "" })}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={onlyConflicts}
            onChange={(event) => choose({ onlyConflicts: event.currentTarget.checked })}
          />
          only conflicts
        </label>
        <span class="muted" role="status">
          {rows.length === document.services.length
            ? count(rows.length, "Service")
            : `${rows.length} of ${count(document.services.length, "Service")}`}
        </span>
      </div>
      {rows.length > 0 ? <Rows rows={rows} /> : <NoRow isFleetEmpty={document.services.length === 0} />}
      <Legend />
    </>
  );
}

function NoRow({ isFleetEmpty }: { isFleetEmpty: boolean }) {
  return <Empty>{isFleetEmpty ? "No cluster exports or imports a Service." : "No Service matches the filter."}</Empty>;
}

/** Heights of a row by layout. They are fixed, so that the rows in view can be computed. */
const HEIGHTS = { wide: 72, medium: 124, narrow: 206 };

const COLUMNS = ["Service", "Exporters", "Importers", "Endpoints", "Arrived", "State", "Name to call"];

function Rows({ rows }: { rows: ServiceRow[] }) {
  const isWide = useMedia("(min-width: 1240px)");
  const isNarrow = useMedia("(max-width: 640px)");
  const layout = isWide ? "wide" : isNarrow ? "narrow" : "medium";
  const height = HEIGHTS[layout];
  const [list, range] = useWindow(height, rows.length);
  const padding = { paddingTop: range.first * height, paddingBottom: (rows.length - range.end) * height };
  return (
    <div class={`services ${layout}`} role="table" aria-label="Services" aria-rowcount={rows.length + 1}>
      <div role="rowgroup" class="services-head">
        <div role="row" aria-rowindex={1} class="service-row">
          {COLUMNS.map((name) => (
            <span role="columnheader">{name}</span>
          ))}
        </div>
      </div>
      <div role="rowgroup" ref={list} style={padding}>
        {rows.slice(range.first, range.end).map((row, index) => (
          <Row
            key={`${row.namespace}/${row.name}/${row.api}`}
            row={row}
            index={range.first + index + 2}
            height={height}
          />
        ))}
      </div>
    </div>
  );
}

function Row({ row, index, height }: { row: ServiceRow; index: number; height: number }) {
  const names = distinct(row.namesToCall.map((call) => call.name));
  return (
    <div role="row" aria-rowindex={index} class="service-row" style={{ height }}>
      <div role="cell" class="c-name">
        <a href={serviceHash(row.namespace, row.name)}>
          {row.namespace}/{row.name}
        </a>
        <span class="muted">
          {apiName(row.api)} · {row.type ?? "type not known"}
        </span>
      </div>
      <Cell name="Exporters" title={row.exporters.join(", ")}>
        {namesOrNumber(row.exporters)}
      </Cell>
      <Cell name="Importers" title={row.importers.join(", ")}>
        {namesOrNumber(row.importers)}
      </Cell>
      <Cell name="Endpoints">
        {row.endpoints}
        {row.arrived.length > 0 && <span class="muted"> ({arrivedNumber(row)} arrived)</span>}
      </Cell>
      <div role="cell" class="c-arrived">
        <Small row={row} />
        <Summary row={row} />
      </div>
      <div role="cell" class="c-state">
        <Badge label={serviceLabel(row.state)} />
      </div>
      <div role="cell" class="c-call" title={names.join(", ")}>
        {names.length > 0 ? <code>{names.join(", ")}</code> : <span class="muted">–</span>}
      </div>
    </div>
  );
}

function Cell({ name, title, children }: { name: string; title?: string; children: preact.ComponentChildren }) {
  return (
    <div role="cell" class={`c-${name.toLowerCase()}`} title={title}>
      <span class="cell-label" aria-hidden="true">
        {name}
      </span>
      <span>{children}</span>
    </div>
  );
}

function Summary({ row }: { row: ServiceRow }) {
  const label = arrivedLabel(row);
  return (
    <span class="summary">
      <Icon label={label} />
      {label.text}
    </span>
  );
}

const CLASSES: Record<Arrived, CellClass> = {
  ok: { name: "ok", mark: "full" },
  missing: { name: "missing", mark: "cross" },
  conflict: { name: "conflict", mark: "diamond" },
  unknown: { name: "unknown", mark: "ring" },
};

/** Matrix of a Service with at most 8 exporters and 8 importers. */
function Small({ row }: { row: ServiceRow }) {
  const [rows, columns] = [row.exporters.length, row.importers.length];
  if (rows === 0 || columns === 0 || rows > MATRIX || columns > MATRIX) {
    return null;
  }
  const size = Math.min(14, Math.floor(52 / Math.max(rows, columns)));
  return (
    <Grid
      rows={rows}
      columns={columns}
      size={size}
      label={`${rows} × ${columns} exporters and importers: ${arrivedLabel(row).text}`}
      classOf={(one, other) => CLASSES[arrivedAt(row, row.exporters[one] ?? "", row.importers[other] ?? "")]}
    />
  );
}

function Legend() {
  const entry = (arrived: Arrived, text: string) => (
    <span>
      <Grid rows={1} columns={1} size={13} label="" classOf={() => CLASSES[arrived]} />
      {text}
    </span>
  );
  return (
    <p class="legend muted" aria-label="Marks of the matrix">
      <span>Rows are exporters, columns are importers:</span>
      {entry("ok", "has endpoints")}
      {entry("missing", "has no endpoints")}
      {entry("conflict", "export in conflict")}
      {entry("unknown", "not read")}
    </p>
  );
}
