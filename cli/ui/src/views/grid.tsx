/** Matrix of cells as one picture. All cells of a class are one path, so that 100 × 100 cells stay cheap to draw. */

/** Shape of a cell. It shows the class without its colour. */
export type Mark = "full" | "cross" | "diamond" | "ring";

export interface CellClass {
  /** Class in the style sheet. */
  name: string;
  mark: Mark;
}

interface Props {
  rows: number;
  columns: number;
  /** Edge of a cell in pixels. */
  size: number;
  /** Text of the picture. Empty if the text is beside it. */
  label: string;
  /** Class of a cell; `null` for none. */
  classOf: (row: number, column: number) => CellClass | null;
  chosen?: { row: number; column: number } | null;
  onChoose?: (row: number, column: number) => void;
}

export function Grid({ rows, columns, size, label, classOf, chosen, onChoose }: Props) {
  const [width, height] = [columns * size, rows * size];
  const choose = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    onChoose?.(Math.min(rows - 1, Math.max(0, row)), Math.min(columns - 1, Math.max(0, column)));
  };
  return (
    <svg
      class={onChoose ? "grid is-clickable" : "grid"}
      {...(label === "" ? { "aria-hidden": true } : { role: "img", "aria-label": label })}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      {...(onChoose ? { onClick: choose } : {})}
    >
      {pathsOf(rows, columns, size, classOf).map(([cell, path]) => (
        <path class={`cell ${cell.name} ${cell.mark}`} d={path} />
      ))}
      {chosen && <rect class="chosen" x={chosen.column * size} y={chosen.row * size} width={size} height={size} />}
    </svg>
  );
}

function pathsOf(rows: number, columns: number, size: number, classOf: Props["classOf"]): [CellClass, string][] {
  const paths = new Map<string, [CellClass, string[]]>();
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const cell = classOf(row, column);
      if (cell) {
        const found = paths.get(cell.name) ?? [cell, []];
        found[1].push(shape(cell.mark, column * size, row * size, size));
        paths.set(cell.name, found);
      }
    }
  }
  return [...paths.values()].map(([cell, parts]) => [cell, parts.join("")]);
}

/** Returns the path of a cell with a gap around it. */
function shape(mark: Mark, x: number, y: number, size: number): string {
  const gap = size > 6 ? 1 : 0.5;
  const edge = size - 2 * gap;
  const [left, top, half] = [x + gap, y + gap, edge / 2];
  switch (mark) {
    case "cross":
      return `M${left + 1} ${top + 1}l${edge - 2} ${edge - 2}m0 ${2 - edge}l${2 - edge} ${edge - 2}`;
    case "diamond":
      return `M${left + half} ${top}l${half} ${half}l${-half} ${half}l${-half} ${-half}z`;
    case "ring":
      return `M${left + 0.5} ${top + 0.5}h${edge - 1}v${edge - 1}h${1 - edge}z`;
    default:
      return `M${left} ${top}h${edge}v${edge}h${-edge}z`;
  }
}
