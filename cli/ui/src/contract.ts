/**
 * Contract with the server of `fleetnet ui`.
 *
 * All addresses are relative to the page. The documents of the commands are those of `-o json`, with the types in
 * `cli/diagnosis/src/report.rs`. Within `cli.fleetnet/v1`, fields are only added.
 */

/** API group by which clusters export and import a Service. */
export type Api = "networking.fleet.azure.com" | "multicluster.x-k8s.io";

export type Verdict = "healthy" | "notKnown" | "fault";

export type MemberState =
  "Ready" | "Stopped" | "Silent" | "NeverHeard" | "NoNamespace" | "GoAgent" | "Leaving" | "Unknown";

export type ServiceState = "Ready" | "Waiting" | "NotReady" | "Unknown";

export type Outcome = "ok" | "broken" | "waiting" | "skipped" | "unknown";

/** Colour of a line in `What happens`. The text says what the colour says. */
export type Tone = "good" | "warning" | "bad" | "plain";

export interface MemberStatus {
  member: string;
  state: MemberState;
  version: string | null;
  heardSeconds: number | null;
  /** Positive if the clock of the member is ahead of the clock of the hub. */
  clockMilliseconds: number | null;
  exports: number | null;
  endpoints: number | null;
  imports: number | null;
  exportedSlices: number | null;
  importedSlices: number | null;
  sliceStream: string | null;
  slicesMadeBy: string | null;
  clusterUid: string | null;
}

export interface HubStatus {
  server: string;
  reached: boolean;
  version: string | null;
  leader: string | null;
  /** Number of ready and of wanted replicas. */
  replicas: [number, number] | null;
}

/** Document of `fleetnet status -o json`. */
export interface StatusDocument {
  members: MemberStatus[];
  hub: HubStatus;
  verdict: Verdict;
  notKnown: string[];
}

export interface Arrival {
  importer: string;
  endpoints: number;
  /** Exporters that have ready endpoints, none of which the importer has. */
  missingExporters: string[];
}

export interface NameToCall {
  importer: string;
  api: Api;
  name: string;
  addresses: string[];
  ports: string[];
}

export interface ServiceRow {
  namespace: string;
  name: string;
  api: Api;
  type: string | null;
  exporters: string[];
  importers: string[];
  endpoints: number;
  conflicts: string[];
  state: ServiceState;
  arrived: Arrival[];
  namesToCall: NameToCall[];
}

/** Document of `fleetnet services -o json`. */
export interface ServicesDocument {
  services: ServiceRow[];
  verdict: Verdict;
  notKnown: string[];
}

export interface Quantile {
  quantile: number;
  milliseconds: number | null;
  text: string;
}

export interface LatencyCell {
  origin: string;
  destination: string;
  count: number;
  quantiles: Quantile[];
  /** Difference between the clocks, if it is more than 2 s. The values are wrong then. */
  clockMilliseconds?: number;
}

/** Document of `fleetnet latency -o json`. */
export interface LatencyDocument {
  members: string[];
  cells: LatencyCell[];
  withoutSummary: { member: string; why: string }[];
  verdict: Verdict;
  notKnown: string[];
}

export interface Evidence {
  cluster: string;
  kind: string;
  namespace: string;
  name: string;
  field: string;
  value: string;
  time?: string;
  command: string;
}

export interface Finding {
  code: string;
  title: string;
  reasons: string[];
  evidence: Evidence;
  remedy: string;
}

export interface Step {
  code: string;
  title: string;
  outcome: Outcome;
  detail?: string;
}

/** With more than 400 pairs, the server may leave out steps that are ok or skipped. */
export interface Pair {
  api: Api;
  exporter: string | null;
  importer: string | null;
  steps: Step[];
  cause?: Finding;
  earlierUnknown?: boolean;
  verdict: Verdict;
}

/** Document of `fleetnet explain NAMESPACE/NAME -o json`. */
export interface ExplanationDocument {
  namespace: string;
  name: string;
  pairs: Pair[];
  notices: Finding[];
  verdict: Verdict;
  namesToCall: NameToCall[];
  importers: string[];
  notReached: { cluster: string; why: string; remedy: string }[];
  didYouMean?: string[];
}

/**
 * Message `fleet` of `GET events`: sent at once on connection, then each time that something changed, and at least
 * every 20 s. A document that did not change since the message before may be left out.
 */
export interface FleetMessage {
  time: string;
  status?: StatusDocument;
  services?: ServicesDocument;
  latency?: LatencyDocument;
  contextsNotRead: string[];
  /** Clusters whose Events were not all read, with the reason. That is no fault. */
  eventsNotRead: string[];
  /** `null` if no client sends requests. */
  traffic: Traffic | null;
}

