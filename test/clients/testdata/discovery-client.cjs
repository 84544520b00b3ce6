// A client on the official TypeScript SDK that finds a tool and calls it. It takes one JSON argument,
//   {"url": URL | "command": [..], "session": NAME, "query": TEXT, "refresh": true|false,
//    "call": {"name", "arguments"}}
// connects, lists the tools, asks tool_search when there is a query, waits until it is told that the list
// changed and reads it anew if it refreshes, and then makes the call: by its name if it is listed, else
// through tool_call. It prints one JSON object of what it saw.
const path = require("node:path");
const { createRequire } = require("node:module");

const sdk = createRequire(path.join(process.env.TOOLCRIB_PEERS, "package.json"));
const { Client } = sdk("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = sdk("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = sdk("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = sdk("@modelcontextprotocol/sdk/types.js");

function transportTo({ url, command, session }) {
  if (!url) return new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: "inherit" });
  const headers = session ? { "Toolcrib-Session": session } : {};
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

async function listAll(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools({ cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor);
  return names;
}

async function main(job) {
  const client = new Client({ name: "discovery-client", version: "1.0.0" });
  const changed = new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
  await client.connect(transportTo(job));
  const seen = { instructions: client.getInstructions() || "", before: await listAll(client) };
  seen.after = seen.before;
  if (job.query) {
    const answer = await client.callTool({ name: "tool_search", arguments: { query: job.query } });
    seen.search = JSON.parse(answer.content[0].text);
    if (job.refresh) {
      await changed;
      seen.after = await listAll(client);
    }
  }
  const { name } = job.call;
  const direct = seen.after.includes(name);
  seen.called = direct ? name : "tool_call";
  seen.result = await client.callTool(direct ? job.call : { name: "tool_call", arguments: { name, args: job.call.arguments } });
  await client.close();
  console.log(JSON.stringify(seen));
}

main(JSON.parse(process.argv[2])).catch((error) => {
  console.error(error);
  process.exit(1);
});
