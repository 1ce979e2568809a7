/** Choice of a pair: a matrix by the verdict of `explain`, and two lists for a large one. */

import type { Pair } from "../contract";
import { BUTTONS, matrices, pairName, type PairMatrix } from "../pairs";
import { apiName } from "../services";
import { pairLabel, type Shade } from "../tone";
import { type CellClass, Grid } from "./grid";
import { Empty, Select, Sideways, Icon } from "./parts";

interface Props {
  pairs: Pair[];
  chosen: number | null;
  onChoose: (index: number) => void;
}

export function PairChoice(props: Props) {
  const all = matrices(props.pairs);
  if (all.length === 0) {
    return <Empty>No cluster exports or imports this Service.</Empty>;
  }
  return (
    <>
      {all.map((matrix) => (
        <div class="pair-choice" key={matrix.api}>
          {all.length > 1 && <h3>{apiName(matrix.api)}</h3>}
          {Math.max(matrix.exporters.length, matrix.importers.length) <= BUTTONS ? (
            <Buttons matrix={matrix} {...props} />
          ) : (
            <Large matrix={matrix} {...props} />
          )}
        </div>
      ))}
    </>
  );
}

function Buttons({ matrix, pairs, chosen, onChoose }: Props & { matrix: PairMatrix }) {
  return (
    <Sideways label="Matrix of exporters and importers">
      <table class="matrix">
        <thead>
          <tr>
            <td class="corner">from \ to</td>
            {matrix.importers.map((importer) => (
              <th scope="col" title={importer}>
                {importer}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {matrix.exporters.map((exporter, row) => (
            <tr>
              <th scope="row" title={exporter}>
                {exporter}
              </th>
              {matrix.pairs[row]?.map((index) => (
                <td>
                  {index !== null && (
                    <PairButton pair={pairs[index]} isChosen={index === chosen} onChoose={() => onChoose(index)} />
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Sideways>
  );
}

interface ButtonProps {
  pair: Pair | undefined;
  isChosen: boolean;
  onChoose: () => void;
}

function PairButton({ pair, isChosen, onChoose }: ButtonProps) {
  if (!pair) {
    return null;
  }
  const label = pairLabel(pair);
  const text = `${pairName(pair)}: ${label.text}`;
  return (
    <button
      type="button"
      class={`pair ${label.shade}`}
      aria-label={text}
      aria-pressed={isChosen}
      title={text}
      onClick={onChoose}
    >
      <Icon label={label} />
      {pair.cause?.code ?? label.text}
    </button>
  );
}

const CLASSES: Record<Shade, CellClass> = {
  good: { name: "ok", mark: "full" },
  bad: { name: "missing", mark: "cross" },
  warning: { name: "conflict", mark: "diamond" },
  unknown: { name: "unknown", mark: "ring" },
  plain: { name: "unknown", mark: "ring" },
};

function Large({ matrix, pairs, chosen, onChoose }: Props & { matrix: PairMatrix }) {
  const { exporters, importers } = matrix;
  const at = (row: number, column: number) => matrix.pairs[row]?.[column] ?? null;
  const choose = (row: number, column: number) => {
    const index = at(row, column);
    if (index !== null) {
      onChoose(index);
    }
  };
  const row = matrix.pairs.findIndex((indexes) => chosen !== null && indexes.includes(chosen));
  const column = row < 0 ? -1 : (matrix.pairs[row]?.indexOf(chosen) ?? -1);
  const options = (names: string[]) => names.map((name, index) => ({ value: String(index), text: name }));
  return (
    <>
      <div class="controls">
        <Select
          label="Exporter"
          value={String(row)}
          options={options(exporters)}
          onChoose={(value) => choose(Number(value), Math.max(0, column))}
        />
        <Select
          label="Importer"
          value={String(column)}
          options={options(importers)}
          onChoose={(value) => choose(Math.max(0, row), Number(value))}
        />
      </div>
      <Sideways label="Matrix of exporters and importers">
        <Grid
          rows={exporters.length}
          columns={importers.length}
          size={Math.max(6, Math.floor(480 / Math.max(exporters.length, importers.length)))}
          label={`${exporters.length} exporters as rows, ${importers.length} importers as columns`}
          chosen={row < 0 ? null : { row, column }}
          onChoose={choose}
          classOf={(one, other) => {
            const pair = pairs[at(one, other) ?? -1];
            return pair ? CLASSES[pairLabel(pair).shade] : null;
          }}
        />
      </Sideways>
    </>
  );
}
