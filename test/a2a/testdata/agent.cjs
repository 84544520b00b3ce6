// An agent on the official JavaScript SDK. It serves on a free port of this machine, over the binding that
// its first argument names (JSONRPC or HTTP+JSON), with a stream unless the second is "polling", and prints
// "ready URL". The first word of a message says what it does.
const path = require("node:path");
const { createRequire } = require("node:module");

const load = createRequire(path.join(process.env.TOOLCRIB_PEERS, "package.json"));
const express = load("express");
const sdk = load("@a2a-js/sdk");
const server = load("@a2a-js/sdk/server");
const http = load("@a2a-js/sdk/server/express");

const { AgentEvent } = server;
const { TaskState } = sdk;
const [binding, mode] = process.argv.slice(2);

const textPart = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "text/plain" });

class Executor {
  stops = new Map();

  async execute(request, bus) {
    const { taskId, contextId, userMessage, task } = request;
    const text = userMessage.parts.map((part) => (part.content?.$case === "text" ? part.content.value : "")).join("");
    const [word, ...rest] = task ? ["answer", text] : text.split(" ");
    const status = (state, said) => ({
      state,
      message: said && { messageId: crypto.randomUUID(), contextId, taskId, role: sdk.Role.ROLE_AGENT, parts: [textPart(said)], metadata: undefined, extensions: [], referenceTaskIds: [] },
      timestamp: new Date().toISOString(),
    });
    const say = (state, said) => bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, said), metadata: undefined }));
    const give = (parts) => bus.publish(AgentEvent.artifactUpdate({
      taskId, contextId, append: false, lastChunk: true, metadata: undefined,
      artifact: { artifactId: crypto.randomUUID(), name: "out", description: "", parts, metadata: undefined, extensions: [] },
    }));
    // A stream begins with the task. One that goes on is shown as it was: it still asks its question.
    bus.publish(AgentEvent.task(task ?? { id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED), history: [userMessage], artifacts: [], metadata: undefined }));
    switch (word) {
      case "long":
        for (const step of ["step 1", "step 2", "step 3"]) say(TaskState.TASK_STATE_WORKING, step);
        give([textPart("long done")]);
        break;
      case "ask":
        say(TaskState.TASK_STATE_INPUT_REQUIRED, "Which city?");
        bus.finished();
        return;
      case "wait":
        say(TaskState.TASK_STATE_WORKING, "waiting");
        console.log(`waits ${taskId}`);
        await new Promise((resolve) => this.stops.set(taskId, resolve));
        say(TaskState.TASK_STATE_CANCELED);
        bus.finished();
        return;
      case "fail":
        say(TaskState.TASK_STATE_FAILED, "no luck");
        bus.finished();
        return;
      case "parts":
        give(userMessage.parts.slice(1));
        break;
      default:
        give([textPart(`${word}: ${rest.join(" ")}`)]);
    }
    say(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  async cancelTask(taskId) {
    console.log(`cancelled ${taskId}`);
    this.stops.get(taskId)?.();
  }
}

const app = express();
const listener = app.listen(0, "127.0.0.1", () => {
  const base = `http://127.0.0.1:${listener.address().port}`;
  const card = {
    name: "JavaScript Agent", description: "It does what the first word says.", version: "1.0.0",
    supportedInterfaces: [{ url: `${base}/a2a`, protocolBinding: binding, protocolVersion: "1.0", tenant: "" }],
    capabilities: { streaming: mode !== "polling", pushNotifications: false, extensions: [], extendedAgentCard: false },
    defaultInputModes: ["text/plain", "application/json", "image/png"], defaultOutputModes: ["text/plain"],
    skills: [{ id: "act", name: "Act", description: "Acts.", tags: ["demo"], examples: ["echo hi"], inputModes: [], outputModes: [], securityRequirements: [] }],
    securitySchemes: {}, securityRequirements: [], signatures: [],
  };
  const requestHandler = new server.DefaultRequestHandler(card, new server.InMemoryTaskStore(), new Executor());
  const userBuilder = http.UserBuilder.noAuthentication;
  app.use("/.well-known/agent-card.json", http.agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/a2a", binding === "JSONRPC" ? http.jsonRpcHandler({ requestHandler, userBuilder }) : http.restHandler({ requestHandler, userBuilder }));
  console.log(`ready ${base}`);
});
