// A server on the official TypeScript SDK, whose tool answers with as much text as it is asked for, once 64 calls are there.
// Without an argument it serves its pipes; with "http" or "json" it serves streamable HTTP, with streams of events or without,
// and prints where.
const path = require("node:path");
const http = require("node:http");
const { randomUUID } = require("node:crypto");
const { createRequire } = require("node:module");

const sdk = createRequire(path.join(process.env.TOOLCRIB_PEERS, "package.json"));
const { Server } = sdk("@modelcontextprotocol/sdk/server/index.js");
const { StdioServerTransport } = sdk("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = sdk("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { CallToolRequestSchema, ListToolsRequestSchema } = sdk("@modelcontextprotocol/sdk/types.js");

const row = 'a row of "text", é\n';
let waiting = 64;
let open;
const all = new Promise((resolve) => (open = resolve));

function newServer() {
  const server = new Server({ name: "large", version: "1" }, { capabilities: { tools: {} } });
  const inputSchema = { type: "object", properties: { bytes: { type: "integer" } }, required: ["bytes"] };
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "text", inputSchema }] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    if (--waiting === 0) open();
    await all;
    const text = row.repeat(Math.floor(params.arguments.bytes / Buffer.byteLength(row)) + 1);
    return { content: [{ type: "text", text }] };
  });
  return server;
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
}

async function serveHTTP(enableJsonResponse) {
  const sessions = new Map();
  const server = http.createServer(async (request, response) => {
    const body = await bodyOf(request);
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport && body?.method === "initialize") {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await newServer().connect(transport);
    }
    if (!transport) {
      response.writeHead(404).end();
      return;
    }
    await transport.handleRequest(request, response, body);
  });
  server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}/mcp`));
}

if (process.argv[2]) serveHTTP(process.argv[2] === "json");
else newServer().connect(new StdioServerTransport());
