/** Texts of the page. They are the same as those of the command line. */

/** Characters that control a terminal, are invisible, or change the order of the shown text. */
const HARMFUL = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb" +
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
  "gu",
);

/** Returns a text in which harmful characters are visible, such as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(HARMFUL, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** Parses a JSON document of the server. All strings and keys in it are made visible, so that no view has to do it. */
export function parse<T>(json: string): T {
  return JSON.parse(json, (_key, value: unknown) => {
    if (typeof value === "string") {
      return visible(value);
    }
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [visible(key), member]));
    }
    return value;
  }) as T;
}

/** Returns a time span in one unit, such as `119s` or `2m`. */
export function span(seconds: number): string {
  if (seconds < 120) {
    return `${Math.max(0, Math.floor(seconds))}s`;
  }
  if (seconds < 7_200) {
    return `${Math.floor(seconds / 60)}m`;
  }
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** Returns how far the clock of a member is ahead of the clock of the hub. */
export function clock(milliseconds: number | null): string {
  if (milliseconds === null) {
    return "not known";
  }
  const tenths = Math.floor((Math.abs(milliseconds) + 50) / 100);
  const sign = tenths === 0 ? "" : milliseconds < 0 ? "-" : "+";
  return `${sign}${Math.floor(tenths / 10)}.${tenths % 10}s`;
}

/** Returns a text, or a dash if it is not known. */
export function orDash(value: string | number | null | undefined): string {
  return value === null || value === undefined || value === "" ? "–" : String(value);
}

/** Units of a duration from a second, with the milliseconds of one, and those from which the next unit is used. */
const UNITS: [string, number, number][] = [
  ["s", 1_000, 120_000],
  ["m", 60_000, 7_200_000],
  ["h", 3_600_000, 172_800_000],
  ["d", 86_400_000, Number.POSITIVE_INFINITY],
];

/** Returns milliseconds in one unit, with three digits at most, such as `4.2ms`, `1.5s`, `2.5m` or `3d`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) {
    return `${Number(milliseconds.toPrecision(milliseconds < 10 ? 2 : 3))}ms`;
  }
  const [name, unit] = UNITS.find(([, , end]) => milliseconds < end) ?? ["d", 86_400_000];
  return `${Number((milliseconds / unit).toPrecision(3))}${name}`;
}

/** Returns the local time of day of an RFC 3339 time. */
export function timeOfDay(time: string | null): string {
  const date = new Date(time ?? "");
  return Number.isNaN(date.getTime()) ? "–" : date.toLocaleTimeString("en-GB", { hour12: false });
}

/** Returns a number of things, such as `1 pair` or `3 pairs`. */
export function count(number: number, thing: string): string {
  return `${number.toLocaleString("en-US")} ${thing}${number === 1 ? "" : "s"}`;
}

/** Returns names for a line: all of them, or the first and the last one. */
export function ends(names: string[]): string {
  return names.length > 3 ? `${names[0]} … ${names[names.length - 1]}` : names.join(", ");
}

/** Returns names for a cell of a table: all of them, or their number. */
export function namesOrNumber(names: string[]): string {
  if (names.length === 0) {
    return "–";
  }
  const all = names.join(", ");
  return all.length <= 20 ? all : String(names.length);
}

const collator = new Intl.Collator("en", { numeric: true });

/** Compares two names. Numbers in them count as numbers: `member-2` comes before `member-10`. */
export function natural(one: string, two: string): number {
  return collator.compare(one, two);
}

/** Returns each name once, in natural order. */
export function distinct(names: Iterable<string>): string[] {
  return [...new Set(names)].sort(natural);
}
