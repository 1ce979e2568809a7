/** Documents of a large fleet. */

import type { LatencyDocument, ServiceRow, ServicesDocument, StatusDocument } from "../src/contract";

export function memberNames(number: number): string[] {
  return Array.from({ length: number }, (_, index) => `member-${index + 1}`);
}

/** Returns Services of which each tenth is NotReady, as one importer has no endpoints of one exporter. */
export function services(number: number, members: number): ServicesDocument {
  const rows = Array.from({ length: number }, (_, index) => service(index, memberNames(members)));
  return { services: rows, verdict: "fault", notKnown: [] };
}

function service(index: number, members: string[]): ServiceRow {
  const isBroken = index % 10 === 9;
  const name = `app-${index + 1}`;
  const namespace = `team-${index % 7}`;
  const api = "networking.fleet.azure.com";
  return {
    namespace,
    name,
    api,
    type: "ClusterSetIP",
    exporters: members,
    importers: members,
    endpoints: 2 * members.length,
    conflicts: [],
    state: isBroken ? "NotReady" : "Ready",
    arrived: members.map((importer, place) => ({
      importer,
      endpoints: 2 * members.length - (isBroken && place === 0 ? 2 : 0),
      missingExporters: isBroken && place === 0 ? members.slice(1, 2) : [],
    })),
    namesToCall: members.slice(0, 3).map((importer) => ({
      importer,
      api,
      name: `${namespace}-${name}.fleet-system.svc`,
      addresses: ["10.0.0.1"],
      ports: ["80/TCP"],
    })),
  };
}

/** Returns members of which each thirtieth is Silent. */
export function status(members: number): StatusDocument {
  return {
    members: memberNames(members).map((member, index) => ({
      member,
      state: index % 30 === 29 ? "Silent" : "Ready",
      version: "0.1.0",
      heardSeconds: index % 30 === 29 ? 400 : 4,
      clockMilliseconds: 0,
      exports: 3,
      endpoints: 12,
      imports: 4,
      exportedSlices: 5,
      importedSlices: 6,
      sliceStream: "Connected",
      slicesMadeBy: "kube-controller-manager",
      clusterUid: null,
    })),
    hub: { server: "https://hub.test", reached: true, version: "0.1.0", leader: "hub-agent-0", replicas: [2, 2] },
    verdict: "fault",
    notKnown: [],
  };
}

/** Returns a latency that grows with the place of origin and destination. */
export function latency(members: number): LatencyDocument {
  const names = memberNames(members);
  const cell = (origin: number, destination: number) => {
    const milliseconds = 2 + origin * 0.3 + (origin * destination) / 8;
    const quantile = (value: number, factor: number) => ({
      quantile: value,
      milliseconds: milliseconds * factor,
      text: `${(milliseconds * factor).toFixed(1)}ms`,
    });
    return {
      origin: names[origin] ?? "",
      destination: names[destination] ?? "",
      count: 40,
      quantiles: [quantile(0.5, 1), quantile(0.99, 3)],
    };
  };
  const cells = names.flatMap((_, origin) => names.map((_, destination) => cell(origin, destination)));
  return { members: names, cells, withoutSummary: [], verdict: "healthy", notKnown: [] };
}
