// Start a run from TypeScript by the names of its workflow, query and update, decide what it asks, print its result,
// and what it did, from the first event to the last.
//
// npm start -- "TEXT" YOUR@ADDRESS          knows Temporal by TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and profiles

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Connection, WorkflowFailedError, WorkflowUpdateFailedError } from "@temporalio/client";
import { loadClientConnectConfig } from "@temporalio/envconfig";

// What of the answers is read here; docs/schemas has the whole of them.
interface Call {
  tool: string;
  arguments: Record<string, unknown>;
  clipped: number;
  undo_how: string | null;
}
interface Request {
  id: string;
  question: string;
  calls: Call[];
  proposal: { more?: number } | null;
  options: string[];
  args_digest: string;
}
interface Status {
  state: string;
  pending: Request[];
}
interface Result {
  outcome: string;
  success: boolean;
  final_summary: string;
  events: Event[]; // the last 20
  events_total: number;
  events_ref: string | null; // of all of them, for ReadRun
}
interface Event {
  n: number;
  text: string;
}
interface Page {
  value: Event[];
  next: number | null;
}

// A long run continues as a new execution now and then; what is sent just then is sent again.
async function again<T>(send: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const said = `${error} ${error instanceof Error ? error.cause : ""}`;
      if (!said.includes("continuing as a new execution")) throw error;
      await sleep(300);
    }
  }
}

// A Result holds the last events and effects only; what it refers to is read page by page, also after the run's end.
async function* stored(workflow_id: string, ref: string): AsyncGenerator<Event> {
  for (let offset: number | null = 0; offset !== null; ) {
    const page: Page = await client.workflow.execute("ReadRun", {
      args: [{ workflow_id, ref, offset }],
      workflowId: `read-${randomUUID()}`,
      taskQueue,
      priority: { priorityKey: 2 },
    });
    yield* page.value;
    offset = page.next;
  }
}

const [text, by] = process.argv.slice(2);
if (text === undefined || by === undefined) {
  console.error('usage: npm start -- "TEXT" YOUR@ADDRESS');
  process.exit(2);
}
const config = loadClientConnectConfig();
const connection = await Connection.connect(config.connectionOptions);
const client = new Client({ connection, namespace: config.namespace });
const taskQueue = process.env.BACKSTAY_TASK_QUEUE ?? "backstay";
const terminal = createInterface({ input: process.stdin });
const answers = terminal[Symbol.asyncIterator]();

const run = await client.workflow.start("RunTask", {
  args: [{ text }],
  workflowId: `task-${randomUUID()}`,
  taskQueue,
});
console.error(`run ${run.workflowId}`);

let open = true;
const ended: Promise<Result> = run.result().finally(() => (open = false));
ended.catch(() => {}); // it is waited for below

const asked = new Set<string>();
while (open) {
  const status = await again(() => run.query<Status>("status"));
  for (const request of status.pending.filter((request) => !asked.has(request.id))) {
    asked.add(request.id);
    console.error(request.question);
    for (const call of request.calls) {
      console.error(`  ${call.tool} ${JSON.stringify(call.arguments)}\n  undo: ${call.undo_how ?? "not possible"}`);
    }
    // Nobody approves here what is too long to be shown whole.
    const hidden = request.calls.some((call) => call.clipped > 0) || (request.proposal?.more ?? 0) > 0;
    if (hidden || !request.options.includes("approve")) {
      console.error(`see all of it, and how to answer: backstay show ${run.workflowId} ${request.id}`);
      continue;
    }
    process.stderr.write("approve? [y/n] ");
    const answer = await answers.next();
    if (answer.done) throw new Error("nobody answers; the run waits");
    const verdict = answer.value === "y" ? "approve" : "reject";
    // The digest says about which arguments this is; the event id makes it harmless to send it twice.
    const { id: request_id, args_digest } = request;
    const decision = { request_id, verdict, by, args_digest, event_id: randomUUID() };
    try {
      await again(() => run.executeUpdate("decide", { args: [decision] }));
    } catch (error) {
      if (!(error instanceof WorkflowUpdateFailedError)) throw error;
      console.error(`refused: ${error.cause?.message}`);
    }
  }
  await sleep(300);
}
try {
  const { outcome, success, final_summary, events, events_total, events_ref } = await ended;
  const all = events_ref !== null && events_total > events.length ? stored(run.workflowId, events_ref) : events;
  for await (const event of all) console.error(`${event.n} ${event.text}`);
  console.log(JSON.stringify({ outcome, final_summary }));
  process.exitCode = success ? 0 : 1;
} catch (error) {
  if (!(error instanceof WorkflowFailedError)) throw error;
  console.error(error.cause?.message); // such as which field of the task is wrong, and what to do
  process.exitCode = 1;
}
terminal.close();
await connection.close();
