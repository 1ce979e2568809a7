/** View of one Service. */

import type { ExplanationDocument, Finding, NameToCall, ServiceAnswer } from "../contract";
import { blocks, called, pairName, shownPair } from "../pairs";
import { serviceHash } from "../route";
import type { Dispatch, Shown, State } from "../state";
import { count, ends, timeOfDay } from "../text";
import { waysOf } from "../ways";
import { labelOf, verdictLabel } from "../tone";
import { ConflictTable, Endpoints } from "./endpoints";
import { FindingFacts, PairSteps } from "./pair";
import { PairChoice } from "./pairmatrix";
import { ServiceEvents } from "./serviceevents";
import { Ways } from "./way";
import { Badge, Card, CodeLink, Copyable, Empty, Heading, Names, Icon } from "./parts";

export function ServiceView({ state, dispatch }: { state: State; dispatch: Dispatch }) {
  const { shown } = state;
  if (!shown) {
    return null;
  }
  const { answer } = shown;
  return (
    <>
      <p class="back">
        <a href="#/services">← Services</a>
      </p>
      <Heading note={answer && <Verdict answer={answer} />}>
        {shown.namespace}/{shown.name}
      </Heading>
      <NoAnswer shown={shown} />
      {answer && <Answer answer={answer} state={state} dispatch={dispatch} />}
    </>
  );
}

function Verdict({ answer }: { answer: ServiceAnswer }) {
  return (
    <>
      <Badge label={verdictLabel(answer.explanation.verdict)} /> read at {timeOfDay(answer.time)}
    </>
  );
}

function NoAnswer({ shown }: { shown: Shown }) {
  if (shown.why === null) {
    return shown.answer ? null : <Empty>Reading the Service …</Empty>;
  }
  return (
    <p class="old" role="alert">
      <Icon label={labelOf("warning", "")} />
      <span>
        The Service could not be read: {shown.why} {shown.answer && "The page shows the last answer."}
      </span>
    </p>
  );
}

interface Props {
  answer: ServiceAnswer;
  state: State;
  dispatch: Dispatch;
}

function Answer({ answer, state, dispatch }: Props) {
  const { explanation, endpoints = [], conflicts = [], ways = [], waysLeftOut = 0 } = answer;
  const index = shownPair(explanation.pairs, state.choices.servicePair);
  const pair = index === null ? undefined : explanation.pairs[index];
  const choose = (chosen: number) => {
    const one = explanation.pairs[chosen];
    dispatch({ type: "choose", choices: { servicePair: one ? pairName(one) : null } });
  };
  return (
    <>
      <DidYouMean names={explanation.didYouMean ?? []} />
      <div class="columns even">
        <Card title="Pairs" note="Choose a pair to see its steps.">
          <PairChoice pairs={explanation.pairs} chosen={index} onChoose={choose} />
          <Blocks explanation={explanation} onChoose={choose} />
        </Card>
        {pair && (
          <Card title={pairName(pair)}>
            <PairSteps pair={pair} codes={state.codes} />
          </Card>
        )}
      </div>
      {pair?.exporter && pair.importer && (
        <Ways ways={waysOf(ways, pair)} leftOut={waysLeftOut} name={pairName(pair)} />
      )}
      {conflicts.length > 0 && <ConflictTable conflicts={conflicts} />}
      <Notices notices={explanation.notices} />
      <div class="columns even">
        <NamesToCall names={explanation.namesToCall} />
        {endpoints.length > 0 && <Endpoints endpoints={endpoints} importer={pair?.importer ?? null} />}
      </div>
      <ServiceEvents events={answer.events ?? []} notRead={answer.eventsNotRead ?? []} />
      <NotReached explanation={explanation} />
    </>
  );
}

function DidYouMean({ names }: { names: string[] }) {
  return names.length === 0 ? null : (
    <p class="old">
      <Icon label={labelOf("warning", "")} />
      <span>
        No cluster exports or imports this Service. Did you mean{" "}
        {names.map((name, index) => {
          const [namespace = "", service = ""] = name.split("/");
          return (
            <>
              {index > 0 && " or "}
              <a href={serviceHash(namespace, service)}>{name}</a>
            </>
          );
        })}
        ?
      </span>
    </p>
  );
}

/** Number of pairs of a result that are listed. */
const LISTED = 6;

function Blocks({ explanation, onChoose }: { explanation: ExplanationDocument; onChoose: (index: number) => void }) {
  return (
    <ul class="blocks">
      {blocks(explanation.pairs).map((block) => (
        <li>
          <Badge label={{ ...block.label, text: count(block.indexes.length, "pair") }} />
          <span>{block.label.text}</span>
          {block.label.shade !== "good" && (
            <span class="block-pairs">
              {block.indexes.slice(0, LISTED).map((index) => {
                const pair = explanation.pairs[index];
                return (
                  pair && (
                    <button type="button" class="small" onClick={() => onChoose(index)}>
                      {pairName(pair)}
                    </button>
                  )
                );
              })}
              {block.indexes.length > LISTED && ` and ${block.indexes.length - LISTED} more`}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Notices({ notices }: { notices: Finding[] }) {
  const codes = [...new Set(notices.map((notice) => notice.code))].sort();
  return notices.length === 0 ? null : (
    <Card title="Notices" note="They degrade the fleet, and are not the cause of missing endpoints.">
      {codes.map((code) => {
        const own = notices.filter((notice) => notice.code === code);
        return own.slice(0, 1).map((first) => (
          <div class="finding warning" key={code}>
            <h3>
              <Icon label={labelOf("warning", "")} /> <CodeLink code={code} /> {first.title}
              {own.length > 1 && ` (${own.length})`}
            </h3>
            <FindingFacts finding={first} others={own.slice(1)} />
          </div>
        ));
      })}
    </Card>
  );
}

function NamesToCall({ names }: { names: NameToCall[] }) {
  return (
    <Card title="Names to call">
      {names.length === 0 && <Empty>No name is known: no importer has one, or none was read.</Empty>}
      <ul class="calls">
        {called(names).map((call) => (
          <li>
            <Copyable text={call.name} />
            <span class="muted">
              {call.ports.length > 0 && `port ${call.ports.join(", ")} `}in {ends(call.importers)}
            </span>
            {call.addresses.length > 0 && (
              <span class="muted">
                <Names names={call.addresses} thing="address" max={3} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function NotReached({ explanation }: { explanation: ExplanationDocument }) {
  return explanation.notReached.length === 0 ? null : (
    <Card title="Not reached">
      <ul class="plain-list">
        {explanation.notReached.map((one) => (
          <li>
            <strong>{one.cluster}</strong>: {one.why} <span class="muted">{one.remedy}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
