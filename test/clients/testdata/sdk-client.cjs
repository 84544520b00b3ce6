// A client on the official TypeScript SDK. It takes one JSON argument,
//   {"url": URL | "command": [..], "call": {"name", "arguments"}, "cancelAfter": N}
// connects, lists the tools, makes the call, cancels it after the Nth progress message (0: never), makes
// a ping to see that the connection is still good, and prints one JSON object of what it saw.
const path = require("node:path");
const { createRequire } = require("node:module");

const sdk = createRequire(path.join(process.env.TOOLCRIB_PEERS, "package.json"));
const { Client } = sdk("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = sdk("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = sdk("@modelcontextprotocol/sdk/client/streamableHttp.js");

function transportTo({ url, command }) {
  if (url) return new StreamableHTTPClientTransport(new URL(url));
  return new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: "inherit" });
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
  const client = new Client({ name: "sdk-client", version: "1.0.0" });
  await client.connect(transportTo(job));
  const seen = { server: client.getServerVersion(), tools: await listAll(client), progress: [] };
  const abort = new AbortController();
  const onprogress = (progress) => {
    seen.progress.push(progress);
    if (seen.progress.length === job.cancelAfter) abort.abort("enough");
  };
  try {
    seen.result = await client.callTool(job.call, undefined, { onprogress, signal: abort.signal });
  } catch (error) {
    seen.error = String(error);
  }
  await client.ping();
  await client.close();
  console.log(JSON.stringify(seen));
}

main(JSON.parse(process.argv[2])).catch((error) => {
  console.error(error);
  process.exit(1);
});
