/** Documents of the commands, as the same data as in shown.mjs. */

import { execFile } from "node:child_process";

/** Returns the document of a command. A fault in the fleet has an exit code too, so only a missing document fails. */
function document({ fleetnet, kubeconfigs }, ...command) {
  const environment = { ...process.env, KUBECONFIG: kubeconfigs.join(":") };
  return new Promise((resolve, reject) => {
    execFile(fleetnet, [...command, "-o", "json"], { env: environment }, (_, output, errors) => {
      try {
        resolve(JSON.parse(output));
      } catch {
        reject(new Error(`fleetnet ${command.join(" ")} has no document: ${errors}`));
      }
    });
  });
}

const VERDICTS = { healthy: "Healthy", fault: "Fault found", notKnown: "Not everything could be read" };
const dash = (value) => String(value ?? "–");

export async function fleet(clusters) {
  const [status, { services, verdict }] = [await document(clusters, "status"), await document(clusters, "services")];
  const of = (rows, isOne) => `${rows.filter(isOne).length} of ${rows.length}`;
  const isFault = [status.verdict, verdict].includes("fault");
  return {
    verdict: VERDICTS[isFault ? "fault" : status.verdict],
    ready: of(status.members, ({ state }) => state === "Ready"),
    services: of(services, ({ state }) => state === "Ready"),
    conflicts: String(services.filter(({ conflicts }) => conflicts.length > 0).length),
    endpoints: String(services.reduce((sum, { endpoints }) => sum + endpoints, 0)),
    members: status.members.map((member) => ({
      Member: member.member,
      State: member.state,
      Version: dash(member.version),
      Clock: member.clockMilliseconds === null ? "not known" : member.clockMilliseconds,
      Exports: dash(member.exports),
      Endpoints: dash(member.endpoints),
      Imports: dash(member.imports),
      "Slices out": dash(member.exportedSlices),
      "Slices in": dash(member.importedSlices),
      "Slice stream": dash(member.sliceStream),
      "Slices by": dash(member.slicesMadeBy),
      "Cluster UID": dash(member.clusterUid),
    })),
  };
}

export async function services(clusters) {
  const { services: rows } = await document(clusters, "services");
  return rows.map((row) => {
    const missing = row.arrived.filter(({ missingExporters }) => missingExporters.length > 0).length;
    const importers = `${row.importers.length} ${row.importers.length === 1 ? "importer has" : "importers have"}`;
    const counts = row.arrived.map(({ endpoints }) => endpoints);
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    return {
      Service: `${row.namespace}/${row.name} fleet · ${row.type}`,
      Exporters: row.exporters.join(", "),
      Importers: row.importers.join(", "),
      Endpoints: `${row.endpoints} (${least === most ? least : `${least}-${most}`} arrived)`,
      Arrived:
        row.conflicts.length > 0
          ? `${row.conflicts.length} exporter in conflict`
          : `${row.importers.length - missing} of ${importers} all endpoints`,
      State: row.state,
      "Name to call": [...new Set(row.namesToCall.map(({ name }) => name))].join(", "),
    };
  });
}

export async function service(clusters, name) {
  const { verdict, pairs, namesToCall } = await document(clusters, "explain", name);
  const number = (steps, wanted) => steps.filter(({ outcome }) => outcome === wanted).length;
  return {
    verdict: VERDICTS[verdict],
    pairs: pairs.map(({ exporter, importer, cause, steps }) => ({
      result: `${exporter} → ${importer}: ${cause ? `${cause.code} ${cause.title}` : "ok"}`,
      steps: [
        `All steps: ${number(steps, "ok")} ok, ${number(steps, "skipped")} skipped, ${number(steps, "unknown")} unknown`,
      ],
      facts: cause ? factsOf(cause) : [],
    })),
    names: [...new Set(namesToCall.map(({ name }) => name))],
  };
}

function factsOf({ evidence, reasons, remedy }) {
  const object = [evidence.namespace, evidence.name].filter((text) => text !== "").join("/");
  const place = `${evidence.cluster}: ${evidence.kind} ${object} ${evidence.field}`;
  return [place, evidence.value, evidence.command, reasons.join(", "), remedy].map(visible);
}

/** Returns a text as the page shows it: with one space for each break of a line. */
const visible = (text) => text.trim().replace(/\s+/g, " ");

export async function latency(clusters) {
  const { members, cells } = await document(clusters, "latency");
  const pairs = members.flatMap((origin) => members.map((destination) => ({ origin, destination })));
  const quantiles = cells[0]?.quantiles.map(({ quantile }) => quantile) ?? [];
  const texts = (index) =>
    pairs.map(({ origin, destination }) => {
      const cell = cells.find((one) => one.origin === origin && one.destination === destination);
      return `${origin} → ${destination}: ${cell?.quantiles[index].text ?? "–"}`;
    });
  return Object.fromEntries(quantiles.map((quantile, index) => [`p${quantile * 100}`, texts(index)]));
}