/** Client of `fleetnet sandbox --packets`, and the Service to which it sends requests. */
export interface Traffic {
  /** `namespace/name` of the Service. */
  service: string;
  exporters: string[];
  importer: string;
  /** `namespace/name` of the client's pod. */
  client: string;
  requestsPerSecond: number;
}

/**
 * Message `requests` of `GET events`: the requests that had their outcome since the message before, each second. The
 * last 120 are sent on connection.
 */
export interface RequestsMessage {
  time: string;
  sent: number;
  lost: number;
  /** Lost requests by the kind of failure, such as `timeout`. */
  lostByKind: Record<string, number>;
  /** Answers by the cluster of the pod that answered. */
  answersByCluster: Record<string, number>;
}

/**
 * Message `happened` of `GET events`: one change, or one Event of an agent with the time of the Event. The last 200 are
 * sent on connection.
 */
export interface Happened {
  time: string;
  cluster: string;
  kind: string;
  namespace: string;
  name: string;
  reason: string;
  text: string;
  tone: Tone;
}

/** Message `notRead` of `GET events`: the hub could not be read. */
export interface NotReadMessage {
  time: string;
  why: string;
}

/** Endpoints of one exporter in one importer. */
export interface EndpointCount {
  importer: string;
  exporter: string;
  /** Endpoints that the importer has. */
  ready: number;
  draining: number;
  notReady: number;
  /**
   * Ready endpoints of the exporter that the importer does not have. The objects show the cause of a pair, and not that
   * of each endpoint, so only one of the three numbers is above 0. The slices in the hub count for an exporter that was
   * not read.
   *
   * `withdrawn`: the weight of the export is 0, or the exporter is silent and its endpoints are withdrawn.
   * `notSelected`: a rule or a limit excludes them. `NOT_SELECTED` in `cli/diagnosis/src/sides/absent.rs` has the codes.
   * `missing`: none of these causes is known. A change that is on its way counts too.
   */
  withdrawn: number;
  notSelected: number;
  missing: number;
}

export type Point = "changed" | "seen" | "exported" | "distributed" | "imported";

/**
 * `notNeeded`: the change makes no difference to clients of the importer, so its agent writes nothing.
 * `leftOut`: a rule, a limit, a weight of 0 or a silent exporter explains why the object does not have the change.
 */
export type WayState = "done" | "notYet" | "notNeeded" | "leftOut" | "unknown";

/** Limits of a time span. The times of objects have only whole seconds. */
export interface Span {
  atLeastMilliseconds: number;
  atMostMilliseconds: number;
  byTwoClocks: boolean;
}

export interface WayStep {
  point: Point;
  /** Cluster whose clock gives the time. */
  cluster: string;
  state: WayState;
  /** Of an object, the time of its last write. It has a fraction only if it is more precise than a second. */
  time: string | null;
  /**
   * Time since the last earlier step with a known time. `null` also if the last write of the object is not that of the
   * change.
   */
  since: Span | null;
  /** True if the time cannot be compared with that of the earlier step, because the clocks of two clusters differ. */
  clocksDiffer: boolean;
}

/** Way of the last change of one EndpointSlice from its exporter to one importer. */
export interface Way {
  api: Api;
  exporter: string;
  importer: string;
  slice: string;
  /** One for each `Point`, in this order. */
  steps: WayStep[];
  /** Time from the first step with a known time to the last step, if that is known. */
  whole: Span | null;
}

/** One side of a conflict. */
export interface ConflictSide {
  cluster: string;
  what: string;
  value: string;
}

/** Answer of `GET service/NAMESPACE/NAME`. */
export interface ServiceAnswer {
  time: string;
  explanation: ExplanationDocument;
  endpoints?: EndpointCount[];
  conflicts?: ConflictSide[];
  /** Of each pair, ways that are not complete come first, and then the newest changes. */
  ways?: Way[];
  /** Number of ways that are left out, because the Service has many. */
  waysLeftOut?: number;
  /** Last Events about the objects of the Service, newest first. */
  events?: Happened[];
  /** As in the message `fleet`. */
  eventsNotRead?: string[];
}

/** Entry of a fault code. */
export interface CodeEntry {
  code: string;
  title: string;
  /** Title of the step if it is ok. */
  ok?: string;
  meaning: string;
  evidence: string;
  confirm: string;
  remedy: string;
  reasons: string[];
  notice: boolean;
}

/** Answer of `GET codes`: document of `fleetnet explain --list-codes -o json`. */
export interface CodesDocument {
  codes: CodeEntry[];
}
